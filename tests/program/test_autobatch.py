"""Many samples at once: results, gradients and side effects as without it, and what is grouped."""

from __future__ import annotations

import gc
import itertools
import random

import pytest
from plain_and_batched import assert_close, both, sizes_of

import clew
from clew import nn
from clew._program import autobatch


@pytest.fixture(autouse=True)
def no_history():
    """Regions of one line in helpers belong to many tests."""
    autobatch._history.clear()


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


@pytest.mark.parametrize("seed", range(6))
def test_products_wait_for_the_others_of_their_height(seed):
    rng = random.Random(seed)
    linear, leaf = nn.Linear(8, 8), clew.rand(8)

    def grow(size: int) -> list:
        if size == 1:
            return []
        children = rng.randint(1, min(3, size - 1))
        cuts = [0, *sorted(rng.sample(range(1, size - 1), children - 1)), size - 1]
        return [grow(b - a) for a, b in itertools.pairwise(cuts)]

    def height(tree: list) -> int:
        return 1 + max(map(height, tree)) if tree else 0

    def value(tree: list) -> clew.Tensor:
        if not tree:
            return leaf * 1
        total = value(tree[0])
        for child in tree[1:]:
            total = total * value(child)
        return linear(total).tanh()

    trees = [grow(rng.randint(5, 40)) for _ in range(16)]
    with clew.autobatch():
        batched = [value(tree) for tree in trees]
    products = [g for g in clew.autobatch.report().groups if "linear" in g.operation]
    assert len(products) == max(map(height, trees))
    for got, tree in zip(batched, trees, strict=True):
        assert_close(got, value(tree))


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


def test_where_little_can_be_batched_calls_run_at_once_after_a_while():
    def region(n, longer=1, times=2):
        with clew.autobatch():
            return [clew.ones(1, 3 + i * longer) * times for i in range(n)]

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
    for n in (1, 1, 20, 1, 1):
        region(n, longer=0, times=clew.ones(1, 3, requires_grad=True))
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


def test_dropout_keeps_the_order_of_the_dims():
    def dropped(x):
        return nn.functional.dropout(x.t() * 2, 0.5)

    samples = [clew.randn(n, 4) for n in (3, 3, 5)]
    clew.manual_seed(0)
    plain = [dropped(x) for x in samples]
    clew.manual_seed(0)
    with clew.autobatch():
        got = [dropped(x) for x in samples]
    for a, b in zip(plain, got):
        assert a.stride() == b.stride() == (1, 4) and clew.equal(a, b)


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


def test_losses_of_samples_that_share_a_graph_are_differentiated_one_by_one() -> None:
    net = nn.Linear(3, 1)
    with clew.autobatch():
        losses = [net(clew.ones(3) * i).square().sum() for i in range(4)]
    losses[0].backward()
    with pytest.raises(RuntimeError, match=r"clew.autobatch.*add their losses up") as caught:
        losses[1].backward()
    assert "retain_graph=True in all rounds but the last" in str(caught.value)


def test_a_region_that_was_not_entered_cannot_end() -> None:
    region = clew.autobatch()
    with region:
        pass
    with pytest.raises(RuntimeError, match="autobatch: the region was not entered"):
        region.__exit__(None, None, None)


def test_an_inference_tensor_that_backward_would_need_is_refused_at_its_call():
    layer = nn.Linear(3, 2)
    x = clew.randn(3)
    with clew.inference_mode():
        given = x * 2
    with clew.autobatch():
        with clew.inference_mode():
            waiting = x * 3
        for t in (given, waiting):
            with pytest.raises(RuntimeError, match="inference tensors cannot be saved"):
                layer(t)
        added = layer(x) + waiting[:2]  # saves neither
        with clew.no_grad():
            plain = layer(waiting)
    added.sum().backward()
    assert clew.equal(layer.bias.grad, clew.ones(2) * 1) and not plain.requires_grad


# ---- as a decorator ------------------------------------------------------------------------------


def test_a_decorated_function_is_a_region_at_each_call():
    model, samples = nn.Linear(4, 3), list(clew.randn(8, 4))

    @clew.autobatch()
    def losses(samples, scale=1.0):
        """Each by itself."""
        return [(model(x) * scale).tanh().mean() for x in samples]

    assert (losses.__name__, losses.__doc__) == ("losses", "Each by itself.")
    for scale in (1.0, 3.0):
        got = losses(samples, scale=scale)
        assert [g.members for g in clew.autobatch.report().groups] == [8, 8, 8, 8]
        want = [(model(x) * scale).tanh().mean() for x in samples]
        assert_close(clew.stack(got), clew.stack(want))
    assert not clew._C._gathers()
    with pytest.raises(RuntimeError):
        losses([clew.randn(5)])
    assert not clew._C._gathers()


def test_a_decorated_generator_runs_each_step_in_a_region():
    model = nn.Linear(4, 3)

    @clew.autobatch()
    def batches(samples):
        for part in (samples[:4], samples[4:]):
            yield [model(x).tanh() for x in part]
            assert clew._C._gathers()

    seen = []
    for results in batches(list(clew.randn(8, 4))):
        assert not clew._C._gathers()
        seen.append(([g.members for g in clew.autobatch.report().groups], len(results)))
    assert seen == [([4, 4], 4), ([4, 4], 4)]


def test_decorated_functions_have_histories_of_their_own():
    """One that finds nothing to batch does not let another one's calls run at once."""

    @clew.autobatch()
    def nothing():
        clew.ones(3) + 1

    @clew.autobatch()
    def much(samples):
        return [x.tanh().mean() for x in samples]

    for _ in range(5):
        nothing()
    assert clew.autobatch.report().calls == 0  # its pause
    much(list(clew.randn(16, 4)))
    assert clew.autobatch.report().calls == 32
