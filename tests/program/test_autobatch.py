"""Many samples at once: results, gradients and side effects as without it, and what is grouped."""

from __future__ import annotations

import gc
import io
import pickle
import random
import sys

import numpy as np
import pytest

import clew
from clew import nn
from clew._program import autobatch


@pytest.fixture(autouse=True)
def no_history():
    """Regions of one line in helpers of this file belong to many tests."""
    autobatch._history.clear()


def assert_close(got, want, rtol=1e-5):
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    scale = max(want.abs().max().item(), 1e-3) if want.numel() else 1.0
    assert ((got - want).abs() <= rtol * scale).all(), (got, want)


def both(function, samples, parameters=()):
    """The results of all samples and the gradients of their sum, plain and batched."""

    def gradients(results):
        loss = sum(r.sum() for r in results)
        for p in parameters:
            p.grad = None
        loss.backward()
        return [p.grad.clone() for p in parameters]

    clew.manual_seed(1)
    plain = [function(s) for s in samples]
    plain_gradients = gradients(plain) if parameters else []
    clew.manual_seed(1)
    with clew.autobatch():
        batched = [function(s) for s in samples]
    report = clew.autobatch.report()
    for got, want in zip(batched, plain):
        assert got.requires_grad == want.requires_grad
        assert_close(got.detach(), want.detach())
    if parameters:
        for got, want in zip(gradients(batched), plain_gradients):
            assert_close(got, want, 2e-5)
    return report


def sizes_of(report, operation):
    return sorted(g.members for g in report.groups if g.operation.endswith(operation))


# ---- what is grouped -----------------------------------------------------------------------------


def test_equal_samples_run_as_one_call_each():
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    report = both(model, list(clew.randn(8, 5)), list(model.parameters()))
    assert report.calls == 24 and [g.members for g in report.groups] == [8, 8, 8]
    assert report.observations == (("", 24),)


def test_different_lengths_are_grouped_step_by_step():
    cell = nn.LSTMCell(4, 6)

    def run(x):
        h = c = clew.zeros(6)
        for step in x:
            h, c = cell(step, (h, c))
        return h

    samples = [clew.randn(n, 4) for n in (3, 1, 5, 5, 2)]
    report = both(run, samples, list(cell.parameters()))
    assert len(report.groups) < report.calls / 2


