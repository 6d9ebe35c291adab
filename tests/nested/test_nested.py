"""Ragged tensors against references made row by row."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import clew

COUNTS = [3, 1, 4]


def rows(counts=COUNTS, sizes=(2,), seed=0, dtype="f8"):
    r = np.random.default_rng(seed)
    return [r.normal(size=(n, *sizes)).astype(dtype) for n in counts]


def ragged(arrays, **options):
    return clew.nested.nested_tensor([clew.tensor(a) for a in arrays], **options)


def with_gaps(arrays):
    """The same rows with others' elements before, between and behind them."""
    sizes = arrays[0].shape[1:]
    gap = np.full((2, *sizes), 99.0)
    values = np.concatenate([p for a in arrays for p in (gap, a)] + [gap])
    ends = np.cumsum([len(a) + 2 for a in arrays])
    starts = [e - len(a) for e, a in zip(ends, arrays)]
    return clew.nested.nested_tensor_from_jagged(
        clew.tensor(values),
        clew.tensor([*starts, len(values)]),
        lengths=clew.tensor([len(a) for a in arrays]),
    )


def check(got, want, **tolerance):
    """Rows of a ragged tensor, or a dense one, against arrays."""
    if isinstance(want, list):
        assert got.is_nested
        assert got.layout is clew.jagged
        got = got.unbind()
        assert len(got) == len(want)
        for g, w in zip(got, want):
            check(g, w, **tolerance)
        return
    assert not got.is_nested
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, **{"rtol": 1e-10, **tolerance})


def test_constructor_and_parts():
    arrays = rows()
    x = ragged(arrays)
    check(x, arrays)
    assert x.offsets().tolist() == [0, 3, 4, 8]
    assert x.lengths() is None
    np.testing.assert_array_equal(x.values().numpy(), np.concatenate(arrays))
    assert (x.dim(), x.size(0), x.size(2), x.size(-1)) == (3, 3, 2, 2)
    assert (x.numel(), len(x), x.nbytes) == (16, 3, 128)
    assert x.dtype is clew.float64
    assert (x.is_nested, clew.ones(1).is_nested) == (True, False)
    assert ragged(arrays, dtype=clew.float32).dtype is clew.float32
    assert x.is_contiguous()


