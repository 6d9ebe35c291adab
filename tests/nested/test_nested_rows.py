"""Ragged operations that look at whole rows, against the same operation on each dense row."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import clew

F = clew.nn.functional
COUNTS = [3, 1, 4]


def arrays(counts=COUNTS, sizes=(4,), seed=0):
    r = np.random.default_rng(seed)
    return [r.normal(size=(n, *sizes)) for n in counts]


def tensors(**options):
    return [clew.tensor(a) for a in arrays(**options)]


def nested(rows):
    return clew.nested.as_nested_tensor(rows)


def with_gaps(rows):
    """The same rows, other numbers before and between them."""
    gap = clew.full((2, *rows[0].shape[1:]), 99.0, dtype=rows[0].dtype)
    values = clew.cat([p for r in rows for p in (gap, r)])
    ends = np.cumsum([len(r) + 2 for r in rows])
    starts = [e - len(r) for e, r in zip(ends, rows)]
    return clew.nested.nested_tensor_from_jagged(
        values, clew.tensor([*starts, len(values)]), clew.tensor([len(r) for r in rows])
    )


def check(got, want):
    """Against a list of rows, a dense tensor, or several of either."""
    if isinstance(got, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            check(g, w)
    elif isinstance(want, list):
        assert got.is_nested
        assert len(got) == len(want)
        for g, w in zip(got.unbind(), want):
            clew.testing.assert_close(g, w, rtol=1e-9, atol=1e-12)
    else:
        assert not got.is_nested
        clew.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)


def fields(made):
    return tuple([m[i] for m in made] for i in range(len(made[0])))


W = clew.tensor(np.random.default_rng(7).normal(size=(4, 2)))
KERNEL = clew.tensor(np.random.default_rng(8).normal(size=(2, 4, 3)))
MANY = clew.tensor(np.random.default_rng(9).normal(size=(5, 4)))
EACH = clew.tensor(np.random.default_rng(10).normal(size=(3, 5, 4)))
BOTH = clew.tensor(np.random.default_rng(11).normal(size=(2, 4, 4)))

# Each case: of a ragged tensor (batch, ragged, 4) or its transpose, and of one row.
SAME = {
    "roll ragged": (lambda x: x.roll(1, 1), lambda r: r.roll(1, 0)),
    "roll dense": (lambda x: x.roll(-2, -1), lambda r: r.roll(-2, 1)),
    "roll both": (lambda x: clew.roll(x, (2, 1), (1, 2)), lambda r: r.roll((2, 1), (0, 1))),
    "tril": (lambda x: x.tril(), lambda r: r.tril()),
    "triu": (lambda x: clew.triu(x.transpose(1, 2), 1), lambda r: r.t().triu(1)),
    "tril of dense": (
        lambda x: (x.unsqueeze(-1) * W[:, 0]).tril(-1),
        lambda r: (r.unsqueeze(-1) * W[:, 0]).tril(-1),
    ),
    "einsum weights": (
        lambda x: clew.einsum("bij,jk->bik", x, W),
        lambda r: r @ W,
    ),
    "einsum turned": (lambda x: clew.einsum("bij,jk->bki", x, W), lambda r: (r @ W).t()),
    "einsum pairs": (
        lambda x: clew.einsum("bij,bij->bi", x, x * 2),
        lambda r: (r * r * 2).sum(1),
    ),
    "einsum dots": (lambda x: clew.einsum("...j,jk", x, W), lambda r: r @ W),
    "einsum lists": (lambda x: clew.einsum(x, [0, 1, 2], W, [2, 3], [0, 1, 3]), lambda r: r @ W),
    "cosine": (
        lambda x: F.cosine_similarity(x, x.exp(), dim=-1),
        lambda r: F.cosine_similarity(r, r.exp(), dim=-1),
    ),
    "cosine dense": (
        lambda x: F.cosine_similarity(x, W[:, 0], dim=2),
        lambda r: F.cosine_similarity(r, W[:, 0].unsqueeze(0), dim=1),
    ),
    "quantile dense": (lambda x: x.quantile(0.3, 2), lambda r: r.quantile(0.3, 1)),
    "nanquantile kept": (
        lambda x: x.nanquantile(0.7, 2, True),
        lambda r: r.nanquantile(0.7, 1, True),
    ),
    "bilinear": (lambda x: F.bilinear(x, x.exp(), BOTH), lambda r: F.bilinear(r, r.exp(), BOTH)),
    "rrelu": (lambda x: F.rrelu(x), lambda r: F.rrelu(r)),
    "diff dense": (lambda x: x.diff(), lambda r: r.diff()),
    "diff ragged": (lambda x: x.diff(dim=1), lambda r: r.diff(dim=0)),
    "mode": (lambda x: x.mode(2).values, lambda r: r.mode(1).values),
    "kthvalue": (lambda x: x.kthvalue(2, 2).values, lambda r: r.kthvalue(2, 1).values),
    "repeat": (lambda x: x.repeat(1, 2, 3), lambda r: r.repeat(2, 3)),
    "repeat dense": (lambda x: x.repeat(1, 1, 3), lambda r: r.repeat(1, 3)),
    "repeat_interleave": (
        lambda x: x.repeat_interleave(2, 1),
        lambda r: r.repeat_interleave(2, 0),
    ),
    "pad dense": (lambda x: F.pad(x, (1, 2), value=3.0), lambda r: F.pad(r, (1, 2), value=3.0)),
    "pad ragged": (lambda x: F.pad(x, (0, 0, 2, 1)), lambda r: F.pad(r, (0, 0, 2, 1))),
    "conv1d": (
        lambda x: F.conv1d(x.transpose(1, 2), KERNEL, W[0], padding=1),
        lambda r: F.conv1d(r.t().unsqueeze(0), KERNEL, W[0], padding=1).squeeze(0),
    ),
    "conv_transpose1d": (
        lambda x: F.conv_transpose1d(x.transpose(1, 2), KERNEL.transpose(0, 1), stride=2),
        lambda r: F.conv_transpose1d(r.t().unsqueeze(0), KERNEL.transpose(0, 1), stride=2).squeeze(
            0
        ),
    ),
    "group_norm": (
        lambda x: F.group_norm(x.transpose(1, 2), 2),
        lambda r: F.group_norm(r.t().unsqueeze(0), 2).squeeze(0),
    ),
    "max_pool1d": (
        lambda x: F.max_pool1d(x.transpose(1, 2), 3, 1, 1),
        lambda r: F.max_pool1d(r.t(), 3, 1, 1),
    ),
    "avg_pool1d": (
        lambda x: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1),
        lambda r: F.avg_pool1d(r.t(), 3, 1, 1),
    ),
    "cdist": (lambda x: clew.cdist(x, MANY), lambda r: clew.cdist(r, MANY)),
    "gather": (
        lambda x: x.gather(2, x.argsort(2)),
        lambda r: r.gather(1, r.argsort(1)),
    ),
    "gather ragged": (
        lambda x: x.gather(1, x.argsort(dim=1)),
        lambda r: r.gather(0, r.argsort(dim=0)),
    ),
    "take_along_dim": (
        lambda x: clew.take_along_dim(x, x.argsort(2), 2),
        lambda r: clew.take_along_dim(r, r.argsort(1), 1),
    ),
    "scatter": (
        lambda x: x.scatter(2, x.argsort(2), x * 2),
        lambda r: r.scatter(1, r.argsort(1), r * 2),
    ),
    "scatter_add ragged": (
        lambda x: x.scatter_add(1, x.argsort(dim=1), x.exp()),
        lambda r: r.scatter_add(0, r.argsort(dim=0), r.exp()),
    ),
    "index_add": (
        lambda x: x.index_add(2, clew.tensor([0, 0, 3, 1]), x),
        lambda r: r.index_add(1, clew.tensor([0, 0, 3, 1]), r),
    ),
    "index_fill": (
        lambda x: x.index_fill(2, clew.tensor([1]), 0.5),
        lambda r: r.index_fill(1, clew.tensor([1]), 0.5),
    ),
    "flatten ragged": (
        lambda x: x.unsqueeze(-1).mul(W[:, 0]).flatten(1, 2),
        lambda r: r.unsqueeze(-1).mul(W[:, 0]).flatten(0, 1),
    ),
    "flatten behind": (lambda x: x.transpose(1, 2).flatten(1), lambda r: r.t().flatten()),
    "unflatten ragged": (
        lambda x: x.repeat(1, 3, 1).unflatten(1, (-1, 3)),
        lambda r: r.repeat(3, 1).unflatten(0, (-1, 3)),
    ),
    "steps": (lambda x: x[:, ::2], lambda r: r[::2]),
    "steps from the second": (lambda x: x[:, 1::2, 1:], lambda r: r[1::2, 1:]),
    "index_fill ragged": (
        lambda x: x.index_fill(1, clew.tensor([0]), 0.5),
        lambda r: r.index_fill(0, clew.tensor([0]), 0.5),
    ),
    "unfold": (lambda x: x.unfold(2, 2, 1), lambda r: r.unfold(1, 2, 1)),
    "adjoint": (lambda x: x.adjoint(), lambda r: r.adjoint()),
    "broadcast": (
        lambda x: clew.broadcast_tensors(x, W[:, 0])[1] * x,
        lambda r: r * W[:, 0],
    ),
    "broadcast_to": (lambda x: clew.broadcast_to(x, x.shape), lambda r: r),
    "entr": (lambda x: clew.special.entr(x.exp()), lambda r: clew.special.entr(r.exp())),
    "bessel": (lambda x: clew.special.bessel_j0(x), lambda r: clew.special.bessel_j0(r)),
    "trapezoid dense": (lambda x: clew.trapezoid(x, dim=2), lambda r: clew.trapezoid(r, dim=1)),
}
# One result for each row, of the same size.
LEFT = {
    "quantile": (lambda x: x.quantile(0.3, 1), lambda r: r.quantile(0.3, 0)),
    "index_select": (
        lambda x: x.index_select(1, clew.tensor([0, 0])),
        lambda r: r.index_select(0, clew.tensor([0, 0])),
    ),
    "topk": (lambda x: x.topk(1, 1).values, lambda r: r.topk(1, 0).values),
    "topk smallest": (
        lambda x: clew.topk(x, 1, dim=1, largest=False).values,
        lambda r: r.topk(1, 0, False).values,
    ),
    "trapezoid": (lambda x: clew.trapezoid(x, dim=1), lambda r: clew.trapezoid(r, dim=0)),
    "kthvalue": (lambda x: x.kthvalue(1, 1).values, lambda r: r.kthvalue(1, 0).values),
    "aminmax": (lambda x: x.aminmax(dim=1).max, lambda r: r.aminmax(dim=0).max),
    "cosine": (
        lambda x: F.cosine_similarity(x, x.exp(), dim=1),
        lambda r: F.cosine_similarity(r, r.exp(), dim=0),
    ),
    "einsum": (
        lambda x: clew.einsum("bij,bik->bjk", x, x.exp()),
        lambda r: r.t() @ r.exp(),
    ),
    "adaptive_avg_pool1d": (
        lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 2),
        lambda r: F.adaptive_avg_pool1d(r.t(), 2),
    ),
}


@pytest.mark.parametrize("make", [nested, with_gaps])
@pytest.mark.parametrize("name", SAME)
def test_rows_stay_rows(name, make):
    call, reference = SAME[name]
    rows = tensors()
    check(call(make(rows)), [reference(r) for r in rows])


@pytest.mark.parametrize("make", [nested, with_gaps])
@pytest.mark.parametrize("name", LEFT)
def test_something_is_left_of_each_row(name, make):
    call, reference = LEFT[name]
    rows = tensors()
    check(call(make(rows)), clew.stack([reference(r) for r in rows]))


SMOOTH = {**SAME, **LEFT}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_to_second_order(name):
    call, reference = SMOOTH[name]
    weights = clew.tensor(np.random.default_rng(5).normal(size=100))

    def derivatives(of_rows):
        rows = [r.requires_grad_() for r in tensors()]
        total = sum(
            (m.reshape(-1) * weights[: m.numel()]).sum() for m in of_rows([r * r for r in rows])
        )
        first = clew.autograd.grad(total, rows, create_graph=True)
        again = sum((g * g).sum() for g in first)
        return first, clew.autograd.grad(again, rows)

    ours = derivatives(lambda rows: call(nested(rows)).unbind())
    plain = derivatives(lambda rows: [reference(r) for r in rows])
    for got, want in zip(ours, plain):
        for g, w in zip(got, want):
            clew.testing.assert_close(g, w, rtol=1e-8, atol=1e-10)


def test_einsum_of_rows_and_batches():
    rows = tensors()
    x = nested(rows)
    check(clew.einsum("bij,bkj->bik", x, EACH), [r @ e.t() for r, e in zip(rows, EACH.unbind())])
    check(clew.einsum("bij->j", x), clew.cat(rows).sum(0))
    check(clew.einsum("bij,bi->", x, x.sum(2)), sum((r * r.sum(1, True)).sum() for r in rows))
    other = tensors(counts=[2, 5, 1], seed=1)
    made = clew.einsum("bij,bkj->bi", x, nested(other))
    check(made, [r @ o.sum(0) for r, o in zip(rows, other)])
    assert made.size(1) == x.size(1)


def test_batch_norm_over_what_is_there():
    rows = tensors()
    x = nested(rows).float()
    module, plain = clew.nn.BatchNorm1d(4), clew.nn.BatchNorm1d(4)
    got = module(x.transpose(1, 2))
    want = plain(clew.cat(rows).float())
    clew.testing.assert_close(got.values().t(), want)
    clew.testing.assert_close(module.running_mean, plain.running_mean)
    clew.testing.assert_close(module.running_var, plain.running_var)
    assert int(module.num_batches_tracked) == 1
    module.eval(), plain.eval()
    clew.testing.assert_close(module(x.transpose(1, 2)).values().t(), plain(clew.cat(rows).float()))


def test_batch_norm_gradients():
    values = clew.tensor(np.concatenate(arrays()), requires_grad=True)
    weight = clew.tensor([1.0, 2.0, -1.0, 0.5], dtype=clew.float64, requires_grad=True)
    offsets = clew.tensor([0, 3, 4, 8])

    def f(v, w):
        x = clew.nested.nested_tensor_from_jagged(v, offsets).transpose(1, 2)
        return F.batch_norm(x, None, None, w, training=True).values()

    assert clew.autograd.gradcheck(f, (values, weight))
    assert clew.autograd.gradgradcheck(f, (values, weight))


def test_instance_norm():
    rows = tensors(counts=[3, 2, 4])
    got = clew.nn.InstanceNorm1d(4)(nested(rows).transpose(1, 2))
    check(got, [F.instance_norm(r.t().unsqueeze(0)).squeeze(0) for r in rows])


def test_modules_over_rows():
    rows = [r.float() for r in tensors()]
    x = nested(rows)
    bilinear = clew.nn.Bilinear(4, 4, 3)
    check(bilinear(x, x), [bilinear(r, r) for r in rows])
    conv = clew.nn.Conv1d(4, 2, 3, padding=1)
    check(conv(x.transpose(1, 2)), [conv(r.t()) for r in rows])
    cos = clew.nn.CosineSimilarity(dim=2)
    check(cos(x, x * x), [F.cosine_similarity(r, r * r, dim=1) for r in rows])


def test_rrelu_draws_between_its_bounds():
    x = nested([-clew.ones(1000), clew.ones(500)])
    clew.manual_seed(0)
    made = clew.nn.RReLU(0.2, 0.4)(x).values()
    slopes = -made[:1000]
    assert 0.2 <= float(slopes.min()) < 0.21 and 0.39 < float(slopes.max()) <= 0.4
    assert bool((made[1000:] == 1).all())
    y = x.clone()
    assert F.rrelu(y, inplace=True) is y
    assert abs(float(y.values()[0]) + (1 / 8 + 1 / 3) / 2) < 1e-6


@pytest.mark.parametrize("module", [clew.nn.Dropout1d, clew.nn.FeatureAlphaDropout])
def test_whole_channels_are_dropped(module):
    clew.manual_seed(0)
    made = module(0.5)(nested([clew.ones(3, 400), clew.ones(5, 400)]).transpose(1, 2))
    for row in made.unbind():
        assert bool((row == row[:, :1]).all())
        assert 120 < int((row[:, 0] == row.min()).sum()) < 280


def test_several_quantiles():
    rows = tensors()
    q = clew.tensor([0.2, 0.5], dtype=clew.float64)
    got = clew.quantile(nested(rows), q, dim=1)
    check(got, clew.stack([r.quantile(q, 0) for r in rows], 1))
    check(clew.quantile(nested(rows), q), clew.cat(rows).reshape(-1).quantile(q))
    with pytest.raises(RuntimeError, match="reduce the ragged dim, 1"):
        clew.quantile(nested(rows), q, dim=2)


def test_results_of_several_fields():
    rows = tensors()
    x = nested(rows)
    check(tuple(clew.frexp(x)), fields([tuple(clew.frexp(r)) for r in rows]))
    whole = clew.cat(rows)
    low, high = x.aminmax()
    check(low, whole.min())
    check(high, whole.max())
    made = x.mode(dim=1)
    check(made.indices, clew.stack([r.mode(dim=0).indices for r in rows]))


def test_looking_among_sorted_numbers():
    rows = tensors()
    x = nested(rows)
    edges = clew.tensor([-1.0, 0.0, 1.0], dtype=clew.float64)
    check(clew.bucketize(x, edges), [clew.bucketize(r, edges) for r in rows])
    check(clew.searchsorted(edges, x), [clew.searchsorted(edges, r) for r in rows])
    seen = rows[0][0]
    check(clew.isin(x, seen), [clew.isin(r, seen) for r in rows])
    check(x.unique(), clew.cat(rows).unique())


def test_writing_at_places():
    x = nested(tensors())
    want = [r.clone() for r in tensors()]
    x[0] = 1.0
    want[0].fill_(1.0)
    x[2, 1] = clew.tensor([1.0, 2.0, 3.0, 4.0], dtype=clew.float64)
    want[2][1] = clew.tensor([1.0, 2.0, 3.0, 4.0], dtype=clew.float64)
    x[:, :, 1] = -1.0
    for w in want:
        w[:, 1] = -1.0
    check(x, want)
    x[x > 1.5] = 0.0
    for w in want:
        w[w > 1.5] = 0.0
    check(x, want)
    where = (clew.tensor([0, 2]), clew.tensor([1, -1]))
    made = x.index_put(where, clew.zeros(4, dtype=clew.float64))
    want[0][1] = 0.0
    want[2][3] = 0.0
    check(made, want)
    assert not clew.equal(made, x)
    x.index_put_(where, clew.zeros(4, dtype=clew.float64))
    x[clew.tensor([1]), clew.tensor([0]), clew.tensor([2])] = 9.0
    want[1][0, 2] = 9.0
    check(x, want)


def test_new_tensors_and_memory():
    x = nested(tensors())
    assert tuple(x.new_zeros((2, 3)).shape) == (2, 3)
    assert x.new_ones(()).dtype is clew.float64
    made = x.new_full((3, x.size(1), 2), 5.0)
    check(made, [clew.full((n, 2), 5.0, dtype=clew.float64) for n in COUNTS])
    assert x.new_empty(x.shape).is_nested
    assert x.storage_offset() == 0
    assert not x.is_pinned()
    assert not x.is_shared()
    assert x.all(dim=(1, 2)).tolist() == [True, True, True]
    assert (x > 99).any(dim=(1, 2)).tolist() == [False, False, False]


def test_repeated_rows():
    rows = tensors()
    check(nested(rows).repeat_interleave(2, 0), [r for r in rows for _ in range(2)])
    got = nested(rows).repeat_interleave(clew.tensor([0, 2, 1]), 0)
    check(got, [rows[1], rows[1], rows[2]])


def test_multinomial():
    x = nested([clew.tensor([0.0, 1.0]), clew.tensor([0.0, 0.0, 2.0])])
    assert x.multinomial(1).tolist() == [[1], [2]]


X = nested([clew.ones(2, 3), clew.ones(4, 3)])
BAD = [
    (lambda: X.roll(1), RuntimeError, "dims must be given"),
    (lambda: X.roll(1, 0), RuntimeError, "batch dim"),
    (lambda: X.sum(2).tril(), RuntimeError, "rows must be matrices"),
    (lambda: clew.einsum("bij,bkj->bik", X, X), RuntimeError, "at most one ragged dim"),
    (lambda: clew.einsum("bij->jb", X), RuntimeError, "batch in dim 0"),
    (lambda: clew.einsum("bij,cij->b", X, X), RuntimeError, "same label"),
    (lambda: clew.einsum("bij->i", X), RuntimeError, "ragged dim with it"),
    (lambda: F.cosine_similarity(X, X, dim=0), RuntimeError, "batch dim"),
    (lambda: F.cosine_similarity(X, X[:, :1], dim=2), RuntimeError, "same lengths"),
    (lambda: F.batch_norm(X, None, None, training=True), RuntimeError, r"transpose\(1, 2\)"),
    (lambda: F.group_norm(X, 1), RuntimeError, r"transpose\(1, 2\)"),
    (lambda: F.conv1d(X, clew.ones(2, 3, 1)), RuntimeError, r"transpose\(1, 2\)"),
    (
        lambda: F.instance_norm(X.transpose(1, 2), clew.zeros(3), clew.ones(3)),
        NotImplementedError,
        "track_running_stats=False",
    ),
    (lambda: F.bilinear(X.mT, X.mT, clew.ones(1, 3, 3)), RuntimeError, "last dim"),
    (lambda: X.repeat(2, 1, 1), RuntimeError, "repeat_interleave"),
    (lambda: F.pad(X, (0, 0, 0, 0, 1, 0)), RuntimeError, "batch dim"),
    (lambda: clew.cdist(X, X), NotImplementedError, "second dense"),
    (lambda: X.index_put((clew.tensor([0]),), clew.ones(1)), NotImplementedError, "unbind"),
    (lambda: X.index_put_((clew.tensor([0]), clew.tensor([2])), X.values()[0]), IndexError, "row"),
    (lambda: X.__setitem__((slice(None), 0), 1.0), NotImplementedError, "no view"),
    (lambda: X.__setitem__([0], 1.0), NotImplementedError, "one by one"),
    (lambda: X.new_zeros((3, X.size(1))), RuntimeError, "number of rows, 2"),
    (lambda: X.scatter(1, (X * 3).long(), 1.0), RuntimeError, "out of range for its row"),
    (lambda: X.scatter(0, X.long(), 1.0), RuntimeError, "batch dim"),
    (lambda: X.diff(dim=0), RuntimeError, "batch dim"),
    (lambda: X.kthvalue(3, 1), RuntimeError, "kthvalue"),
    (lambda: X.topk(3, 1), RuntimeError, "topk"),
    (lambda: X.unflatten(1, (2, 2)), RuntimeError, "-1"),
    (lambda: X.unflatten(1, (-1, 3)), RuntimeError, "3"),
    (lambda: X.index_select(1, clew.tensor([2])), IndexError, "shortest row"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_is_refused(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


def test_rows_side_by_side():
    rows = tensors()
    x = nested(rows)
    check(clew.hstack([x, x * 2]), [clew.cat([r, r * 2]) for r in rows])
    check(clew.vstack([x, x * 2]), [*rows, *(r * 2 for r in rows)])


def test_operators_of_bits():
    a = clew.nested.nested_tensor([clew.tensor([6, 3]), clew.tensor([1])], layout=clew.jagged)
    b = clew.nested.nested_tensor_from_jagged(clew.tensor([3, 5, 1]), a.offsets())
    for call in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        for x, y in (
            (a, b),
            (a, 1),
            (a > 2, b > 2) if call in (operator.and_, operator.or_) else (b, 2),
        ):
            got = call(x, y)
            parts = [v.values() if isinstance(v, clew.Tensor) else v for v in (x, y)]
            assert got.is_nested and got.values().tolist() == call(*parts).tolist()


def test_histograms_count_the_elements_of_all_rows():
    x = clew.nested.nested_tensor([clew.rand(2, 3), clew.rand(4, 3)], layout=clew.jagged)
    values = x.values()
    assert clew.histc(x, 4, 0, 1).tolist() == clew.histc(values, 4, 0, 1).tolist()
    for got, want in zip(x.histogram(3), values.histogram(3)):
        assert got.tolist() == want.tolist()
    with pytest.raises(NotImplementedError, match="histc: there is no rule"):
        clew.histc(clew.ones(3), x)
    with pytest.raises(NotImplementedError, match="__dlpack_device__: there is no rule"):
        clew.from_dlpack(x)


def test_masked_select_counts_all_dims_but_the_last_as_rows():
    x = clew.arange(24.0).reshape(2, 3, 4)
    for mask in (x % 3 > 0, clew.tensor([[True], [False], [True]]), x[0] > 5):
        got = clew.nested.masked_select(x, mask)
        wide = mask.expand(2, 3, 4).reshape(6, 4)
        want = [row[chosen].tolist() for row, chosen in zip(x.reshape(6, 4), wide)]
        assert [row.tolist() for row in got.unbind()] == want
    one = clew.nested.masked_select(x[0, 0], x[0, 0] > 1)
    assert one.size(0) == 1 and one.values().tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match=r"masked_select: mask must be broadcastable .*\[1, 4\]"):
        clew.nested.masked_select(x[0, :1], x[0] > 1)


def test_where_as_a_method_and_parts_of_complex_numbers():
    x = clew.nested.nested_tensor([clew.randn(n, 4) for n in (3, 1, 2)], layout=clew.jagged)
    for made in (
        x.where(x > 0, 2.0),
        x.where(condition=x > 0, other=2.0),
        x.where(x > 0, x * 0 + 2),
    ):
        for got, row in zip(made.unbind(), x.unbind(), strict=True):
            np.testing.assert_array_equal(got, np.where(row > 0, row, 2.0))
    other = clew.ones(4).where(x > 0, x)
    np.testing.assert_array_equal(other.values(), np.where(x.values() > 0, 1.0, x.values()))
    z = x.to(clew.complex64) * (1 + 2j)
    np.testing.assert_array_equal(z.real.values(), z.values().real)
    np.testing.assert_array_equal(z.imag.values(), z.values().imag)
    np.testing.assert_array_equal(z.conj_physical().values(), z.values().conj_physical())
    np.testing.assert_array_equal(z.mH.unbind()[0], z.unbind()[0].mH)
    assert x.real.values().data_ptr() == x.values().data_ptr()