class Tree(nn.Module):
    """A child-sum Tree-LSTM over nested tuples."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.leaf = nn.Embedding(10, width)
        self.gates = nn.Linear(width, 3 * width)
        self.forget = nn.Linear(width, width)

    def node(self, tree):
        if isinstance(tree, int):
            h = self.leaf(clew.tensor(tree))
            return h, h.tanh()
        children = [self.node(child) for child in tree]
        total = children[0][0]
        for h, _ in children[1:]:
            total = total + h
        i, o, u = self.gates(total).chunk(3, -1)
        c = i.sigmoid() * u.tanh()
        for h, memory in children:
            c = c + self.forget(h).sigmoid() * memory
        return o.sigmoid() * c.tanh(), c

    def forward(self, tree):
        return self.node(tree)[0]


def random_tree(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.randrange(10)
    return tuple(random_tree(rng, depth - 1) for _ in range(rng.randint(1, 3)))


def test_trees():
    rng = random.Random(0)
    trees = [random_tree(rng, 4) for _ in range(12)]
    model = Tree()
    report = both(model, trees, list(model.parameters()))
    assert len(report.groups) < report.calls / 4
    text = str(report)
    assert "tanh" in text and "test_autobatch.py" in text and "the region ended" in text


def test_weights_are_told_apart_and_their_samples_are_grouped():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)

    def run(x):
        return (first(x) * second(x)).sum()

    parameters = [*first.parameters(), *second.parameters()]
    report = both(run, list(clew.randn(6, 4)), parameters)
    assert sizes_of(report, "linear") == [6, 6]


def test_rows_of_a_weight_and_numbers():
    table = clew.randn(20, 4, requires_grad=True)
    report = both(lambda i: table[i] * 2 + i, list(range(6)), [table])
    assert sizes_of(report, "mul") == [6]
    assert sizes_of(report, "add") == [1] * 6  # each with a number of its own


def test_what_has_no_form_for_many_samples_and_what_is_large_runs_by_itself():
    report = both(lambda x: x.sin().cos(), [clew.randn(70_000) for _ in range(3)])
    assert [g.members for g in report.groups] == [1] * 6
    assert {g.why_alone for g in report.groups} == {"its tensors are large enough by themselves"}


def test_where_nothing_can_be_batched_calls_run_at_once_after_a_while():
    def region(n, longer=1):
        with clew.autobatch():
            return [clew.ones(3 + i * longer) * 2 for i in range(n)]

    def other():
        with clew.autobatch():
            return [clew.ones(3) * i for i in (2, 2)]

    gathered = []
    for _ in range(40):
        assert [t.sum().item() for t in region(3)] == [6.0, 8.0, 10.0]
        gathered.append(clew.autobatch.report().calls)
    assert gathered == [3] * 3 + [0] * 31 + [3] + [0] * 5
    other()
    assert clew.autobatch.report().calls == 2  # another line has a history of its own
    autobatch._history.clear()
    for n in (1, 1, 2, 1, 1):
        region(n, longer=0)
        assert clew.autobatch.report().calls == n


# ---- the same values -----------------------------------------------------------------------------


MODULES = {
    "layer norm": (lambda: nn.LayerNorm(6), (6,)),
    "rms norm": (lambda: nn.RMSNorm(6), (3, 6)),
    "batch norm": (lambda: nn.BatchNorm1d(6).eval(), (2, 6)),
    "attention": (lambda: nn.MultiheadAttention(6, 2), (4, 6)),
    "convolution": (lambda: nn.Conv1d(3, 4, 3), (3, 9)),
    "convolution 2d": (lambda: nn.Conv2d(3, 4, 3), (3, 9, 9)),
    "pooling": (lambda: nn.MaxPool2d(2), (3, 8, 8)),
    "gru": (lambda: nn.GRUCell(5, 6), (5,)),
    "lstm": (lambda: nn.LSTM(5, 6), (7, 5)),
    "softmax": (lambda: nn.Softmax(-1), (4, 6)),
    "gelu": (lambda: nn.GELU(), (6,)),
    "encoder": (lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), (4, 6)),
    "bilinear": (lambda: nn.Bilinear(4, 4, 3), (4,)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    make, shape = MODULES[name]
    clew.manual_seed(0)
    model = make()

    def run(x):
        arguments = {"attention": (x, x, x), "bilinear": (x, x)}.get(name, (x,))
        out = model(*arguments)
        return out[0] if isinstance(out, tuple) else out

    both(run, [clew.randn(shape) for _ in range(5)], list(model.parameters()))


def test_dropout_draws_the_same_numbers():
    model = nn.Sequential(nn.Linear(5, 50), nn.Dropout(0.5), nn.Linear(50, 3))
    report = both(model, list(clew.randn(6, 5)), list(model.parameters()))
    assert max(g.members for g in report.groups) == 6


def test_random_draws_in_order():
    def run(x):
        return x * 2 + clew.rand(3) + clew.randn_like(x)

    both(run, list(clew.randn(5, 3)))


@pytest.mark.parametrize("region", [clew.autobatch, clew.deferred])
def test_gamma_numbers_are_drawn_in_order(region):
    def draw():
        clew.manual_seed(0)
        half = clew.full((1 << 20,), 0.25, dtype=clew.float64) * 2  # waits, as it is large
        return clew._C.ops._log_gamma_draws(half), clew.rand(3)

    gammas, uniforms = draw()
    with region():
        others, after = draw()
    assert clew.equal(others, gammas) and clew.equal(after, uniforms)


def test_second_derivatives():
    w = clew.randn(3, 3, dtype=clew.float64, requires_grad=True)
    samples = list(clew.randn(4, 3, dtype=clew.float64))

    def loss(batched):
        with clew.autobatch() if batched else clew.enable_grad():
            return sum(((w @ x).tanh() @ x) for x in samples)

    results = []
    for batched in (False, True):
        (g,) = clew.autograd.grad(loss(batched), w, create_graph=True)
        (h,) = clew.autograd.grad(g.square().sum(), w)
        results.append((g.detach(), h))
    for got, want in zip(results[1], results[0]):
        assert_close(got, want, 1e-12)


def test_modes_belong_to_calls():
    w = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        a = w * 2
        with clew.no_grad():
            b = w * 2
        c = w * 2
        with clew.inference_mode():
            d = clew.ones(3) * 2
        assert a.requires_grad and not b.requires_grad and c.requires_grad
    assert a.grad_fn is not None and b.grad_fn is None and c.requires_grad
    assert d.is_inference() and not a.is_inference()
    (a.sum() + b.sum() + c.sum()).backward()
    assert w.grad.tolist() == [4.0] * 3


def test_autocast():
    model = nn.Linear(4, 4)

    def run(x):
        with clew.autocast("cpu", dtype=clew.bfloat16):
            return model(x)

    samples = list(clew.randn(4, 4))
    plain = [run(x) for x in samples]
    with clew.autobatch():
        batched = [run(x) for x in samples]
    for got, want in zip(batched, plain):
        assert got.dtype == want.dtype == clew.bfloat16
        assert clew.allclose(got.float(), want.float(), rtol=0.02)


# ---- observation ---------------------------------------------------------------------------------


def test_a_value_can_be_asked_for_at_any_time():
    x = clew.randn(3)
    with clew.autobatch():
        y = x * 2
        n = y.sum().item()
        z = y + n
        assert bool((z == x * 2 + n).all())
        assert np.array_equal(y.numpy(), (x * 2).numpy())
        assert z.tolist() == (x * 2 + n).tolist()
    assert len(clew.autobatch.report().observations) >= 3
    assert "test_autobatch.py" in clew.autobatch.report().observations[0][0]


def test_writing_in_place():
    x = clew.zeros(3)
    with clew.autobatch():
        y = x + 1
        x.add_(5)  # y must be of the old x
        z = y * 2
        z.add_(1)
        v = (y * 3)[0:2]
        w = v + 0
        v.fill_(7)
    assert y.tolist() == [1.0] * 3 and z.tolist() == [3.0] * 3
    assert w.tolist() == [3.0] * 2 and v.tolist() == [7.0] * 2


def test_views_share_memory_with_what_they_are_views_of():
    with clew.autobatch():
        y = clew.ones(4, 2) * 3
        first, rows = y[0], y.T
    first.fill_(0)
    assert y.tolist() == [[0, 0], [3, 3], [3, 3], [3, 3]]
    assert rows.tolist() == [[0, 3, 3, 3], [0, 3, 3, 3]]
    assert first._base is y and rows._base is y


def test_two_views_of_what_is_gone_share_memory():
    with clew.autobatch():
        y = clew.ones(4) * 3
        a, b = y[:2], y[1:]
        del y
    a.fill_(0)
    assert b.tolist() == [0, 3, 3]


def test_gradients_of_views():
    x = clew.ones(4, 2, requires_grad=True)
    with clew.autobatch():
        y = x * 3
        a, b = y[0], y.chunk(2)[1]
    (a.sum() + 2 * b.sum() + y.sum()).backward()
    assert x.grad.tolist() == [[6, 6], [3, 3], [9, 9], [9, 9]]


def test_a_result_written_afterwards_does_not_harm_backward():
    x = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = [(x * i).exp() for i in range(3)]
    with clew.no_grad():
        y[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z = clew.ones(3, requires_grad=True).exp()
        with clew.no_grad():
            z.zero_()
        z.sum().backward()
    y[1].sum().backward()
    assert clew.allclose(x.grad, clew.ones(3).exp())


def test_backward_inside():
    model = nn.Linear(3, 1)
    optimizer = clew.optim.SGD(model.parameters(), 0.1)
    x = clew.ones(2, 3)
    with clew.autobatch():
        for _ in range(3):
            loss = sum(model(r).square().sum() for r in x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        last = loss.item()
    first = sum((model(r) * 0 + 5).sum() for r in x).item()
    assert np.isfinite(last) and first == 10


def test_hooks_and_grad_fn():
    x = clew.ones(3, requires_grad=True)
    seen = []
    with clew.autobatch():
        y = x * 2
        assert y.requires_grad and not y.is_leaf
        y.register_hook(seen.append)
        z = x * 3
        assert z.grad_fn.name() == "MulBackward0"
        z.retain_grad()
        w = y + z
    w.sum().backward()
    assert seen[0].tolist() == [1.0] * 3 and z.grad.tolist() == [1.0] * 3
    assert x.grad.tolist() == [5.0] * 3


def test_detach_waits_on():
    x = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        ys = [(x * i).detach() * 2 for i in range(4)]
    report = clew.autobatch.report()
    assert len(report.observations) == 1 and not ys[0].requires_grad
    assert [y[0].item() for y in ys] == [0, 2, 4, 6]


def test_a_custom_function():
    class Double(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * (x == x)

    w = clew.ones(3, requires_grad=True)
    both(lambda s: Double.apply(w * s) + 1, [1.0, 2.0], [w])


def test_saved_tensor_hooks_checkpoint_and_vmap():
    w = clew.randn(3, 3, requires_grad=True)

    def run(x):
        with clew.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = (w @ x).tanh()
        y = clew.utils.checkpoint.checkpoint(lambda v: (v * 2).sin(), y, use_reentrant=False)
        return y + clew.func.vmap(lambda v: v * v)(w @ x)

    both(run, list(clew.randn(4, 3)), [w])


def test_numpy_memory_is_read_when_the_call_is_made():
    array = np.ones(3, np.float32)
    x = clew.from_numpy(array)
    with clew.autobatch():
        y = x * 2
        array[:] = 5
    assert y.tolist() == [2.0] * 3


def test_changed_data_and_flags():
    w = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = w * 2
        w.data = clew.full((3,), 7.0)
        z = w * 2
    assert y.tolist() == [2.0] * 3 and z.tolist() == [14.0] * 3
    w = clew.ones(3, requires_grad=True)
    with clew.autobatch():
        y = w * 2
        w.requires_grad_(False)
        z = w * 2
    assert y.requires_grad and not z.requires_grad


# ---- errors --------------------------------------------------------------------------------------


def test_errors_of_shapes_come_at_once():
    with clew.autobatch():
        y = clew.ones(3) * 2
        with pytest.raises(RuntimeError, match="size"):
            y + clew.ones(4)
        z = y + 1
    assert z.tolist() == [3.0] * 3


def test_errors_of_values_name_the_line_and_spare_the_others():
    table = nn.Embedding(4, 3)
    with pytest.raises(IndexError) as caught:
        with clew.autobatch():
            rows = [table(clew.tensor(i)) * 2 for i in (1, 2, 9, 3)]  # the line
    assert "test_autobatch.py" in str(caught.value)
    assert clew.equal(rows[0], table.weight[1] * 2) and clew.equal(rows[3], table.weight[3] * 2)
    with pytest.raises(IndexError):
        rows[2].sum().item()
    with pytest.raises(IndexError):
        print(rows[2])


def test_an_exception_of_the_program_goes_first():
    table = nn.Embedding(4, 3)
    with pytest.raises(KeyError):
        with clew.autobatch():
            bad = table(clew.tensor(9))
            raise KeyError
    with pytest.raises(IndexError):
        bad.tolist()


def test_nothing_is_kept():
    model = Tree(4)

    def once():
        with clew.autobatch():
            results = [model((1, (2, 3))) for _ in range(4)]
        return clew.stack(results).sum().item()

    once()
    gc.collect()
    before = clew.memory_stats()["live_bytes"]
    objects = len(gc.get_objects())
    for _ in range(3):
        once()
    gc.collect()
    assert len(gc.get_objects()) < objects + 200
    assert clew.memory_stats()["live_bytes"] <= before + 4096


def test_nesting_threads_and_use_afterwards():
    import threading

    results = {}

    def work(i):
        with clew.autobatch():
            results[i] = [(clew.ones(3) * j).sum() for j in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all([r.item() for r in results[i]] == [3.0 * j for j in range(10)] for i in range(3))
    with clew.autobatch():
        with clew.autobatch():
            a = clew.ones(2) * 2
        b = a + 1
    assert b.tolist() == [3.0, 3.0] and (b + 1).tolist() == [4.0, 4.0]


def test_random_programs():
    """Chains of operations on a pool of tensors, observed and branched on at random."""
    unary = ["tanh", "sigmoid", "exp", "neg", "abs", "square"]
    for seed in range(60):
        rng = random.Random(seed)
        w = clew.randn(4, 4, dtype=clew.float64, requires_grad=True)

        def sample(x, rng, w=w):
            pool = [x, x * 0.5]
            for _ in range(rng.randint(3, 15)):
                kind = rng.randrange(7)
                a = rng.choice(pool)
                if kind == 0:
                    pool.append(getattr(a.clamp(-2, 2), rng.choice(unary))())
                elif kind == 1:
                    pool.append(a + rng.choice(pool))
                elif kind == 2:
                    pool.append((w @ a).tanh())
                elif kind == 3:
                    pool.append(clew.cat([a[:2], rng.choice(pool)[2:]]))
                elif kind == 4 and rng.random() < 0.3:
                    pool.append(a * (1 if a.sum().item() > 0 else -1))
                elif kind == 5 and rng.random() < 0.5:
                    b = a * 1
                    b[0] = 3
                    pool.append(b)
                else:
                    pool.append(clew.stack(list(a.flip(0).unbind())))
            return sum(p.sum() for p in pool) + w.sum() * 0

        clew.manual_seed(seed)
        samples = list(clew.randn(rng.randint(1, 5), 4, dtype=clew.float64))
        seeds = [rng.randrange(3) for _ in samples]
        outcomes = []
        for batched in (False, True):
            with clew.autobatch() if batched else clew.enable_grad():
                results = [sample(x, random.Random(s)) for x, s in zip(samples, seeds)]
            (g,) = clew.autograd.grad(clew.stack(results).sum(), w)
            outcomes.append((clew.stack(results).detach(), g))
        assert_close(outcomes[1][0], outcomes[0][0], 1e-11)
        assert_close(outcomes[1][1], outcomes[0][1], 1e-10)


# ---- map -----------------------------------------------------------------------------------------


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


def squares(w):
    return lambda x: (x @ w).pow(2)


FUNCTIONS_OF_DERIVATIVES = {
    "grad": lambda w, x: clew.func.grad(lambda q: squares(w)(q).sum())(x @ w),
    "vjp": lambda w, x: clew.func.vjp(squares(w), x @ w)[1](clew.ones(1, 4))[0],
    "jvp": lambda w, x: clew.func.jvp(squares(w), (x @ w,), (x,))[1],
    "linearize": lambda w, x: clew.func.linearize(squares(w), x @ w)[1](x),
    "jacrev": lambda w, x: clew.func.jacrev(squares(w))(x @ w),
    "jacfwd": lambda w, x: clew.func.jacfwd(squares(w))(x @ w),
    "hessian": lambda w, x: clew.func.hessian(lambda q: squares(w)(q).sum())(x),
    "each": lambda w, x: clew.vmap(clew.func.grad(lambda q: squares(w)(q).sum()))(x @ w),
    "jacobian": lambda w, x: clew.autograd.functional.jacobian(
        squares(w), x @ w, create_graph=True
    ),
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS_OF_DERIVATIVES)
def test_transforms_of_results_that_wait(name, mapped):
    clew.manual_seed(0)
    w, samples = clew.randn(4, 4, requires_grad=True), list(clew.randn(4, 1, 4).unbind())

    def run(x):
        return FUNCTIONS_OF_DERIVATIVES[name](w, x)

    want = [run(x) for x in samples]
    if mapped:
        pytest.importorskip("greenlet")
        got = clew.autobatch.map(run, samples)
    else:
        with clew.autobatch():
            got = [run(x) for x in samples]
    grads = []
    for results in (got, want):
        assert all(r.requires_grad for r in results)
        grads.append(clew.autograd.grad(sum((r**2).sum() for r in results), w)[0])
    for g, v in zip((*got, grads[0]), (*want, grads[1]), strict=True):
        np.testing.assert_allclose(
            g.detach(), v.detach(), rtol=1e-4, atol=1e-5 * float(v.detach().abs().max())
        )


@pytest.mark.parametrize(
    "repeat",
    [lambda z: z.repeat(2, 1), lambda z: z.tile(2, 1), lambda z: z.repeat_interleave(2, 0)],
    ids=["repeat", "tile", "repeat_interleave"],
)
def test_repeated_rows_have_memory_of_their_own(repeat):
    """A result that waited was taken for a copy, so a write reached the other rows."""

    def f(x):
        z = x * 2
        y = repeat(z)
        y[0, 0] += 100.0
        return y, z

    x = clew.ones(1, 4)
    with clew.autobatch():
        y, z = f(x)
        f(x * 3)
    assert y.tolist() == [[102, 2, 2, 2], [2, 2, 2, 2]] and z.tolist() == [[2, 2, 2, 2]]


CHANGES_OF_SHAPE = {
    "squeeze_": ((1, 3), (0,)),
    "unsqueeze_": ((3,), (0,)),
    "t_": ((2, 3), ()),
    "transpose_": ((2, 3), (0, 1)),
    "swapaxes_": ((2, 3), (0, 1)),
    "as_strided_": ((2, 3), ((2,), (1,))),
}


@pytest.mark.parametrize("name", CHANGES_OF_SHAPE)
def test_changing_the_shape_of_a_result_in_place(name):
    shape, args = CHANGES_OF_SHAPE[name]
    w = clew.randn(*shape, requires_grad=True)

    def change(i):
        y = w * i
        return getattr(y, name)(*args).exp()

    both(change, range(3), [w])


def test_the_storage_of_a_result_is_its_memory():
    with clew.autobatch():
        y = clew.ones(4) * 3
        storage = y.untyped_storage()
        shown = clew.empty(0).set_(storage, 0, (4,))
        y.fill_(7)
        z = clew.ones(4) * 2
        assert z.detach().is_set_to(z)
    assert shown.tolist() == [7.0] * 4
    assert storage.data_ptr() == y.data_ptr()


@pytest.mark.parametrize("way", ["save", "pickle"])
def test_saved_results_share_memory_as_they_did(way):
    with clew.autobatch():
        y = clew.ones(6) * 3
        made = {"whole": y, "part": y[2:], "other": y + 1}
        if way == "save":
            file = io.BytesIO()
            clew.save(made, file)
            got = clew.load(io.BytesIO(file.getvalue()))
        else:
            got = pickle.loads(pickle.dumps(made))
    got["whole"].fill_(0)
    assert got["part"].tolist() == [0.0] * 4
    assert got["other"].tolist() == [4.0] * 6


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


def test_losses_of_samples_that_share_a_graph_are_differentiated_one_by_one() -> None:
    net = nn.Linear(3, 1)
    with clew.autobatch():
        losses = [net(clew.ones(3) * i).square().sum() for i in range(4)]
    losses[0].backward()
    with pytest.raises(RuntimeError, match=r"clew.autobatch.*add their losses up") as caught:
        losses[1].backward()
    assert "retain_graph=True in all rounds but the last" in str(caught.value)