def test_ragged_size_stands_for_itself():
    x = ragged(rows())
    j = x.size(1)
    assert j == (x * 2).size(1) == x.shape[1]
    assert j != ragged(rows([1, 3, 4])).size(1)
    assert x.shape.numel() == 16
    with pytest.raises(TypeError, match="another one in each row"):
        int(j)
    for use in (lambda: j - 1, lambda: j * j, lambda: j * 0.5, lambda: range(j), lambda: j // 2):
        with pytest.raises(TypeError, match=r"another one in each row.*to_padded_tensor"):
            use()
    with pytest.raises(TypeError, match="RaggedSize"):
        clew.zeros(x.shape)


def test_ragged_sizes_are_compared_and_multiplied():
    x = ragged(rows())
    j, other = x.size(1), ragged(rows([1, 3, 4])).size(1)
    # As PyTorch's: a size of rows counts as two or more.
    assert j > 0 and j > 1 and j >= 2 and 0 < j and 1 <= j and not j < 2 and not j <= 1
    assert j <= j and j >= j and not j < j and not j > j and 2 * j >= 2
    undecided = [lambda: j > 2, lambda: j <= 2, lambda: j < 5, lambda: 5 > j, lambda: max(j, 3)]
    for use in (*undecided, lambda: j < other, lambda: 2 * j > j, lambda: 0 * j >= 0):
        with pytest.raises(ValueError, match="another one in each row"):
            use()
    assert repr(2 * j * 3) == f"6*{j!r}" and (j * 1) == j and 2 * j == j * 2 != 3 * j
    assert len({2 * j, j * 2, j, 1 * j, 2 * other}) == 3
    with pytest.raises(TypeError):
        clew.zeros(2 * j)


def test_strides():
    x = ragged(rows())
    j = x.size(1)
    assert x.stride() == (2 * j, 2, 1)
    assert (x.stride(0), x.stride(1), x.stride(-1)) == (j * 2, 2, 1)
    assert x.transpose(1, 2).stride() == (2 * j, 1, 2)
    assert x.unflatten(-1, (1, 2)).transpose(1, 2).stride() == (2 * j, 2, 2, 1)
    assert x.sum(2).stride() == (j, 1)
    with pytest.raises(IndexError):
        x.stride(3)


def test_nested_lists_and_rows_that_differ_in_another_dim():
    x = clew.nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert x.values().tolist() == [1.0, 2.0, 3.0]
    arrays = [np.ones((2, 3)), np.zeros((2, 1))]
    y = ragged(arrays)
    check(y, arrays)
    assert y.size(1) == 2
    assert tuple(y.values().shape) == (2, 4)


def test_as_nested_tensor_keeps_the_graph():
    parts = [clew.tensor(a, requires_grad=True) for a in rows()]
    x = clew.nested.as_nested_tensor(parts)
    (x * x).sum().backward()
    for p in parts:
        np.testing.assert_allclose(p.grad.numpy(), 2 * p.detach().numpy())
    dense = clew.arange(12.0).reshape(2, 3, 2)
    check(clew.nested.as_nested_tensor(dense), list(dense.numpy()))
    assert clew.nested.as_nested_tensor(x) is x


def test_from_jagged():
    values = clew.tensor(np.concatenate(rows()), requires_grad=True)
    for options in ({"offsets": clew.tensor([0, 3, 4, 8])}, {"lengths": clew.tensor(COUNTS)}):
        x = clew.nested.nested_tensor_from_jagged(values, **options)
        check(x, rows())
        assert x.values() is values
    turned = clew.nested.nested_tensor_from_jagged(
        values.t(), clew.tensor([0, 3, 4, 8]), jagged_dim=2
    )
    check(turned, [a.T for a in rows()])


def test_narrow_and_masked_select():
    dense = clew.tensor(np.arange(24.0).reshape(2, 4, 3), requires_grad=True)
    x = clew.nested.narrow(dense, 1, clew.tensor([0, 1]), clew.tensor([2, 3]), layout=clew.jagged)
    a = dense.detach().numpy()
    check(x, [a[0, :2], a[1, 1:4]])
    assert x.offsets().tolist() == [0, 5, 8]
    assert x.lengths().tolist() == [2, 3]
    assert not x.is_contiguous()
    check(x.contiguous(), [a[0, :2], a[1, 1:4]])
    assert x.contiguous().offsets().tolist() == [0, 2, 5]
    x.sum().backward()
    want = np.zeros_like(a)
    want[0, :2] = want[1, 1:] = 1
    np.testing.assert_array_equal(dense.grad.numpy(), want)
    m = np.array([[1, 0, 1], [0, 0, 1]], bool)
    b = np.arange(6.0).reshape(2, 3)
    check(clew.nested.masked_select(clew.tensor(b), clew.tensor(m)), [b[0][m[0]], b[1][m[1]]])


@pytest.mark.parametrize("make", [ragged, with_gaps])
def test_to_padded_tensor(make):
    arrays = rows()
    want = np.full((3, 4, 2), -1.0)
    for i, a in enumerate(arrays):
        want[i, : len(a)] = a
    x = make(arrays)
    check(clew.nested.to_padded_tensor(x, -1.0), want)
    larger = x.to_padded_tensor(-1.0, (3, 5, 3))
    assert tuple(larger.shape) == (3, 5, 3)
    check(larger[:, :4, :2], want)
    assert bool((larger[:, 4] == -1).all())
    assert bool((larger[:, :, 2] == -1).all())


UNARY = [
    (lambda x: x.exp(), np.exp),
    (lambda x: -x, np.negative),
    (lambda x: 2 - x, lambda a: 2 - a),
    (lambda x: 1 / (x * x + 1), lambda a: 1 / (a * a + 1)),
    (lambda x: clew.nn.functional.relu(x), lambda a: np.maximum(a, 0)),
    (lambda x: x.clamp(-0.5, 0.5), lambda a: np.clip(a, -0.5, 0.5)),
    (lambda x: clew.where(x > 0, x, x * 0.1), lambda a: np.where(a > 0, a, a * 0.1)),
    (lambda x: x.masked_fill(x > 0, 0.0), lambda a: np.where(a > 0, 0.0, a)),
    (lambda x: clew.special.erf(x) * 0 + 1, np.ones_like),
    (lambda x: clew.ones_like(x), np.ones_like),
    (lambda x: x**2, np.square),
    (lambda x: (x > 0).logical_not().double(), lambda a: (a <= 0) * 1.0),
    (lambda x: x.clone().mul_(2).add_(1), lambda a: a * 2 + 1),
    (lambda x: x.float().double(), lambda a: a.astype("f4").astype("f8")),
    (lambda x: clew.clone(x), lambda a: a),
]


@pytest.mark.parametrize("make", [ragged, with_gaps])
@pytest.mark.parametrize("case", range(len(UNARY)))
def test_elementwise(case, make):
    call, reference = UNARY[case]
    arrays = rows()
    check(call(make(arrays)), [reference(a) for a in arrays])


@pytest.mark.parametrize("make", [ragged, with_gaps])
@pytest.mark.parametrize(
    "sizes", [(), (1,), (2,), (1, 1, 2), (3, 1, 2), (3, 1, 1), (3, 4, 2), (1, 4, 2), (4, 1), (1, 2)]
)
def test_broadcasting_against_dense(sizes, make):
    arrays = rows()
    d = np.random.default_rng(1).normal(size=sizes)
    full = np.broadcast_to(d, (3, 4, 2))
    want = [a - full[i, : len(a)] for i, a in enumerate(arrays)]
    x, dense = make(arrays), clew.tensor(d)
    check(x - dense, want)
    check(dense - x, [-w for w in want])
    check(clew.sub(x, other=dense), want)


def test_ragged_with_ragged():
    a, b = rows(), rows(seed=1)
    check(ragged(a) * ragged(b), [p * q for p, q in zip(a, b)])
    check(ragged(a) * with_gaps(b), [p * q for p, q in zip(a, b)])
    one = [p[:, :1] for p in a]
    check(ragged(a) + ragged(one), [p + q for p, q in zip(a, one)])
    assert clew.equal(ragged(a), with_gaps(a))
    assert not clew.equal(ragged(a), ragged(b))
    assert clew.allclose(ragged(a), ragged(a) + 1e-12)


REDUCTIONS = [
    ("sum", np.sum),
    ("mean", np.mean),
    ("amax", np.max),
    ("amin", np.min),
    ("prod", np.prod),
    ("argmax", np.argmax),
    ("std", lambda a, axis=None: np.std(a, axis=axis, ddof=1)),
    ("all", np.all),
    ("any", np.any),
    ("norm", lambda a, axis=None: np.sqrt(np.sum(a * a, axis=axis))),
    ("logsumexp", lambda a, axis=None: np.log(np.sum(np.exp(a), axis=axis))),
]


@pytest.mark.parametrize("make", [ragged, with_gaps])
@pytest.mark.parametrize("name,reference", REDUCTIONS, ids=[n for n, _ in REDUCTIONS])
def test_reductions(name, reference, make):
    arrays = rows([3, 2, 4], (2, 3))
    x = make(arrays)
    call = getattr(clew.Tensor, name)
    check(call(x, dim=1), np.stack([reference(a, axis=0) for a in arrays]))
    check(call(x, dim=2), [reference(a, axis=1) for a in arrays])
    check(call(x, dim=-1), [reference(a, axis=2) for a in arrays])
    kept = call(x, dim=1, keepdim=True)
    check(kept, np.stack([reference(a, axis=0)[None] for a in arrays]))
    check(call(x, dim=2, keepdim=True), [np.expand_dims(reference(a, axis=1), 1) for a in arrays])
    if name not in ("logsumexp",):
        check(call(x), reference(np.concatenate(arrays)))
    if name not in ("prod", "argmax", "all", "any"):
        check(call(x, dim=(0, 1)), reference(np.concatenate(arrays), axis=0))
        check(call(x, dim=(1, 3)), np.stack([reference(a, axis=(0, 2)) for a in arrays]))
        check(call(x, dim=(2, 3)), [reference(a, axis=(1, 2)) for a in arrays])


def test_max_and_min_with_places():
    arrays = rows()
    x = ragged(arrays)
    got = x.max(1)
    check(got.values, np.stack([a.max(0) for a in arrays]))
    check(got.indices, np.stack([a.argmax(0) for a in arrays]))
    got = x.min(dim=-1)
    check(got.values, [a.min(-1) for a in arrays])
    check(x.max(), np.concatenate(arrays).max())
    check(clew.max(x, -x), [np.maximum(a, -a) for a in arrays])


def test_sums_of_integers_half_precision_and_long_rows():
    x = clew.nested.nested_tensor([clew.arange(3), clew.arange(2)])
    assert x.sum(1).dtype is clew.int64
    assert x.sum(1).tolist() == [3, 1]
    assert (x > 0).sum(1).tolist() == [2, 1]
    h = clew.nested.nested_tensor([clew.ones(3000), clew.ones(2)]).half()
    assert h.sum(1).tolist() == [3000.0, 2.0]
    long = clew.nested.nested_tensor([clew.full((200000,), 0.1), clew.ones(2)])
    np.testing.assert_allclose(long.sum(1).numpy(), [20000, 2], rtol=1e-5)
    assert x.mean(1).tolist() == [1.0, 0.5]  # as in PyTorch, though dense integers have no mean
    with pytest.raises(RuntimeError, match="floating point"):
        x.mean()


def test_largest_and_smallest_of_an_empty_row():
    """Those of no elements are the ends of the dtype's range, as in PyTorch."""
    x = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(0, 3)]).requires_grad_()
    low, high = clew.finfo(clew.float32).min, clew.finfo(clew.float32).max
    assert x.amax(1).tolist() == [[1.0] * 3, [low] * 3]
    assert x.amin(1, keepdim=True).tolist() == [[[1.0] * 3], [[high] * 3]]
    assert x.max(1).values.tolist()[1] == [low] * 3 and x.min(1).indices.tolist()[1] == [0] * 3
    assert x.argmax(1).tolist() == x.argmin(1).tolist() == [[0] * 3] * 2
    assert x.detach().long().amax(1).tolist()[1] == [clew.iinfo(clew.int64).min] * 3
    assert x.detach().bool().amin(1).tolist()[1] == [True] * 3
    x.amax(1).sum().backward()
    assert x.grad.values().tolist() == [[0.5] * 3] * 2


