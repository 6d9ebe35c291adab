"""Programs in the manner of PyTorch's TorchScript tutorials: script, call, save, load."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from typing import NamedTuple

import numpy as np
import pytest

import clew
from clew import Tensor, jit, nn


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-6)


def stored(module):
    file = io.BytesIO()
    module.save(file)
    file.seek(0)
    return jit.load(file)


class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        else:
            return -x


class Cell(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.gate, self.linear = gate, nn.Linear(4, 4)

    def forward(self, x, h):
        new = clew.tanh(self.gate(self.linear(x)) + h)
        return new, new


class Loop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, xs):
        h, y = clew.zeros(3, 4), clew.zeros(3, 4)
        for i in range(xs.size(0)):
            y, h = self.cell(xs[i], h)
        return y, h


class Wrapped(nn.Module):
    def __init__(self, loop):
        super().__init__()
        self.loop = loop

    def forward(self, xs):
        y, _ = self.loop(xs)
        return clew.relu(y)


def test_scripts_and_traces_in_each_other():
    x, h = clew.rand(3, 4), clew.rand(3, 4)
    gate = jit.script(Gate())
    assert "if x.sum() > 0:" in gate.code and gate.original_name == "Gate"
    cell = Cell(gate)
    traced = jit.trace(cell, (x, h))
    same(traced(x, h)[0], cell(x, h)[0])
    whole = Wrapped(jit.script(Loop(jit.trace(Cell(gate), (x, h)))))
    loaded = stored(jit.trace(whole, clew.rand(10, 3, 4)))
    for n, sign in ((10, 1), (3, -1), (1, -1)):
        xs = sign * clew.rand(n, 3, 4)
        same(loaded(xs), whole(xs))
    with pytest.raises(RuntimeError, match="must have one dtype; got float64"):
        jit.trace(Wrapped(Loop(traced)), clew.rand(2, 3, 4).double())


def test_a_scripted_module_is_saved_after_a_call():
    loop = jit.script(Loop(Cell(Gate())))
    assert isinstance(loop, jit.ScriptModule) and isinstance(loop, Loop)
    assert jit.is_script_module(loop)
    with pytest.raises(RuntimeError, match=r"Loop has no program.*call it once.*example_inputs"):
        loop.save(io.BytesIO())
    loop(clew.rand(5, 3, 4))
    loaded = stored(loop)
    for n in (5, 2):
        xs = clew.randn(n, 3, 4)
        same(loaded(xs)[0], loop(xs)[0])
    assert "tanh" in str(loop.graph) and "def forward(self, xs):" in loop.code
    assert list(loaded.state_dict()) == list(loop.state_dict())


def test_a_scripted_module_shares_what_it_was_made_of():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    scripted = jit.script(model)
    assert scripted is not model and type(scripted).__name__ == "Sequential"
    assert [p is q for p, q in zip(scripted.parameters(), model.parameters())] == [True] * 4
    assert len(scripted) == 3 and scripted[0] is model[0]
    optimizer = clew.optim.SGD(scripted.parameters(), lr=0.1)
    x = clew.rand(16, 4)
    before = scripted(x)
    before.sum().backward()
    optimizer.step()
    assert not np.allclose(before.detach(), model(x).detach())
    loaded = stored(scripted)
    same(loaded(x[:3]), model(x[:3]))
    for other in (copy.deepcopy(scripted), pickle.loads(pickle.dumps(scripted))):
        assert isinstance(other, jit.ScriptModule)
        same(other(x), model(x))
        assert other[0].weight is not model[0].weight
    assert jit.script(scripted) is scripted


@jit.script
def combined(x: Tensor, pair: tuple[Tensor, Tensor], scale: float = 1.0) -> Tensor:
    """Adds."""
    a, b = pair
    if a.sum() > 0:
        return (a + b + x) * scale
    return x


def test_a_scripted_function():
    assert isinstance(combined, jit.ScriptFunction) and combined.name == "combined"
    assert combined.__doc__ == "Adds." and "return x" in combined.code
    assert pickle.loads(pickle.dumps(combined)) is combined
    one = clew.ones(3)
    same(combined(one, (one, one), scale=2.0), clew.full((3,), 6.0))
    loaded = stored(combined)
    for sign in (1, -1):
        same(loaded(one, (sign * one, one), scale=2.0), combined(one, (sign * one, one), 2.0))

    # Within a traced one its branches are kept.
    def outer(x):
        return combined(x, (x, x)) + 1

    traced = jit.trace(outer, one)
    for sign in (1, -1):
        same(traced(sign * one), combined(sign * one, (sign * one, sign * one)) + 1)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="where a lambda stands is not known before")
def test_lambdas_keep_their_branches():
    first, second = (
        (lambda x: x * 2 if x.sum() > 0 else x - 1),
        (lambda x: x if x.max() > 1 else -x),
    )
    scale = 3.0
    traced = jit.trace(
        lambda x, by=2: first(second(x)) * (by if x.sum() > -1 else scale), clew.ones(2)
    )
    for x in (clew.ones(2), -clew.ones(2), clew.tensor([2.0, -1.0]), clew.tensor([-0.4, 0.1])):
        expected = first(second(x)) * (2 if x.sum() > -1 else scale)
        same(traced(x), expected)


class Scaled(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(clew.rand(3))

    @jit.script_method
    def forward(self, x):
        if x.sum() > 0:
            output = self.weight * x
        else:
            output = self.weight + x
        return output


def test_a_script_module_of_ones_own():
    model = Scaled()
    with pytest.raises(RuntimeError, match="Scaled has no program"):
        model.save(io.BytesIO())
    x = clew.rand(3)
    model(x)
    assert not model._forward_pre_hooks
    loaded = stored(model)
    for sign in (1, -1):
        same(loaded(sign * x), model(sign * x))


class Marked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    @jit.export
    def twice(self, x):
        return x * 2

    @jit.ignore
    def debug(self, x):
        raise AssertionError

    @jit.unused
    def never(self, x):
        raise AssertionError

    def forward(self, x):
        return self.twice(self.linear(x))


def test_marks_and_freezing():
    scripted = jit.script(Marked().eval())
    assert scripted.twice(clew.ones(2)).sum() == 4
    frozen = jit.optimize_for_inference(jit.freeze(scripted))
    x = clew.ones(2, 2)
    with clew.no_grad():
        frozen(x)
    file = io.BytesIO()
    jit.save(frozen, file)
    file.seek(0)
    same(jit.load(file, map_location="cpu")(clew.ones(5, 2)), scripted(clew.ones(5, 2)))
    file.seek(0)
    for one in (frozen, jit.freeze(jit.load(file).eval())):
        assert not one(x).requires_grad
        one(x).numpy()
    assert scripted(x).requires_grad


class Point(NamedTuple):
    x: Tensor
    y: Tensor


class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = jit.Attribute({"a": 1}, dict[str, int])

    def forward(self, p: Point, more: Tensor | None = None) -> Tensor:
        if more is None:
            more = clew.zeros(2)
        rows: list[Tensor] = jit.annotate(list[Tensor], [])
        for i in range(3):
            rows.append(p.x * i + p.y)
        return clew.stack(rows) + more


def test_types_and_optional_arguments():
    scripted = jit.script(Typed())
    point = Point(clew.ones(2), clew.ones(2))
    same(stored_after(scripted, point)(point), scripted(point))


def stored_after(module, *args):
    module(*args)
    return stored(module)


class Forking(nn.Module):
    def forward(self, x):
        futures = [jit.fork(clew.add, x, i) for i in range(3)]
        return sum(jit.wait(f) for f in futures)


def test_forks():
    scripted = jit.script(Forking())
    assert scripted(clew.ones(1)) == 6
    assert stored(scripted)(clew.ones(1) * 2) == 9


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)

    def forward(self, x):
        return self.conv(x)

    def weighted(self, w):
        if w.sum() > 0:
            return w * self.conv.weight
        return self.conv.weight


def test_several_methods():
    net, w, x = Kernel(), clew.rand(1, 1, 3, 3), clew.rand(1, 1, 5, 5)
    made = jit.trace_module(net, {"forward": x, "weighted": w})
    for sign in (1, -1):
        same(made.weighted(sign * w), net.weighted(sign * w))
    with clew.no_grad():
        net.conv.weight.mul_(2)
    same(made(x), net(x))
    same(made.weighted(w), net.weighted(w))
    loaded = stored(made)
    same(loaded.weighted(-w), net.weighted(-w))
    assert loaded.weighted.conv.weight is loaded.conv.weight
    same(copy.deepcopy(loaded).weighted(w), net.weighted(w))


@jit.script_if_tracing
def clamped(x, low: float):
    if x.min() < low:
        return x.clamp(min=low)
    return x


class Steps(nn.Module):
    def forward(self, x, n: int):
        i = 0
        while i < n:
            x = clamped(x * 0.9, -0.5)
            i += 1
        return x


def test_functions_of_a_trace():
    def f(x):
        return clamped(x, -0.5)

    traced = jit.trace(f, clew.randn(3))
    for sign in (1, -1):
        same(traced(sign * clew.ones(3)), f(sign * clew.ones(3)))
    scripted = jit.script(Steps())
    same(stored_after(scripted, clew.ones(2), 3)(-clew.ones(2), 3), scripted(-clew.ones(2), 3))


def test_classes_are_what_they_are():
    @jit.script
    class Counter:
        def __init__(self, x: int):
            self.x = x

        def inc(self, n: int) -> int:
            self.x += n
            return self.x

    assert Counter(1).inc(2) == 3


def test_examples_that_are_not_kept():
    large = jit.script(lambda x: x * 2)
    large(clew.zeros(1 << 23))
    with pytest.raises(RuntimeError, match="less than 16 MB"):
        large.save(io.BytesIO())
    program = jit.script(nn.Linear(2, 2), example_inputs=[(clew.ones(1, 2),)])
    same(stored(program)(clew.ones(3, 2)), program(clew.ones(3, 2)))


def test_loops_and_rows_of_a_program_within_another():
    def inner(x):
        rows, h = [], clew.zeros(3)
        for row in x:
            h = clew.tanh(h + row)
            rows.append(h * 2)
            if h.sum() > 1:
                break
        total = clew.stack(rows).sum(0)
        while total.sum() > 0.5:
            total = total - 0.25
        assert total.sum() < 100
        return total, h

    def stacked(x):
        return clew.stack([row * row.sum() for row in x])

    a, b = jit.trace(inner, clew.randn(4, 3)), jit.trace(stacked, clew.randn(4, 3))

    def outer(x):
        y = b(x)
        return (*a(y), b(y))

    whole = jit.trace(outer, clew.randn(4, 3))
    for n, sign in ((4, 1), (7, -1), (1, 1), (2, -1)):
        x = sign * clew.rand(n, 3)
        for got, expected in zip(whole(x), (*inner(stacked(x)), stacked(stacked(x)))):
            same(got, expected)


class Named(nn.Module):
    """Attributes, an optional argument, and further methods."""

    width: jit.Final[int]

    def __init__(self):
        super().__init__()
        self.width = 8
        self.fc = nn.Linear(4, 8)
        self.register_buffer("calls", clew.zeros(()))

    def forward(self, x, mask: Tensor | None = None, times: int = 1):
        y = self.fc(x)
        if mask is not None:
            y = y * mask
        for _ in range(times):
            y = y + 1
        return {"y": y, "n": times}

    @jit.export
    def extra(self, x, k: int = 2):
        self.calls += 1
        if k > 2:
            return x * k + self.fc.weight.sum(), k
        return x * self.calls, k

    @jit.export
    def count(self):
        return self.calls * 1

    @jit.export
    def never(self, x):
        return x


def test_exported_methods_and_numbers_stand_in_the_file():
    model = Named()
    script = jit.script(model)
    x = clew.randn(2, 4)
    script(x, clew.ones(2, 8), times=2)
    script.extra(x, 3)
    script.count()
    model.calls.zero_()
    loaded = stored(script)
    assert isinstance(loaded, jit.RecursiveScriptModule) and loaded.original_name == "Named"
    assert isinstance(script, jit.RecursiveScriptModule) and script.width == 8
    assert loaded._c._method_names() == ["forward", "extra", "count"] and not hasattr(
        loaded, "never"
    )
    for times in (0, 1, 5):
        a, b = (m(x, clew.ones(2, 8), times=times) for m in (loaded, model))
        assert a["n"] == b["n"] == times
        same(a["y"], b["y"])
    for k in (1, 2, 3, 7):
        a, b = loaded.extra(x, k), model.extra(x, k)
        assert a[1] == b[1] == k
        same(a[0], b[0])
    assert float(loaded.calls) == float(loaded.count()) == float(model.calls) == 4
    assert sorted(loaded.state_dict()) == sorted(model.state_dict())
    assert model.calls.grad_fn is None and not model.calls.requires_grad
    for other in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        same(other.extra(x, 9)[0], model.extra(x, 9)[0])


def test_functions_of_numbers():
    @jit.script
    def f(x, n: int, scale: float, flag: bool):
        for i in range(n):
            x = x + i
        return x * scale if flag else x

    x = clew.ones(2)
    f(x, 3, 2.0, True)
    loaded = jit.load(io.BytesIO(f.save_to_buffer()))
    for args in ((0, 1.5, True), (5, 2.5, False), (2, -1.0, True)):
        same(loaded(x, *args), f(x, *args))
    with pytest.raises(TypeError, match="must be whole"):
        loaded(x, 2.5, 1.0, True)

    @jit.script
    def summed(x, dim: int):
        return x.sum(dim)

    summed(clew.ones(2, 3), 1)
    loaded = jit.load(io.BytesIO(summed.save_to_buffer()))
    same(loaded(clew.ones(4, 3), 1), 3 * clew.ones(4))
    same(loaded(clew.ones(4, 3), 0), 4 * clew.ones(3))


def test_a_module_that_was_never_called():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.warns(UserWarning, match=r"Sequential was not called.*float32\[2, 3, 64, 64\]"):
        loaded = stored(jit.script(net))
    x = clew.randn(3, 3, 17, 23)
    same(loaded(x), net(x))
    with pytest.raises(RuntimeError, match="Bilinear has no program"), clew.no_grad():
        stored(jit.script(nn.Bilinear(2, 2, 2)))


def test_graphs_as_torchscript_asks_for_them():
    @jit.script
    def f(x):
        y = x.relu() + 1
        return y * 2 if y.sum() > 3 else y

    f(clew.ones(2))
    graph = f.inlined_graph
    kinds = [n.kind() for n in graph.nodes()]
    assert kinds[0] == "aten::relu" and "prim::If" in kinds
    (branch,) = graph.findAllNodes("prim::If")
    assert [n.kind() for n in next(branch.blocks()).nodes()] == ["aten::mul"]
    assert graph.findNode("aten::relu").output().type() == "float32[?]"
    assert graph.findNode("aten::mul", recurse=False) is None
    assert [v.debugName() for v in graph.inputs()] == ["x"] and len(list(graph.outputs())) == 1
    assert next(graph.outputs()).node() is branch and "relu" in str(graph)
    assert next(branch.inputs()).node().kind() in kinds

    traced = jit.trace(lambda x: x + 1, clew.ones(2))
    assert isinstance(traced, jit.ScriptFunction) and isinstance(traced, jit.ScriptModule)
    same(stored(traced)(clew.zeros(3)), clew.ones(3))
    with jit.optimized_execution(False):
        assert jit._wait(jit._fork(clew.neg, clew.ones(1))).item() == -1
    with pytest.raises(AssertionError, match="null"):
        jit._unwrap_optional(None)
