"""Sparse tensors against dense NumPy and SciPy references."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import clew
from samples import load

scipy_sparse = pytest.importorskip("scipy.sparse")
R = np.random.default_rng(0)


def random_matrix(n=5, m=4, seed=0):
    r = np.random.default_rng(seed)
    return np.where(r.random((n, m)) < 0.4, r.normal(size=(n, m)), 0.0)


LAYOUTS = (clew.sparse_coo, clew.sparse_csr, clew.sparse_csc)


def sparse(a, layout):
    return clew.tensor(a).to_sparse(layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_and_back(layout):
    a = random_matrix()
    s = sparse(a, layout)
    assert s.layout is layout
    assert (s.is_sparse, s.is_sparse_csr) == (layout is LAYOUTS[0], layout is LAYOUTS[1])
    assert s.dtype is clew.float64
    assert tuple(s.shape) == a.shape
    for other in LAYOUTS:
        moved = s.to_sparse(layout=other)
        assert moved.layout is other
        np.testing.assert_array_equal(moved.to_dense().numpy(), a)
    np.testing.assert_array_equal(s.t().to_dense().numpy(), a.T)
    np.testing.assert_array_equal(
        s.clone().detach().to(clew.float32).to_dense().numpy(), a.astype("f4")
    )


def test_parts_of_each_layout_are_scipys():
    a = random_matrix()
    coo = sparse(a, clew.sparse_coo)
    np.testing.assert_array_equal(coo.indices().numpy(), np.stack(np.nonzero(a)))
    want = scipy_sparse.csr_array(a)
    csr = sparse(a, clew.sparse_csr)
    np.testing.assert_array_equal(csr.crow_indices().numpy(), want.indptr)
    np.testing.assert_array_equal(csr.col_indices().numpy(), want.indices)
    np.testing.assert_array_equal(csr.values().numpy(), want.data)
    want = scipy_sparse.csc_array(a)
    csc = sparse(a, clew.sparse_csc)
    np.testing.assert_array_equal(csc.ccol_indices().numpy(), want.indptr)
    np.testing.assert_array_equal(csc.row_indices().numpy(), want.indices)
    np.testing.assert_array_equal(csc.values().numpy(), want.data)


def test_coalesce_adds_equal_places():
    s = clew.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [[3.0], [4.0], [5.0]], (2, 3, 1))
    assert not s.is_coalesced()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        s.values()
    c = s.coalesce()
    assert c.indices().tolist() == [[0, 1], [0, 2]]
    assert c.values().tolist() == [[4.0], [8.0]]
    assert c.is_coalesced()
    np.testing.assert_array_equal(s.to_dense().numpy(), c.to_dense().numpy())
    # Roots of sums, not sums of roots.
    np.testing.assert_allclose(s.sqrt().values().numpy(), [[2.0], [8.0**0.5]], rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_and_their_gradients(layout):
    a, x, g = random_matrix(), R.normal(size=(4, 3)), R.normal(size=(5, 3))
    s = sparse(a, layout).requires_grad_()
    d = clew.tensor(x, requires_grad=True)
    for product in (s @ d, clew.mm(s, d), clew.sparse.mm(s, d), s.matmul(d)):
        s.grad = d.grad = None
        np.testing.assert_allclose(product.detach().numpy(), a @ x)
        product.backward(clew.tensor(g))
        np.testing.assert_allclose(s.grad.to_dense().numpy(), (g @ x.T) * (a != 0))
        np.testing.assert_allclose(d.grad.numpy(), a.T @ g)
        assert s.grad.layout is layout
    np.testing.assert_allclose((s @ d[:, 0]).detach().numpy(), a @ x[:, 0])
    np.testing.assert_allclose((clew.tensor(g.T) @ s).detach().numpy(), g.T @ a)
    np.testing.assert_allclose((clew.tensor(g[:, 0]) @ s).detach().numpy(), g[:, 0] @ a)
    b = random_matrix(4, 6, 3)
    both = s @ sparse(b, layout)
    np.testing.assert_allclose(both.to_dense().detach().numpy(), a @ b)
    np.testing.assert_allclose(
        clew.sparse.addmm(clew.tensor(g), s, d, beta=2, alpha=3).detach().numpy(),
        2 * g + 3 * (a @ x),
    )


def test_second_derivatives():
    a = sparse(random_matrix(), clew.sparse_csr)

    def f(values, dense):
        made = clew.sparse_csr_tensor(a.crow_indices(), a.col_indices(), values, (5, 4))
        return (made @ dense).tanh() + clew.sparse.softmax(made, 1) @ dense

    args = (a.values().requires_grad_(), clew.tensor(R.normal(size=(4, 2)), requires_grad=True))
    assert clew.autograd.gradcheck(f, args)
    assert clew.autograd.gradgradcheck(f, args)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_elementwise(layout):
    a, b = random_matrix(), random_matrix(seed=1)
    s, t = sparse(a, layout), sparse(b, layout)
    d = R.normal(size=a.shape)
    cases = [
        (s * 2, a * 2),
        (3 * s, a * 3),
        (s / 4, a / 4),
        (-s, -a),
        (s**2, a**2),
        (s + t, a + b),
        (s - t, a - b),
        (s + s, a + a),
        (s * t, a * b),
        (s * s, a * a),
        (s * clew.tensor(d), a * d),
        (clew.tensor(d) * s, a * d),
        (s.sin(), np.sin(a)),
        (s.relu(), np.maximum(a, 0)),
    ]
    for got, want in cases:
        assert got.layout is layout
        np.testing.assert_allclose(got.to_dense().numpy(), want, err_msg=str(want))
    np.testing.assert_allclose((clew.tensor(d) + s).numpy(), a + d)
    np.testing.assert_allclose((clew.tensor(d) - s).numpy(), d - a)
    np.testing.assert_allclose(s.sum().item(), a.sum())
    for dim in (0, 1, -1, (0, 1)):
        got = clew.sparse.sum(s, dim)
        got = got.to_dense() if dim != (0, 1) else got
        np.testing.assert_allclose(got.numpy(), a.sum(dim))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(layout, dim):
    a = random_matrix()
    hidden = np.where(a != 0, a, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(hidden - hidden.max(dim, keepdims=True))
        want = np.where(a != 0, e / e.sum(dim, keepdims=True), 0)
        logs = np.where(a != 0, np.log(np.where(want > 0, want, 1)), 0)
    s = sparse(a, layout)
    np.testing.assert_allclose(clew.sparse.softmax(s, dim).to_dense().numpy(), want)
    np.testing.assert_allclose(clew.sparse.log_softmax(s, dim).to_dense().numpy(), logs, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sampled_addmm_and_masks(layout):
    a, x, y = random_matrix(), R.normal(size=(5, 3)), R.normal(size=(3, 4))
    s = sparse(a, layout)
    got = clew.sparse.sampled_addmm(s, clew.tensor(x), clew.tensor(y), beta=2.0, alpha=0.5)
    np.testing.assert_allclose(got.to_dense().numpy(), (2 * a + 0.5 * (x @ y)) * (a != 0))
    d = clew.tensor(x @ y)
    np.testing.assert_allclose(d.sparse_mask(s).to_dense().numpy(), (x @ y) * (a != 0))
    b = np.triu(x @ y)
    masked = clew.tensor(b).to_sparse().sparse_mask(s)
    assert masked.layout is layout and masked._nnz() == s._nnz()
    np.testing.assert_allclose(masked.to_dense().numpy(), b * (a != 0))


@pytest.mark.parametrize(
    "shape, dims, other",
    [
        ((2, 3), 2, (1, 2, 3)),
        ((2, 3), 2, (4, 5, 2, 3)),
        ((2, 3), 2, (4, 1, 3)),
        ((2, 3), 2, (0, 2, 3)),
        ((1, 3), 2, (2, 3)),
        ((2, 1), 2, (3, 1, 4)),
        ((3,), 1, (2, 3)),
        ((2, 3, 1), 1, (2, 2, 3, 4)),
        ((1, 3, 2), 2, (4, 5, 3, 1)),
    ],
)
def test_products_in_coordinates_are_broadcast(shape, dims, other):
    a, b = R.normal(size=shape), R.normal(size=other)
    a[..., :1][a[..., :1] < 0] = 0
    x, y = (clew.tensor(v, requires_grad=True) for v in (a, b))
    for made in (x.to_sparse(dims) * y, y * x.to_sparse(dims)):
        assert made.is_coalesced() and made.dense_dim() == len(shape) - dims
        np.testing.assert_allclose(made.to_dense().detach().numpy(), a * b)
        x.grad = y.grad = None
        weights = R.normal(size=(a * b).shape)
        (made.to_dense() * clew.tensor(weights)).sum().backward()
        # Elements that are 0 are not there, so that they get no gradient.
        there = x.to_sparse(dims)
        there = clew.sparse_coo_tensor(
            there.indices(), clew.ones_like(there.values()), shape
        ).to_dense()
        summed = weights * b
        summed = summed.sum(tuple(range(summed.ndim - len(shape))))
        summed = summed.sum(
            tuple(d for d, n in enumerate(shape) if n == 1 < summed.shape[d]), keepdims=True
        )
        np.testing.assert_allclose(x.grad.numpy(), summed * there.numpy(), atol=1e-12)
    twice = clew.sparse_coo_tensor([[0, 0], [0, 0]], [1.0, 2.0], (2, 3)) * clew.ones(2, 2, 3)
    assert twice._nnz() == 2 and twice.to_dense()[:, 0, 0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_indexing(layout):
    a = random_matrix()
    s = sparse(a, layout)
    index = [3, 0, 3]
    np.testing.assert_array_equal(
        s.index_select(0, clew.tensor(index)).to_dense().numpy(), a[index]
    )
    np.testing.assert_array_equal(s[1].to_dense().numpy(), a[1])
    np.testing.assert_array_equal(s[:, -1].to_dense().numpy(), a[:, -1])
    np.testing.assert_array_equal(s[1:4, ::2].to_dense().numpy(), a[1:4, ::2])
    np.testing.assert_array_equal(s.narrow(1, 1, 2).to_dense().numpy(), a[:, 1:3])
    assert s[0, 0].item() == a[0, 0]
    assert len(s) == 5
    if layout is clew.sparse_coo:
        np.testing.assert_array_equal(clew.cat([s, s], 1).to_dense().numpy(), np.hstack([a, a]))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_pickles_files_and_copies(layout):
    s = sparse(random_matrix(), layout).requires_grad_()
    file = io.BytesIO()
    clew.save({"s": s}, file)
    loaded = clew.load(io.BytesIO(file.getvalue()), weights_only=True)["s"]
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), loaded):
        assert other.layout is layout
        assert other.requires_grad
        np.testing.assert_array_equal(
            other.detach().to_dense().numpy(), s.detach().to_dense().numpy()
        )


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_scipy_shares_memory(kind):
    m = scipy_sparse.random(6, 5, 0.4, format=kind, rng=np.random.default_rng(1))
    s = clew.sparse.from_scipy(m)
    np.testing.assert_array_equal(s.to_dense().numpy(), m.toarray())
    back = clew.sparse.to_scipy(s)
    assert np.shares_memory(back.data, m.data)
    if kind != "coo":
        assert np.shares_memory(back.indices, m.indices)
    np.testing.assert_array_equal(back.toarray(), m.toarray())


def test_printing():
    s = clew.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(s) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n       size=(2, 3), nnz=2, layout=clew.sparse_coo)"
    )


CSR = clew.sparse_csr_tensor
BAD = [
    (lambda: clew.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)), RuntimeError, "found index 5"),
    (lambda: clew.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), RuntimeError, "found index -1"),
    (
        lambda: clew.sparse_coo_tensor([[0, 1]], [1.0], (3,)),
        RuntimeError,
        "same number of elements",
    ),
    (lambda: clew.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)), RuntimeError, "must be a matrix"),
    (lambda: clew.sparse_coo_tensor([[0]], [1.0], (3, 3)), RuntimeError, "a number for each"),
    (lambda: clew.sparse_coo_tensor([[0.5]], [1.0], (3,)), TypeError, "must hold integers"),
    (lambda: CSR([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2)), RuntimeError, "must not decrease"),
    (lambda: CSR([1, 2, 2], [0, 1], [1.0, 2.0], (2, 2)), RuntimeError, r"\[0\] must be 0"),
    (
        lambda: CSR([0, 1, 1], [0, 1], [1.0, 2.0], (2, 2)),
        RuntimeError,
        r"\[-1\] must be the number",
    ),
    (lambda: CSR([0, 1, 2], [0, 2], [1.0, 2.0], (2, 2)), RuntimeError, r"must be in \[0, 2\)"),
    (lambda: CSR([0, 1, 2], [0], [1.0, 2.0], (2, 2)), RuntimeError, "same number of elements"),
    (lambda: CSR([0, 2], [1, 0], [1.0, 2.0], (1, 2)), RuntimeError, "must rise within each row"),
    (lambda: CSR([0, 1], [0], [1.0], (2, 2)), RuntimeError, "must have 3 elements"),
    (lambda: clew.eye(2).crow_indices(), RuntimeError, "got a dense one"),
    (lambda: clew.eye(2).to_sparse_csc().crow_indices(), RuntimeError, "layout sparse_csr"),
    (lambda: clew.eye(2).to_sparse() @ clew.ones(3, 1), RuntimeError, "cannot be multiplied"),
    (lambda: clew.eye(2).to_sparse() @ clew.ones(2, 1).double(), RuntimeError, "one dtype"),
    (lambda: clew.eye(2).to_sparse() + clew.eye(3).to_sparse(), RuntimeError, "one shape"),
    (lambda: clew.sparse.softmax(clew.eye(2), 0), RuntimeError, "must be sparse"),
    (lambda: clew.eye(2).to_sparse()[2], IndexError, "out of range"),
    (lambda: clew.sparse.from_scipy(np.eye(2)), TypeError, "expected a sparse matrix"),
]


@pytest.mark.parametrize(("call", "error", "match"), BAD)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


WITHOUT_RULE = [
    lambda s: clew.exp(s),
    lambda s: s + 1,
    lambda s: s.add_(1),
    lambda s: clew.nn.functional.linear(s, s),
    lambda s: clew.add(s, s, out=clew.ones(2, 2)),
    lambda s: clew.add(clew.ones(2, 2), clew.ones(2, 2), out=s),
    lambda s: s.item(),
    lambda s: s.reshape(4),
    lambda s: s == s,
    lambda s: bool(s),
    lambda s: clew.linalg.det(s),
    lambda s: clew.fft.fft(s),
    lambda s: clew.vmap(lambda row: row * 2)(s.to_sparse_csr()),
    lambda s: s.__setitem__(0, 1),
    lambda s: clew.sort(s),
]


@pytest.mark.parametrize("call", WITHOUT_RULE)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_has_no_rule_says_what_to_do(call, layout):
    with pytest.raises(NotImplementedError, match=r"\.to_dense\(\)|out= is not offered"):
        call(clew.eye(2).to_sparse(layout=layout))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sparse_tensors_are_no_arrays(layout):
    s = clew.eye(2).to_sparse(layout=layout)
    for call in (s.numpy, lambda: np.asarray(s)):
        with pytest.raises(TypeError, match=r"\.to_dense\(\)"):
            call()


def find(name):
    home, _, short = name.rpartition(".")
    found = clew
    for part in home.split(".") if home else ():
        found = getattr(found, part)
    return getattr(found, short, None)


def test_every_operation_gives_the_dense_result_or_raises():
    """No silent wrong answer: samples of all operations with a sparse tensor in the first place."""
    from samples import Rng

    seen = 0
    for op in load().values():
        function = find(op.name)
        if function is None or op.name.startswith("_") or "rand" in op.name or "drop" in op.name:
            continue
        if op.name == "lobpcg":  # vectors of any sign; tested with the values below
            continue
        for sample in op.samples(Rng(op.name))[:2]:
            args = [clew.tensor(a) if isinstance(a, np.ndarray) else a for a in sample.args]
            at = next((i for i, a in enumerate(args) if isinstance(a, clew.Tensor)), None)
            if at is None or args[at].dim() != 2 or not args[at].is_floating_point():
                continue
            whole = args[at]
            if any(isinstance(v, np.ndarray) for v in sample.kwargs.values()):
                continue
            try:
                wanted = function(*args, **sample.kwargs)
            except Exception:
                continue
            args[at] = whole.to_sparse()
            try:
                got = function(*args, **sample.kwargs)
            except Exception:
                continue
            for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, wanted))):
                if not isinstance(w, clew.Tensor):
                    continue
                assert isinstance(g, clew.Tensor), op.name
                g = g.to_dense() if g.is_sparse or g.is_sparse_csr else g
                assert not g.is_meta, op.name
                if op.name not in ("softmax", "log_softmax"):
                    np.testing.assert_allclose(
                        g.detach().numpy(), w.detach().numpy(), rtol=1e-6, err_msg=op.name
                    )
                seen += 1
    assert seen > 20


def test_names_with_an_underscore():
    x = clew.sparse_coo_tensor(clew.tensor([[0, 1, 1], [1, 0, 0]]), clew.tensor([1.0, 2.0, 3.0]))
    assert x._values().tolist() == [1, 2, 3] and x._indices().tolist() == [[0, 1, 1], [1, 0, 0]]
    x._values().mul_(2)
    assert x.to_dense().tolist() == [[0, 2], [10, 0]]
    assert x._coalesced_(True) is x and x.is_coalesced() and x.coalesce() is x
    assert not x._coalesced_(False).is_coalesced()


@pytest.mark.parametrize(("name", "other"), [("max", "amax"), ("min", "amin")])
def test_products_by_the_other_name_of_a_reduction(name, other):
    a = clew.tensor([[2.0, 3.0], [0.0, 4.0]]).to_sparse_csr()
    b = clew.tensor([[1.0, -1.0], [-2.0, 5.0]], requires_grad=True)
    made = clew.sparse.mm(a, b, name)
    made.sum().backward()
    assert made.tolist() == {"max": [[2, 15], [-8, 20]], "min": [[-6, -2], [-8, 20]]}[name]
    assert b.grad.tolist() == {"max": [[2, 0], [4, 7]], "min": [[0, 2], [7, 4]]}[name]
    assert made.tolist() == clew.sparse.mm(a, b, other).tolist()


def test_older_types():
    ind, val = clew.tensor([[0, 1], [1, 0]]), clew.tensor([1.0, 2.0])
    x = clew.sparse.FloatTensor(ind, val, clew.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert clew.sparse.FloatTensor(ind, val).shape == (2, 2)
    empty = clew.sparse.DoubleTensor(2, 3)
    assert empty.shape == (2, 3) and empty._nnz() == 0 and empty.dtype is clew.float64
    assert isinstance(x, clew.sparse.FloatTensor) and not isinstance(x, clew.FloatTensor)
    assert not isinstance(x, clew.sparse.DoubleTensor)
    assert not isinstance(val, clew.sparse.FloatTensor) and isinstance(val, clew.FloatTensor)
    assert clew.sparse.LongTensor.is_sparse and clew.sparse.LongTensor.dtype is clew.int64
    with pytest.raises(AttributeError, match="FlatTensor"):
        clew.sparse.FlatTensor  # noqa: B018


def test_rows_to_row_ends_and_back():
    from clew._torch.names import (
        _convert_indices_from_coo_to_csr,
        _convert_indices_from_csr_to_coo,
    )

    rows, columns = clew.tensor([0, 0, 2]), clew.tensor([0, 1, 2])
    ends = _convert_indices_from_coo_to_csr(rows, 4)
    assert ends.tolist() == [0, 2, 2, 3, 3] and ends.dtype is clew.int64
    assert _convert_indices_from_coo_to_csr(rows, 4, out_int32=True).dtype is clew.int32
    assert _convert_indices_from_coo_to_csr(rows.int(), 4).tolist() == [0, 2, 2, 3, 3]
    assert _convert_indices_from_coo_to_csr(rows[:0], 2).tolist() == [0, 0, 0]
    back = _convert_indices_from_csr_to_coo(ends, columns)
    assert back.tolist() == [[0, 0, 2], [0, 1, 2]]
    turned = _convert_indices_from_csr_to_coo(ends, columns, out_int32=True, transpose=True)
    assert turned.tolist() == [[0, 1, 2], [0, 0, 2]] and turned.dtype is clew.int32
    with pytest.raises(RuntimeError, match="int32 or int64"):
        _convert_indices_from_coo_to_csr(rows.float(), 4)


def test_older_names_of_products():
    from clew._torch.names import dsmm, smm, spmm

    a = clew.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    b = clew.tensor([[1.0, 2.0], [3.0, 0.0]])
    assert dsmm(a, b).tolist() == spmm(a, b).tolist() == [[6, 0], [0, 0]]
    assert dsmm(b, b).tolist() == [[7, 2], [3, 6]]
    got = smm(a, b)
    assert got.is_sparse and got.is_coalesced() and got.to_dense().tolist() == [[6, 0], [0, 0]]
    assert got.indices().tolist() == [[0, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="sparse_coo"):
        smm(b, b)


def test_permute():
    x = clew.randn(2, 3, 4).relu()
    for s in (x.to_sparse(), x.to_sparse(2)):
        got = s.permute(1, 0, 2)
        assert got.is_sparse and got.to_dense().equal(x.permute(1, 0, 2))
    assert x.to_sparse().permute((-1, 0, 1)).to_dense().equal(x.permute(-1, 0, 1))
    csr = x[0].to_sparse_csr()
    assert clew.permute(csr, (1, 0)).to_dense().equal(x[0].t())
    assert csr.permute(0, 1) is csr
    with pytest.raises(NotImplementedError, match="permute"):
        x.to_sparse(2).permute(2, 1, 0)
    with pytest.raises(RuntimeError, match="name each of 3 dims once"):
        x.to_sparse().permute(0, 0, 1)


S = clew.eye(3).to_sparse()
WRONG = [
    (lambda: S.index_select(2, clew.tensor([0])), IndexError, r"dim must be in \[-2, 1\]; got 2"),
    (lambda: S.index_select(-3, clew.tensor([0])), IndexError, "dim must be in"),
    (lambda: S.index_select(0, clew.tensor([0.0])), IndexError, "int64 or int32; got clew.float32"),
    (lambda: S.index_select(0, clew.tensor([[0]])), IndexError, "a vector"),
    (lambda: S.select(5, 0), IndexError, "select: dim must be in"),
    (lambda: S.narrow(4, 0, 1), IndexError, "narrow: dim must be in"),
    (lambda: clew.cat([S, S], 4), IndexError, "cat: dim must be in"),
    (lambda: S.unsqueeze(7), IndexError, r"unsqueeze: dim must be in \[-3, 2\]"),
    (lambda: S.to_sparse_csr().select(2, 0), IndexError, "select: dim must be in"),
    (
        lambda: clew.sparse_csr_tensor(
            clew.zeros(2, dtype=clew.int64, device="meta"), [0], [1.0], (1, 1)
        ),
        RuntimeError,
        "crow_indices must be on the CPU",
    ),
    (lambda: S.clone().copy_(S.to_sparse_csr()), RuntimeError, "one layout and one shape"),
    (lambda: S.clone().copy_(clew.eye(4).to_sparse()), RuntimeError, "one layout and one shape"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_dims_and_indices_out_of_range(case):
    call, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_state_of_modules(layout):
    def module(value):
        made = clew.nn.Module()
        made.register_buffer("a", getattr(value, layout)())
        made.w = clew.nn.Parameter(getattr(value, layout)())
        return made

    one, other = module(clew.eye(3)), module(clew.ones(3, 3).triu())
    other.load_state_dict(one.state_dict())
    one.a.mul_(5)
    assert other.a.to_dense().equal(clew.eye(3)) and other.w.to_dense().equal(clew.eye(3))
    assert other.w.requires_grad and other.w.is_leaf
    (other.w @ clew.ones(3, 1)).sum().backward()
    assert other.w.grad.to_dense().equal(clew.eye(3))
    with pytest.raises(RuntimeError, match="under no_grad"):
        other.w.copy_(module(clew.ones(3, 3)).w.detach())
