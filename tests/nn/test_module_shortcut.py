"""Calls of modules whose forward() the core runs itself: whatever is changed, it is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew
from clew import nn

X = clew.ones(1, 2)


def linear(value: float = 1.0) -> nn.Linear:
    m = nn.Linear(2, 2)
    with clew.no_grad():
        m.weight.fill_(value)
        m.bias.fill_(0.0)
    return m


def value(m: Any) -> float:
    return m(X)[0, 0].item()


def new_weight(v: float = 3.0) -> nn.Parameter:
    return nn.Parameter(clew.full((2, 2), v))


def assign(m: Any) -> None:
    m.weight = new_weight()


def into_the_table(m: Any) -> None:
    m._parameters["weight"] = new_weight()


def another_table(m: Any) -> None:
    m.__dict__["_parameters"] = {"weight": new_weight(), "bias": m.bias}


def beside_the_table(m: Any) -> None:
    m.__dict__["weight"] = clew.full((2, 2), 3.0)


def in_place(m: Any) -> None:
    m.weight.data.fill_(3.0)


def loaded(m: Any) -> None:
    m.load_state_dict(linear(3.0).state_dict())


def own_forward(m: Any) -> None:
    m.forward = lambda x: x * 6


def hooked(m: Any) -> None:
    m.register_forward_hook(lambda module, args, out: out * 3)


def another_class(m: Any) -> None:
    class Tripled(nn.Linear):
        def forward(self, input: Any) -> Any:
            return super().forward(input) * 3

    m.__class__ = Tripled


CHANGES: list[Callable[[Any], None]] = [
    assign,
    into_the_table,
    another_table,
    beside_the_table,
    in_place,
    loaded,
    own_forward,
    hooked,
    another_class,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_change_is_seen(change: Callable[[Any], None]):
    m = linear()
    assert [value(m) for _ in range(3)] == [2, 2, 2]
    change(m)
    assert [value(m) for _ in range(3)] == [6, 6, 6]


def test_the_class_changes(monkeypatch: pytest.MonkeyPatch):
    class Own(nn.Linear):
        pass

    m = Own(2, 2)
    m.load_state_dict(linear().state_dict())
    assert value(m) == value(m) == 2
    Own.forward = lambda self, x: x * 7  # type: ignore[method-assign]
    assert value(m) == value(m) == 7
    del Own.forward
    assert value(m) == value(m) == 2
    Own.weight = property(lambda self: clew.full((2, 2), 4.0))  # type: ignore[assignment]
    assert value(m) == value(m) == 8


def test_the_function_changes(monkeypatch: pytest.MonkeyPatch):
    m = linear()
    assert value(m) == value(m) == 2
    monkeypatch.setattr(clew.nn.functional, "linear", lambda x, w, b=None: x * 5)
    assert value(m) == value(m) == 5
    monkeypatch.undo()
    assert value(m) == 2


def test_a_hook_on_every_module():
    m = linear()
    assert value(m) == value(m) == 2
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    assert value(m) == 3
    handle.remove()
    assert value(m) == 2


def test_modules_at_the_same_place():
    # Freed dicts are used again: what was found for one module is not taken for another.
    for i in range(2000):
        m = linear(float(i % 7))
        assert value(m) == 2 * (i % 7)
        e = nn.Embedding(3, 1)
        assert e(clew.tensor([2])).item() == e.weight[2].item()


def test_a_deleted_parameter():
    m = linear()
    assert value(m) == 2
    del m.weight
    with pytest.raises(AttributeError, match="weight"):
        m(X)


def test_a_keyword_and_more_arguments():
    m = linear()
    assert value(m) == 2
    assert m(input=X)[0, 0].item() == 2
    with pytest.raises(TypeError):
        m(X, X)


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = nn.Identity()
        self.weight = new_weight()
        self.register_buffer("mean", clew.zeros(1))


def replace_child(m: Holder) -> Any:
    m.child = nn.Tanh()
    return m.child


def replace_in_table(m: Holder) -> Any:
    m._modules["child"] = nn.Tanh()
    return m._modules["child"]


def shadow_by_parameter(m: Holder) -> Any:
    m._parameters["child"] = new_weight()
    return m._parameters["child"]


def shadow_in_instance(m: Holder) -> Any:
    m.__dict__["child"] = found = object()
    return found


def shadow_in_class(m: Holder) -> Any:
    type(m).child = 5  # type: ignore[assignment]
    return 5


def other_table(m: Holder) -> Any:
    m._modules = {"child": nn.Tanh()}
    return m._modules["child"]


@pytest.mark.parametrize(
    "change",
    [
        replace_child,
        replace_in_table,
        shadow_by_parameter,
        shadow_in_instance,
        shadow_in_class,
        other_table,
    ],
)
def test_a_member_found_before_is_looked_up_again(change: Callable[[Holder], Any]) -> None:
    class Own(Holder):
        pass

    m = Own()
    assert isinstance(m.child, nn.Identity) and isinstance(m.child, nn.Identity)
    wanted = change(m)
    for _ in range(3):
        assert m.child is wanted


def test_a_member_that_went_away_is_missed() -> None:
    m = Holder()
    for name in ("child", "weight", "mean"):
        assert getattr(m, name) is getattr(m, name)
        delattr(m, name)
        with pytest.raises(AttributeError, match=name):
            getattr(m, name)


def test_members_of_equal_modules_are_their_own() -> None:
    modules = [Holder() for _ in range(600)]  # more than are remembered
    for _ in range(2):
        assert [m.weight for m in modules] == [m._parameters["weight"] for m in modules]


@pytest.mark.parametrize(
    ("module", "name", "sizes"),
    [
        (nn.Conv2d(2, 3, 2), "conv2d", (1, 2, 4, 4)),
        (nn.Conv1d(2, 3, 2, padding_mode="circular", padding=1), "conv1d", (1, 2, 4)),
        (nn.ConvTranspose1d(2, 3, 2), "conv_transpose1d", (1, 2, 4)),
        (nn.MaxPool2d(2), "max_pool2d", (1, 2, 4, 4)),
        (nn.AvgPool2d(2), "avg_pool2d", (1, 2, 4, 4)),
        (nn.AdaptiveAvgPool2d(1), "adaptive_avg_pool2d", (1, 2, 4, 4)),
        (nn.LPPool1d(2, 2), "lp_pool1d", (1, 2, 4)),
        (nn.Linear(4, 2), "linear", (1, 4)),
        (nn.ReLU(), "relu", (1, 4)),
    ],
)
def test_a_function_that_stands_in_for_one_of_nn_functional(
    module: nn.Module, name: str, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module(clew.ones(sizes))
    monkeypatch.setattr(nn.functional, name, lambda *args, **kwargs: "another")
    assert module(clew.ones(sizes)) == "another"