def test_padded_to_fewer_elements_than_the_longest_row_has():
    x = clew.nested.nested_tensor([clew.ones(1, 2), clew.ones(3, 2)]).requires_grad_()
    padded = x.to_padded_tensor(7.0, output_size=(2, 2, 2))
    assert padded.tolist() == [[[1.0, 1.0], [7.0, 7.0]], [[1.0, 1.0]] * 2]
    padded.sum().backward()
    assert x.grad.values()[:, 0].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert tuple(x.transpose(1, 2).to_padded_tensor(0.0, (2, 2, 0)).shape) == (2, 2, 0)


def test_products_that_differ_in_two_sizes():
    x = clew.nested.nested_tensor([clew.randn(2, 3), clew.randn(4, 3)]).requires_grad_()
    gram = x @ x.transpose(1, 2)
    for got, row in zip(gram.unbind(), x.unbind()):
        clew.testing.assert_close(got, row @ row.t())
    sum(g.square().sum() for g in clew.bmm(x, x.transpose(1, 2)).unbind()).backward()
    wanted = [r.detach().requires_grad_() for r in x.unbind()]
    sum((r @ r.t()).square().sum() for r in wanted).backward()
    clew.testing.assert_close(x.grad.values(), clew.cat([r.grad for r in wanted]))


