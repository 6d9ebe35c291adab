"""autobatch.map: samples in turn, each of which goes on when what it waits for is computed."""

from __future__ import annotations

import contextvars
import decimal
import gc
import sys
import weakref

import numpy as np
import pytest
from plain_and_batched import assert_close

import clew
from clew import nn
from clew._program import autobatch
from clew.overrides import TorchFunctionMode


@pytest.fixture(autouse=True)
def no_history():
    """Regions of one line in helpers belong to many tests."""
    autobatch._history.clear()


def ponder(cell, halt):
    """Adaptive computation time: steps until a sum of probabilities passes 1."""

    def run(x):
        h, total, steps = clew.zeros(4), 0.0, 0
        while total < 1 and steps < 20:
            h = cell(x, h)
            total += halt(h).sigmoid().item() * (0.3 + 0.2 * x[0].item() ** 2)
            steps += 1
        return h, steps

    return run


def calls_of_maps(function, samples, times=40):
    """How many calls each of so many maps of one line gathered."""
    counts = []
    for _ in range(times):
        clew.autobatch.map(function, samples)
        counts.append(clew.autobatch.report().calls)
    return counts


def test_where_parking_costs_more_than_batches_gain_samples_run_one_after_the_other():
    pytest.importorskip("greenlet")
    order = []

    def halve(x):
        while x.sum().item() > 1:
            order.append(x[0].item())
            x = x / 2
        return x

    samples = [clew.full((3,), 10.0), clew.full((3,), 20.0)]
    first = clew.autobatch.map(halve, samples)
    together, order[:] = list(order), []
    counts = calls_of_maps(halve, samples)
    assert counts[:3] == [counts[0]] * 3 and counts[0] > 0
    assert counts[3:34] == [0] * 31 and counts[34] == counts[0]
    assert counts[35:] == [0] * 5
    assert together[:2] == [10, 20] and order[-len(together) :][:2] == [10, 5]
    assert all(map(clew.equal, first, clew.autobatch.map(halve, samples)))


def test_maps_whose_weights_are_large_are_always_batched():
    pytest.importorskip("greenlet")
    layer = nn.Linear(300, 300)

    def run(x):
        for _ in range(3):
            x = layer(x)
            x.sum().item()
        return x

    counts = calls_of_maps(run, list(clew.randn(8, 300)), 5)
    assert counts[0] > 0 and counts == counts[:1] * 5


def test_maps_that_draw_keep_the_order_of_their_draws():
    pytest.importorskip("greenlet")

    def walk(x):
        for _ in range(3):
            x = x + clew.rand(2) * (x.sum().item() > 0)
        return x

    results = []
    for _ in range(6):
        clew.manual_seed(1)
        results.append(clew.stack(clew.autobatch.map(walk, [clew.ones(2)] * 3)))
    assert all(clew.equal(results[0], r) for r in results)


def test_samples_that_run_one_after_the_other_keep_to_themselves():
    pytest.importorskip("greenlet")
    setting = contextvars.ContextVar("setting", default=0)

    def run(x):
        x.sum().item()
        seen = clew.is_grad_enabled(), clew.get_default_dtype(), setting.get()
        clew.set_grad_enabled(False)
        clew.set_default_dtype(clew.float64)
        setting.set(1)
        if x[0] < 0:
            raise ValueError("negative")
        return seen

    outcome, samples = [], list(clew.ones(3, 2))
    for i in range(8):
        if i == 7:
            samples[1] = -samples[1]
        try:
            outcome.append(clew.autobatch.map(run, samples))
        except ValueError as e:
            error = e
        assert clew.autobatch.report().calls == (0 if i > 2 else 6)
        assert clew.is_grad_enabled() and clew.get_default_dtype() is clew.float32
    assert outcome == [[(True, clew.float32, 0)] * 3] * 7
    assert error.__notes__ == ["in sample 1 of autobatch.map"]


