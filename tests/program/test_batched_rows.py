"""Samples of different lengths: calls that go row by row run as one on the rows of all."""

from __future__ import annotations

import pytest
from plain_and_batched import assert_close, both, sizes_of

import clew
from clew import nn
from clew.nn import functional as F

D = 6
LENGTHS = [5, 1, 3, 8, 3, 2]


def samples(lengths=tuple(LENGTHS), dtype=clew.float32, width=D):
    clew.manual_seed(0)
    return [clew.randn(n, width, dtype=dtype) for n in lengths]


weight = clew.randn(4, D, requires_grad=True)
other = clew.randn(4, D, requires_grad=True)
bias = clew.randn(4, requires_grad=True)
table = clew.randn(9, D, requires_grad=True)
frozen = clew.randn(D, 5)
norm = nn.LayerNorm(D)
rms = nn.RMSNorm(D)
conv = nn.Conv1d(D, 4, 1)

PROGRAMS = {
    "linear": lambda x: F.linear(x, weight, bias).tanh(),
    "two weights": lambda x: F.linear(x, weight) * F.linear(x, other, bias),
    "product": lambda x: (x @ frozen).relu() @ clew.ones(5),
    "frozen": lambda x: (x @ frozen).sigmoid().sum(-1),
    "softmax": lambda x: F.softmax(x, -1) + F.log_softmax(x, dim=1),
    "sum of rows": lambda x: (x * table[0]).sum(0),
    "sum of rows, kept": lambda x: x.exp().sum(0, keepdim=True) * 2,
    "mean of rows": lambda x: (x * x).mean(0),
    "mean of all": lambda x: (x * 3).mean() + (x - 1).sum(),
    "mean in a row": lambda x: x - x.mean(1, keepdim=True),
    "centred": lambda x: (x - x.mean(0)).exp(),
    "centred, kept": lambda x: (
        (x - x.mean(0, keepdim=True)) / (x.var(0, correction=0, keepdim=True) + 1) * x.exp()
    ),
    "a number a sample": lambda x: x * x.sum() + x.amax(),
    "norms": lambda x: norm(x) * rms(x),
    "norms of heads": lambda x: F.layer_norm((x * 1).view(x.shape[0], 2, 3), [3]),
    "picked": lambda x: (x * 2)[clew.arange(x.shape[0] - 1, -1, -1)],
    "picked twice": lambda x: (x * 2)[clew.tensor([0, 0, x.shape[0] - 1])].square(),
    "columns": lambda x: (x * 2)[:, 1:4].exp() + (x + 1)[:, clew.tensor([0, 2, 5])],
    "one column": lambda x: (x * 2)[:, 1] * (x + 1).select(1, 2),
    "a row": lambda x: (x * 2)[0] + (x + 1)[-1],
    "later rows": lambda x: (x * 2)[1:].sum(0) + (x + 1)[:-1].sum(0),
    "parts": lambda x: clew.cat([t.tanh() for t in (x * 2).chunk(3, dim=1)], 1),
    "joined along rows": lambda x: clew.cat([x * 2, x + 1], 0).cos(),
    "views": lambda x: ((x * 2).view(x.shape[0], 2, 3).transpose(1, 2) + 1).reshape(-1, 2).exp(),
    "flat": lambda x: (x * 2).view(-1).square(),
    "turned": lambda x: (x * 2).t() @ (x + 1),
    "dims": lambda x: ((x * 2).unsqueeze(1) * (x + 1).unsqueeze(-1)).sum((1, 2)),
    "squeezed": lambda x: (x.sum(1, keepdim=True) * 2).squeeze(1).exp(),
    "where": lambda x: clew.where(x > 0, x * 2, x.sum()),
    "cast": lambda x: (x * 2).double().sum(1).float(),
    "copied": lambda x: (x * 2).clone().exp(),
    "sorted": lambda x: (x * 2).sort(dim=1)[0].cumsum(1),
    "convolved": lambda x: conv((x * 1).unsqueeze(-1)).squeeze(-1),
    "attention": lambda x: F.softmax(x @ x.T, -1) @ F.linear(x, weight),
    "recurrent": lambda x: nn.functional.silu(F.linear(x, weight)).max(0).values,
    "scores": lambda x: F.cross_entropy(x * 2, clew.arange(x.shape[0]) % D),
    "embedded": lambda x: F.embedding(clew.arange(x.shape[0]), table) * x,
    "dropped": lambda x: F.dropout(x * 2, 0.5) * 2,
}
PARAMETERS = [weight, other, bias, table, *norm.parameters(), *rms.parameters(), *conv.parameters()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    program = PROGRAMS[name]
    xs = [x.requires_grad_() for x in samples()]

    def with_zeros(x):
        return program(x) + sum(p.sum() * 0 for p in PARAMETERS)

    both(with_zeros, xs, [*PARAMETERS, *xs])


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_gradients(name):
    with clew.no_grad():
        both(PROGRAMS[name], samples(dtype=clew.float32))


@pytest.mark.parametrize("name", ["linear", "centred", "mean of all", "softmax", "picked", "norms"])
def test_second_derivatives(name):
    program = PROGRAMS[name]

    def second(batched):
        xs = [x.requires_grad_() for x in samples()]
        if batched:
            with clew.autobatch():
                ys = [program(x) for x in xs]
        else:
            ys = [program(x) for x in xs]
        first = clew.autograd.grad(sum(y.square().sum() for y in ys), xs, create_graph=True)
        return clew.autograd.grad(sum(g.square().sum() for g in first), xs)

    for got, want in zip(second(True), second(False)):
        assert_close(got, want, 1e-4)


def test_one_call_for_all_lengths():
    report = both(PROGRAMS["linear"], samples(range(1, 30)), [weight, bias])
    assert sizes_of(report, "linear") == [29] and sizes_of(report, "tanh") == [29]
    report = both(PROGRAMS["two weights"], samples(range(1, 30)), [weight, other, bias])
    assert sizes_of(report, "linear") == [29, 29]
    report = both(PROGRAMS["mean of rows"], samples(range(1, 30)))
    assert sizes_of(report, "mean") == [29]
    report = both(PROGRAMS["frozen"], samples(range(1, 30)))
    assert sizes_of(report, "matmul") == [29] and sizes_of(report, "sum") == [29]


def test_samples_without_rows():
    xs = samples([0, 3, 0, 2])
    for name in ("linear", "softmax", "sum of rows", "centred", "norms", "picked", "views"):
        if name != "views":
            with clew.no_grad():
                plain = [PROGRAMS[name](x) for x in xs]
                with clew.autobatch():
                    batched = [PROGRAMS[name](x) for x in xs]
            for got, want in zip(batched, plain):
                assert got.shape == want.shape and clew.equal(got.isnan(), want.isnan())


def test_messages_along_edges():
    """Graphs as lists of edges: rows are picked, changed, and added up."""
    clew.manual_seed(3)
    graphs = []
    for n in (4, 7, 2, 5):
        edges = clew.randint(0, n, (2, 3 * n))
        graphs.append((clew.randn(n, D), edges[0], edges[1]))
    inner = nn.Linear(D, D)

    def program(graph):
        h, source, target = graph
        for _ in range(2):
            messages = inner(h)[source].relu()
            h = h + clew.zeros(h.shape).index_add(0, target, messages)
        return h.mean(0)

    report = both(program, graphs, list(inner.parameters()))
    assert sizes_of(report, "linear") == [4, 4] and sizes_of(report, "relu") == [4, 4]


def test_each_sample_names_its_own_rows():
    """A row beyond one sample's end is an error, not a row of the next sample."""
    xs = samples([4, 6, 5])
    index = clew.tensor([0, 4])

    def program(x):
        return (x * 2)[index]

    with pytest.raises(IndexError), clew.autobatch():
        [program(x) for x in xs]


def test_a_sample_that_is_not_finite_stays_by_itself():
    xs = samples()
    xs[2] = xs[2] * float("inf")
    w = clew.randn(4, D, requires_grad=True)
    with clew.autobatch():
        ys = [F.linear(x, w).relu() for x in xs]
    losses = clew.stack([y.sum() for i, y in enumerate(ys) if i != 2])
    losses.sum().backward()
    assert w.grad.isfinite().all()
    assert not ys[2].isfinite().all()


def test_results_are_kept_apart():
    """Writing into a result of one sample changes that of no other."""
    xs = samples()
    with clew.autobatch():
        ys = [(x * 2).exp() for x in xs]
    before = [y.clone() for y in ys]
    ys[1].add_(1)
    for i, (y, old) in enumerate(zip(ys, before)):
        assert clew.equal(y, old + 1 if i == 1 else old)


def test_views_show_what_is_written():
    with clew.autobatch():
        ys = [x * 2 for x in samples()]
        views = [y[:, 1:3] for y in ys]
    views[0].zero_()
    assert (ys[0][:, 1:3] == 0).all() and not (ys[3][:, 1:3] == 0).all()


@pytest.mark.parametrize("other_dtype", [clew.float64, clew.int64, clew.bool])
def test_numbers_of_samples_in_another_dtype(other_dtype):
    """A 0-d tensor counts less in the choice of the result's dtype."""
    scales = [clew.tensor(i % 2 + 1.0).to(other_dtype) for i in range(len(LENGTHS))]
    pairs = list(zip(samples(), scales))
    both(lambda pair: pair[0] * pair[1] + (pair[0] == pair[1]), pairs)


def test_lower_precision():
    with clew.autocast("cpu", dtype=clew.bfloat16):
        xs = samples()
        plain = [F.linear(x, weight) for x in xs]
        with clew.autobatch():
            batched = [F.linear(x, weight) for x in xs]
    for got, want in zip(batched, plain):
        assert got.dtype == want.dtype == clew.bfloat16
        assert clew.allclose(got.float(), want.float(), rtol=1e-2, atol=1e-2)


def test_map_over_lengths():
    pytest.importorskip("greenlet")

    def program(x):
        y = F.linear(x, weight)
        while y.abs().sum().item() > 3:
            y = y / 2
        return y.sum(0)

    xs = samples(range(1, 12))
    with clew.no_grad():
        for got, want in zip(clew.autobatch.map(program, xs), [program(x) for x in xs]):
            assert_close(got, want)