def test_attention_over_a_dense_length_in_ragged_batches():
    x = clew.nested.nested_tensor([clew.randn(2, 3, 4), clew.randn(1, 3, 4)])
    attend = clew.nn.functional.scaled_dot_product_attention
    got = attend(x, x, x, is_causal=True)
    v = x.values()
    clew.testing.assert_close(got.values(), attend(v, v, v, is_causal=True))
    first, second = x.tensor_split(2, -1)
    assert tuple(first.values().shape) == tuple(second.values().shape) == (3, 3, 2)


def test_rows_without_elements():
    arrays = rows([2, 0, 1])
    x = ragged(arrays)
    check(x * 2, [a * 2 for a in arrays])
    check(x.sum(1), np.stack([a.sum(0) for a in arrays]))
    assert tuple(x.to_padded_tensor(0.0).shape) == (3, 2, 2)
    check(x.sum(), np.concatenate(arrays).sum())


def test_gradients_through_the_tensor_itself():
    x = ragged(rows(), requires_grad=True)
    assert x.is_leaf
    (x * x).sum().backward()
    assert x.grad.is_nested
    check(x.grad, [2 * a for a in rows()])
    y = x.exp()
    (got,) = clew.autograd.grad(y, x, clew.ones_like(y))
    check(got, [np.exp(a) for a in rows()])