def test_workers_that_wait_keep_nothing_of_what_they_did():
    pytest.importorskip("greenlet")
    layer = nn.Linear(3, 3)
    died = weakref.ref(layer), weakref.ref(layer.weight)

    def run(x, layer=layer):
        y = layer(x)
        y.sum().item()
        return y

    for _ in range(2):
        results = clew.autobatch.map(run, list(clew.randn(300, 3)))
    del results, layer, run
    gc.collect()
    assert [d() for d in died] == [None, None]


def test_map_goes_on_across_observations():
    pytest.importorskip("greenlet")
    clew.manual_seed(0)
    cell, halt = nn.GRUCell(3, 4), nn.Linear(4, 1)
    samples = list(clew.randn(16, 3))
    run = ponder(cell, halt)
    plain = [run(x) for x in samples]
    batched = clew.autobatch.map(run, samples)
    assert [s for _, s in batched] == [s for _, s in plain]
    assert len({s for _, s in plain}) > 1
    for (got, _), (want, _) in zip(batched, plain):
        assert_close(got.detach(), want.detach())
    report = clew.autobatch.report()
    assert len(report.groups) < report.calls / 3
    # Where the first of the parked samples asked; what the last steps computed waited for the end.
    asked = [place for place, _ in report.observations]
    assert len(asked) > 5 and all("item()" in place for place in asked[:-1])
    sum(h.sum() for h, _ in batched).backward()
    got = cell.weight_hh.grad.clone()
    cell.zero_grad()
    sum(h.sum() for h, _ in plain).backward()
    assert_close(got, cell.weight_hh.grad, 1e-5)


def test_map_keeps_modes_and_generators_of_tasks_apart():
    pytest.importorskip("greenlet")
    w = clew.ones(2, requires_grad=True)

    def steps(i):
        for k in range(2):
            yield (w * i).sum().item() + k

    def run(i):
        seen = []
        with clew.set_grad_enabled(i % 2 == 0):
            for value in steps(i):
                seen.append((value, clew.is_grad_enabled(), (w * 2).requires_grad))
        return seen

    assert clew.autobatch.map(run, range(4)) == [run(i) for i in range(4)]
    assert clew.is_grad_enabled()


def test_map_raises_for_a_sample_and_closes_the_others():
    pytest.importorskip("greenlet")
    closed = []

    def run(i):
        try:
            if (clew.ones(2) * i).sum().item() == 4:
                raise ValueError("no")
            (clew.ones(2) * i).sum().item()
            return i
        finally:
            closed.append(i)

    with pytest.raises(ValueError, match="no") as caught:
        clew.autobatch.map(run, range(5))
    assert any("sample 2" in note for note in caught.value.__notes__)
    assert sorted(closed) == list(range(5))
    assert clew.autobatch.map(lambda i: (clew.ones(1) * i).item(), range(3)) == [0, 1, 2]


def test_map_an_error_of_values_is_its_samples():
    pytest.importorskip("greenlet")
    table = nn.Embedding(4, 3)

    def run(i):
        try:
            return table(clew.tensor(i)).sum().item()
        except IndexError:
            return None

    got = clew.autobatch.map(run, [1, 9, 2])
    assert got[1] is None and got[0] == pytest.approx(table.weight[1].sum().item(), rel=1e-5)


def test_map_without_samples_nested_and_with_print(capsys):
    pytest.importorskip("greenlet")
    assert clew.autobatch.map(abs, []) == []
    inner = lambda x: clew.autobatch.map(lambda k: (x * k).sum().item(), range(3))
    assert clew.autobatch.map(inner, [clew.ones(2), clew.ones(1)]) == [[0, 2, 4], [0, 1, 2]]
    clew.autobatch.map(lambda x: print(x * 2), [clew.ones(1), clew.zeros(1)])
    assert capsys.readouterr().out == "tensor([2.])\ntensor([0.])\n"


def test_map_names_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "greenlet", None)
    with pytest.raises(ImportError, match="pip install greenlet"):
        clew.autobatch.map(abs, [1])


