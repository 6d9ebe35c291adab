"""Which operations the core shows to a tool, and what showing none of them costs."""

from __future__ import annotations

import pytest

import clew
from clew import nn
from clew._insight.debug.observing import BACKWARD, Observation

OBSERVE = 16  # a bit of csrc/graph/modes.h


class Seen:
    """A tool that keeps what it is shown."""

    def __init__(self, names, few=(), most=0):
        self.names = []
        self.tool = Observation(self._shown, names, few, most)

    def _shown(self, name, given, got):
        self.names.append("backward" if name in BACKWARD and not got else name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool.close()


def bits():
    """Who looks at operations in this thread."""
    found = clew._C._set_intercept(0)
    clew._C._set_intercept(found)
    return found


def products(times, x, y):
    for _ in range(times):
        x * y


def test_few_calls_that_are_alike():
    x, y = clew.ones(3), clew.ones(3)
    with Seen({"mul", "exp"}, {"mul"}, 4) as seen:
        products(10, x, y)
        for _ in range(10):
            x.exp()
    assert seen.names == ["mul"] * 4 + ["exp"] * 10


@pytest.mark.parametrize(
    "other",
    [
        clew.ones(2, 3),
        clew.ones(3, dtype=clew.float64),
        clew.ones(3, requires_grad=True),
        clew.ones(6)[::2],
        2.0,
    ],
    ids=["shape", "dtype", "requires grad", "strides", "number"],
)
def test_calls_that_differ_are_shown(other):
    x, y = clew.ones(3), clew.ones(3)
    with Seen({"mul"}, {"mul"}, 2) as seen:
        products(5, x, y)
        products(5, x, other)
    assert len(seen.names) == 4


def test_a_recorded_value_differs_from_a_leaf():
    leaf = clew.ones(3, requires_grad=True)
    value = leaf.exp()
    with Seen({"mul"}, {"mul"}, 2) as seen:
        products(5, leaf, 1.0)
        products(5, value, 1.0)
    assert len(seen.names) == 4


def test_each_line_and_each_module_has_its_own():
    class Twice(nn.Module):
        def forward(self, x):
            for _ in range(5):
                x = x * 2
            return x

    x = clew.ones(3)
    with Seen({"mul"}, {"mul"}, 2) as seen:
        products(5, x, x)
        for _ in range(5):
            x * x
        nn.Sequential(Twice(), Twice())(x)
    assert len(seen.names) == 8


@pytest.mark.parametrize("number", [clew.ones(()), clew.ones(1, 1), clew.ones(3).long()])
def test_numbers_and_integers_are_shown_always(number):
    with Seen({"mul"}, {"mul"}, 2) as seen:
        products(9, number, number)
        products(9, number, 2)
    assert len(seen.names) == 18


def test_counting_begins_again_after_a_backward():
    x = clew.ones(3, requires_grad=True)
    with Seen({"mul"}, {"mul"}, 2) as seen:
        for _ in range(3):
            products(5, x, x)
            x.sum().backward()
    assert seen.names == ["mul", "mul", "backward"] * 3


def test_closely_until_the_next_backward():
    x = clew.ones(3, requires_grad=True)
    with Seen({"mul"}, {"mul"}, 2) as seen:
        products(5, x, x)
        Observation.closely()
        products(5, x, x)
        x.sum().backward()
        products(5, x, x)
    assert seen.names == ["mul"] * 7 + ["backward"] + ["mul"] * 2


def test_another_tool_that_wants_all():
    x = clew.ones(3)
    with Seen({"mul"}, {"mul"}, 2) as few, Seen({"mul"}) as every:
        products(5, x, x)
    assert len(every.names) == 5 and len(few.names) == 5


def test_lines_that_are_gone_are_not_taken_for_others():
    x = clew.ones(3)
    with Seen({"mul"}, {"mul"}, 1) as seen:
        for i in range(50):  # the code of one lies where that of another lay
            exec(compile(f"x * x  # {i}", f"{i}.py", "exec"), {"x": x})
    assert len(seen.names) == 50


def test_backward_alone_is_shown_without_a_look_at_operations():
    x = clew.ones(3, requires_grad=True)
    before = bits()
    with Seen(()) as seen:
        assert bits() == before
        (x * x).sum().backward()
        (x * x).sum().backward(retain_graph=True)
        clew.autograd.grad((x * x).sum(), x)
    assert seen.names == ["backward"] * 3
    (x * x).sum().backward()
    assert len(seen.names) == 3


def test_names_that_change_in_the_callback():
    x = clew.ones(3, requires_grad=True)
    before, names = bits(), []

    def shown(name, given, got):
        names.append(name)
        tool.show({"exp"} if name == "backward" else ())

    tool = Observation(shown, ())
    try:
        for _ in range(2):
            x.exp().sum().backward()
            assert bits() == before | OBSERVE
            x.exp()
            assert bits() == before
            x.exp()
    finally:
        tool.close()
    assert names == ["backward", "exp"] * 2


def test_a_callback_that_fails_or_ends_its_tool():
    x = clew.ones(3, requires_grad=True)
    before = bits()

    def fails(name, given, got):
        raise RuntimeError("seen")

    tool = Observation(fails, {"exp"})
    for _ in range(2):
        with pytest.raises(RuntimeError, match="seen"):
            x.exp()
    with pytest.raises(RuntimeError, match="seen"):
        x.sum().backward()
    tool.close()
    ending = Observation(lambda *_: ending.close(), {"exp"})
    x.exp()
    assert bits() == before


def test_what_callbacks_and_hooks_do_is_not_shown():
    x = clew.ones(3, requires_grad=True)
    names = []

    def differentiate():
        with clew.enable_grad():
            x.exp().sum().backward()

    def shown(name, given, got):
        names.append(name)
        differentiate()

    for wanted, expected in (({"exp"}, ["exp", "backward"]), ((), ["backward"])):
        names.clear()
        tool = Observation(shown, wanted)
        try:
            y = x.exp()
            y.register_hook(lambda g: differentiate())
            y.sum().backward()
        finally:
            tool.close()
        assert names == expected


def test_the_outline_is_the_graphs():
    layer, x = nn.Linear(4, 3), clew.randn(5, 4)
    scale = layer.weight.detach().mean()
    out = (layer(x) * scale).relu()
    loss = out.sum() + layer.bias.sum() * clew.randn(3).exp().sum()
    columns = clew._C._export_graph((loss, out))
    sequences, leaves, cuts = clew._C._outline_graph((loss, out))
    assert sequences == [s for s in columns["sequence"] if s]
    assert [id(t) for t in leaves] == [id(t) for _, t, _ in columns["leaves"]]
    assert len(leaves) == 2 and len(cuts) == 1
    assert set(map(str, cuts)) == set(map(str, columns["cuts"].values()))
    assert clew._C._outline_graph((x,)) == ([], [], [])
    with pytest.raises(TypeError, match="_outline_graph: expected a tuple of Tensors"):
        clew._C._outline_graph(x)