MAPS = {
    "broadcast": lambda x, d: (x * d.reshape(3, 1, 2) + d.sum(0)).exp(),
    "longest": lambda x, d: x * d.sum() * clew.nn.functional.pad(d, (0, 0, 0, 1)).unsqueeze(0),
    "sum": lambda x, d: (x * x).sum(1),
    "mean": lambda x, d: (x * x * x).mean(1) * d,
    "amax": lambda x, d: (x * x).amax(1),
    "padded": lambda x, d: (x * x).to_padded_tensor(0.5),
    "logsumexp": lambda x, d: x.logsumexp(1),
    "everything": lambda x, d: (x * x).mean(),
}


@pytest.mark.parametrize("name", MAPS)
def test_first_and_second_derivatives(name):
    dense = clew.tensor(np.random.default_rng(3).normal(size=(3, 2)), requires_grad=True)
    values = clew.tensor(np.concatenate(rows()), requires_grad=True)
    offsets = clew.tensor([0, 3, 4, 8])

    def f(v, d):
        made = MAPS[name](clew.nested.nested_tensor_from_jagged(v, offsets), d)
        return made.values() if made.is_nested else made

    assert clew.autograd.gradcheck(f, (values, dense))
    assert clew.autograd.gradgradcheck(f, (values, dense))


def test_names_with_an_underscore():
    x = clew.nested.nested_tensor([clew.ones(2, 3), clew.zeros(1, 3)])
    assert x._nested_tensor_size().tolist() == [[2, 3], [1, 3]]
    assert x._values is x.values() and x._offsets.tolist() == [0, 2, 3]
    assert (x._max_seqlen, x._min_seqlen, x._lengths) == (2, 1, None)
    assert (x._get_max_seqlen(), x._get_min_seqlen()) == (2, 1)
    assert x[:, :1]._lengths.tolist() == [1, 1]
    turned = x.transpose(1, 2)
    assert turned._nested_tensor_size().tolist() == [[3, 2], [3, 1]]


@pytest.mark.parametrize("make", [ragged, with_gaps])
def test_copies_and_files(make):
    x = make(rows())
    file = io.BytesIO()
    clew.save({"x": x.requires_grad_()}, file)
    loaded = clew.load(io.BytesIO(file.getvalue()))["x"]
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), loaded):
        check(other, rows())
        assert other.requires_grad and other.is_leaf
        assert (other.lengths() is None) == (x.lengths() is None)
    turned = make(rows()).transpose(1, 2)
    file = io.BytesIO()
    clew.save(turned, file)
    check(clew.load(io.BytesIO(file.getvalue())), [a.T for a in rows()])


def test_no_rows():
    x = clew.nested.nested_tensor_from_jagged(clew.zeros(0, 4), clew.tensor([0]))
    for made in (x.sort(dim=1).values, x.softmax(1), x.flip(1), clew.cat([x, x])):
        assert made.is_nested and made.size(0) == 0
    assert tuple(x.sum(1).shape) == (0, 4)


def test_as_tensor_converts_ragged_tensors():
    x = clew.nested.nested_tensor([clew.ones(2), clew.ones(3)], layout=clew.jagged)
    y = clew.as_tensor(x, dtype=clew.float64)
    assert y.dtype == clew.float64
    assert y.device.type == y.values().device.type == "cpu"
    assert [t.tolist() for t in y.unbind()] == [[1.0] * 2, [1.0] * 3]
    assert clew.as_tensor(x) is x


def test_a_dtype_is_the_rows_too():
    rows = [clew.ones(2), clew.ones(3, dtype=clew.float64)]
    x = clew.nested.nested_tensor(rows, dtype=clew.float16)
    assert x.dtype is clew.float16 and x.values().tolist() == [1] * 5
    assert clew.nested.as_nested_tensor(rows, dtype=clew.float32).dtype is clew.float32
    y = clew.nested.nested_tensor([[1, 2], [2.5]], dtype=clew.float64, requires_grad=True)
    assert y.values().tolist() == [1, 2, 2.5] and y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match="same dtype; .*; dtype= converts them"):
        clew.nested.nested_tensor(rows)