def test_map_parks_inside_of_modules():
    pytest.importorskip("greenlet")
    clew.manual_seed(0)

    class Inner(clew.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.halt = clew.nn.GRUCell(4, 8), clew.nn.Linear(8, 1)

        def forward(self, x, state):
            state = self.cell(x, state)
            return state, self.halt(state).sigmoid().item()  # parks two module calls deep

    class Outer(clew.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.start = Inner(), clew.nn.Parameter(clew.zeros(8))

        def forward(self, x):
            state, total, steps = self.start, 0.0, 0
            while total < 2.2 and steps < 12:
                state, p = self.inner(x, state)
                total, steps = total + p * x[0].abs().item(), steps + 1
            return state, steps

    model = Outer()
    for _ in range(3):
        rows = clew.randn(24, 4).unbind()
        expected = [model(r) for r in rows]
        got = clew.autobatch.map(model, rows)
        assert [s for _, s in got] == [s for _, s in expected] and len({s for _, s in got}) > 1
        for (a, _), (b, _) in zip(got, expected, strict=True):
            np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-5, atol=1e-6)
        # Every call knows its own module, also those after the value came.
        paths = {n.module for n in clew.graph(clew.stack([s for s, _ in got]).sum()) if n.module}
        assert paths == {"inner.cell"}

    def failing(x):
        if x[0].item() > 0:
            raise ZeroDivisionError
        return model(x)

    with pytest.raises(ZeroDivisionError):
        clew.autobatch.map(failing, clew.ones(3, 4).unbind())
    model(rows[0])  # the calls in progress are this task's


def test_map_keeps_what_autocast_was_asked_for():
    pytest.importorskip("greenlet")
    x = clew.randn(4, 4)

    def f(kind):
        with clew.autocast("cpu", dtype=kind):
            first = (x @ x).sum().item()
            return (x @ x).dtype, first

    kinds = [clew.bfloat16, clew.float16, clew.bfloat16]
    assert [d for d, _ in clew.autobatch.map(f, kinds)] == kinds


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: {"rows": [r, None]}])
def test_map_names_the_sample_whose_result_cannot_be_computed(wrap):
    pytest.importorskip("greenlet")
    table = clew.ones(3, 2)

    def run(i):
        return wrap(nn.functional.embedding(clew.tensor(i), table))

    with pytest.raises(IndexError, match="made at") as caught:
        clew.autobatch.map(run, [0, 1, 7, 2, 8])
    assert caught.value.__notes__ == ["in sample 2 of autobatch.map"]


def test_map_draws_alike_for_the_same_seed():
    pytest.importorskip("greenlet")

    def run(x):
        steps = 0
        while steps < 3 and (nn.functional.dropout(x, 0.5).sum() + clew.rand(())).item() > 0.5:
            steps += 1
        return clew.rand(2), steps

    def once():
        clew.manual_seed(3)
        return [(r.tolist(), n) for r, n in clew.autobatch.map(run, [clew.ones(2)] * 6)]

    first = once()
    assert first == once()
    assert len({n for _, n in first}) > 1


@pytest.mark.parametrize(
    "norm",
    [nn.InstanceNorm1d, nn.BatchNorm1d, lambda *a, **k: nn.BatchNorm1d(*a, momentum=None, **k)],
    ids=["instance", "batch", "cumulative"],
)
def test_map_counts_every_sample_in_running_statistics(norm):
    pytest.importorskip("greenlet")
    clew.manual_seed(0)
    samples = list(clew.randn(5, 2, 3, 4))
    plain, mapped = (norm(3, track_running_stats=True) for _ in range(2))
    for x in samples:
        plain(x * 2)
    clew.autobatch.map(lambda x: mapped(x * 2), samples)
    assert_close(mapped.running_mean, plain.running_mean)
    assert_close(mapped.running_var, plain.running_var)


def test_map_gives_each_task_the_callers_context():
    pytest.importorskip("greenlet")
    number = contextvars.ContextVar("number", default=0)
    number.set(5)

    def run(x):
        number.set(number.get() + 1)
        x.sum().item()
        return number.get(), str(decimal.Decimal(1) / 3)

    with decimal.localcontext() as context:
        context.prec = 3
        assert clew.autobatch.map(run, clew.ones(3, 2)) == [(6, "0.333")] * 3
    assert number.get() == 5


class Own(clew.Tensor):
    pass


class Counting(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_map_keeps_subclasses():
    pytest.importorskip("greenlet")
    samples = [x.as_subclass(Own) for x in clew.ones(4, 2)]
    results = clew.autobatch.map(lambda x: (x * 2).sum() + 1, samples)
    assert [type(y) for y in results] == [Own] * 4
    assert [y.item() for y in results] == [5.0] * 4


def test_map_keeps_function_modes_of_tasks_apart():
    pytest.importorskip("greenlet")
    samples = list(clew.ones(4, 2))

    def run(x):
        with Counting() as own:
            y = x * 2
            y.sum().item()
            y = y + 1
        return own.calls

    plain = [run(x) for x in samples]
    assert clew.autobatch.map(run, samples) == plain
    counts = []
    for every in (lambda f: [f(x) for x in samples], lambda f: clew.autobatch.map(f, samples)):
        with Counting() as outer:
            every(lambda x: (x * 2).sum().item() + 1)
        counts.append(outer.calls)
    assert counts[0] == counts[1] > 0


def _asked(x):
    return x * (2 + 0 * x.sum().item())


@pytest.mark.parametrize(
    "transform",
    [
        lambda x: clew.func.grad(lambda y: _asked(_asked(y.sin()) * y).sum())(x),
        lambda x: clew.func.grad(
            lambda y: clew.func.grad(lambda z: _asked(z.sin() * z).sum())(y).square().sum()
        )(x),
        lambda x: clew.func.vjp(lambda y: _asked(_asked(y.sin()) * y), x)[1](x)[0],
        lambda x: clew.func.jacrev(lambda y: _asked(_asked(y.sin()) * y))(x),
        lambda x: clew.func.jvp(lambda y: _asked(_asked(y.sin()) * y), (x,), (x,))[1],
        lambda x: clew.func.hessian(lambda y: _asked(_asked(y.sin()) * y).sum())(x),
    ],
    ids="grad grad_of_grad vjp jacrev jvp hessian".split(),
)
@pytest.mark.parametrize("wanted", [False, True])
def test_map_transforms_record_what_they_record_of_one_sample(transform, wanted):
    """The batches' graph reaches the leaves of all samples, which do not depend on each other."""
    pytest.importorskip("greenlet")
    clew.manual_seed(0)
    samples = list(clew.randn(3, 4, requires_grad=wanted))
    plain = [transform(x) for x in samples]
    batched = clew.autobatch.map(transform, samples)
    for got, want in zip(batched, plain):
        assert got.requires_grad is want.requires_grad is wanted
        assert_close(got.detach(), want.detach())


@pytest.mark.parametrize("name", ["vjp", "vhp", "hvp", "jvp"])
def test_map_functional_derivatives_leave_the_samples_graph(name):
    """Calls inside of them run together with those of samples that still need what was saved."""
    pytest.importorskip("greenlet")
    derivative = getattr(clew.autograd.functional, name)
    w, v = clew.rand(4, requires_grad=True), clew.rand(4)
    whole = name in ("vhp", "hvp")

    def run(k):
        y = ((w * k) * 2).tanh()
        got = derivative(lambda u: (t := (u * 2).tanh(), t.sum())[whole], v, v)[1]
        assert y.sum().item() > 0
        return (y * got).sum()

    (want,) = clew.autograd.grad(sum(run(k) for k in range(1, 4)), w)
    (got,) = clew.autograd.grad(sum(clew.autobatch.map(run, range(1, 4))), w)
    assert_close(got, want)
