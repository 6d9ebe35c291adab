"""Sparse matrices of dense blocks (BSR and BSC): making, conversions, products, gradients."""

import io
import pickle

import numpy as np
import pytest

import clew

DENSE = np.array([[1, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0], [0, 0, 4, 0, 0, 5.0]])


def dense(requires_grad=False):
    return clew.tensor(DENSE, requires_grad=requires_grad)


def test_rows_of_blocks():
    m = dense().to_sparse_bsr((2, 3))
    assert m.layout is clew.sparse_bsr and tuple(m.shape) == (4, 6) and m._nnz() == 3
    assert (m.sparse_dim(), m.dense_dim(), m.is_sparse, m.is_sparse_csr) == (2, 0, False, False)
    assert m.crow_indices().tolist() == [0, 1, 3] and m.col_indices().tolist() == [0, 0, 1]
    assert m.values().tolist() == [
        [[1, 0, 0], [0, 2, 0]],
        [[0, 0, 0], [0, 0, 4]],
        [[3, 0, 0], [0, 0, 5]],
    ]
    assert m.to_dense().tolist() == DENSE.tolist()
    with pytest.raises(RuntimeError, match="expected a tensor of layout sparse_bsc"):
        m.ccol_indices()


def test_columns_of_blocks():
    m = dense().to_sparse_bsc((2, 3))
    assert m.layout is clew.sparse_bsc
    assert m.ccol_indices().tolist() == [0, 2, 3] and m.row_indices().tolist() == [0, 1, 1]
    assert m.values()[1].tolist() == [[0, 0, 0], [0, 0, 4]]
    assert m.to_dense().tolist() == DENSE.tolist()
    with pytest.raises(RuntimeError, match="expected a tensor of layout sparse_bsr"):
        m.col_indices()


@pytest.mark.parametrize("name", ["to_sparse_bsr", "to_sparse_bsc"])
def test_conversions(name):
    m = getattr(dense(), name)((2, 2))
    layout = m.layout
    for other in (dense().to_sparse(), dense().to_sparse_csr(), dense().to_sparse_csc()):
        made = getattr(other, name)((2, 2))
        assert made.layout is layout and made.values().tolist() == m.values().tolist()
        made = other.to_sparse(layout=layout, blocksize=(2, 2))
        assert made.layout is layout and made.to_dense().tolist() == DENSE.tolist()
    assert getattr(m, name)((2, 2)) is m
    for back in (m.to_sparse_csr(), m.to_sparse_csc(), m.to_sparse(), m.to_sparse_coo()):
        assert back.to_dense().tolist() == DENSE.tolist() and back._nnz() == 4 * m._nnz()
    turned = m.t()
    assert turned.layout is not layout and turned.to_dense().tolist() == DENSE.T.tolist()
    assert m.to_sparse_bsc((2, 2)).to_sparse_bsr((2, 2)).to_dense().tolist() == DENSE.tolist()


def test_parts():
    blocks = [[[1.0, 2.0]], [[3.0, 4.0]]]
    m = clew.sparse_bsr_tensor([0, 1, 2], [1, 0], blocks)
    assert m.to_dense().tolist() == [[0, 0, 1, 2], [3, 4, 0, 0]]
    m = clew.sparse_bsc_tensor([0, 1, 2], [1, 0], blocks, (2, 4), dtype=clew.float64)
    assert m.to_dense().tolist() == [[0, 0, 3, 4], [1, 2, 0, 0]] and m.dtype is clew.float64
    m = clew.sparse_compressed_tensor([0, 1], [0], blocks[:1], (1, 2), layout=clew.sparse_bsr)
    assert m.layout is clew.sparse_bsr and m.to_dense().tolist() == [[1, 2]]
    with pytest.raises(RuntimeError, match="two multiples of the blocks' size"):
        clew.sparse_bsr_tensor([0, 1, 2], [1, 0], blocks, (2, 5))
    with pytest.raises(RuntimeError, match="col_indices must be in"):
        clew.sparse_bsr_tensor([0, 1, 2], [1, 2], blocks, (2, 4))
    with pytest.raises(NotImplementedError, match="expected values of shape"):
        clew.sparse_bsr_tensor([0, 1, 2], [1, 0], [1.0, 2.0])


def test_products_and_gradients():
    rng = np.random.default_rng(0)
    y, z, c = rng.normal(size=(6, 3)), rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    for name in ("to_sparse_bsr", "to_sparse_bsc"):
        d, right = dense(True), clew.tensor(y, requires_grad=True)
        m = getattr(d, name)((2, 3))
        np.testing.assert_allclose((m @ right[:, 0]).detach(), DENSE @ y[:, 0])
        np.testing.assert_allclose((clew.tensor(z) @ m).detach(), z @ DENSE)
        out = m @ right
        np.testing.assert_allclose(out.detach(), DENSE @ y)
        np.testing.assert_allclose(
            clew.nn.functional.linear(clew.tensor(y.T), m, clew.ones(4, dtype=clew.float64))
            .detach()
            .numpy(),
            y.T @ DENSE.T + 1,
        )
        (out * clew.tensor(c)).sum().backward()
        np.testing.assert_allclose(right.grad, DENSE.T @ c)
        there = np.kron([[1, 0], [1, 1]], np.ones((2, 3)))
        np.testing.assert_allclose(d.grad, c @ y.T * there)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        m @ clew.ones(5, 2)


def test_arithmetic():
    m = dense().to_sparse_bsr((2, 3))
    assert (-m * 2).abs().to_dense().tolist() == (2 * DENSE).tolist()
    assert (m + m - m / 2).to_dense().tolist() == (1.5 * DENSE).tolist()
    assert m.sum().item() == 15.0
    with pytest.raises(NotImplementedError, match=r"\.to_dense\(\)"):
        m + dense()


def test_a_text_and_files():
    m = clew.eye(2).to_sparse_bsr((2, 1))
    text = (
        "tensor(crow_indices=tensor([0, 2]),\n       col_indices=tensor([0, 1]),\n"
        "       values=tensor([[[1.],\n                       [0.]],\n\n"
        "                      [[0.],\n                       [1.]]]), size=(2, 2), nnz=2, "
        "layout=clew.sparse_bsr)"
    )
    assert repr(m) == text
    assert repr(pickle.loads(pickle.dumps(m))) == text
    file = io.BytesIO()
    clew.save(m, file)
    file.seek(0)
    assert repr(clew.load(file)) == text


@pytest.mark.parametrize(
    "error, message, call",
    [
        (RuntimeError, "must be divisible by given", lambda: dense().to_sparse_bsr((3, 2))),
        (RuntimeError, "two positive numbers", lambda: dense().to_sparse_bsc((0, 2))),
        (NotImplementedError, "matrix by matrix", lambda: clew.ones(2, 2, 2).to_sparse_bsr(1)),
        (RuntimeError, "give blocksize", lambda: dense().to_sparse(layout=clew.sparse_bsr)),
        (RuntimeError, "layouts of blocks", lambda: dense().to_sparse(blocksize=(2, 2))),
        (
            RuntimeError,
            "blocksize changed",
            lambda: dense().to_sparse_bsr((2, 2)).to_sparse_bsr((2, 3)),
        ),
    ],
)
def test_refused(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_what_does_not_fit_is_refused():
    x = clew.eye(4).to_sparse_bsr((2, 2))
    vector, matrix = clew.ones(4), clew.ones(4, 3)
    for call, message in (
        (lambda: clew.mm(x, vector), "mm: operands must have 2 and 2 dimensions"),
        (lambda: clew.mv(x, matrix), "mv: operands must have 2 and 1 dimensions"),
        (lambda: clew.addmm(matrix, x, vector), "mat1 and mat2 must be matrices"),
        (lambda: clew.addmm(clew.ones(2, 4, 3), x, matrix), "broadcastable to the product's"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    nan = clew.full((4, 3), float("nan"))
    assert clew.addmm(nan, x, matrix, beta=0).tolist() == matrix.tolist()
    mask = clew.eye(4, dtype=clew.bool).to_sparse_bsr((2, 2))
    assert (mask + mask).dtype == clew.bool
    for a, b in ((mask, mask), (x, mask)):
        with pytest.raises(RuntimeError, match="sub: .*bool.* not supported"):
            a - b


@pytest.mark.parametrize("by_rows", [True, False])
def test_elements_that_are_dense(by_rows):
    clew.manual_seed(0)
    a = clew.randn(6, 4, 3) * (clew.rand(6, 4, 1) > 0.6)
    name = "to_sparse_bsr" if by_rows else "to_sparse_bsc"
    of_dense = getattr(a, name)((2, 2), dense_dim=1)
    for x in (a.to_sparse(2), a.to_sparse_csr(dense_dim=1), a.to_sparse_csc(dense_dim=1)):
        made = getattr(x, name)((2, 2))
        assert made.dense_dim() == 1 and made.shape == (6, 4, 3)
        assert clew.equal(made.values(), of_dense.values())
        for back in (
            made,
            made.to_sparse(),
            made.to_sparse_csr(),
            pickle.loads(pickle.dumps(made)),
        ):
            assert clew.equal(back.to_dense(), a)
        assert clew.equal(made.transpose(0, 1).to_dense(), a.transpose(0, 1))
    with pytest.raises(NotImplementedError):
        of_dense @ clew.ones(4, 2)
    make = clew.sparse_bsr_tensor if by_rows else clew.sparse_bsc_tensor
    blocks = clew.ones(1, 2, 2, 3)
    assert make([0, 1], [0], blocks, (2, 2, 3)).to_dense().shape == (2, 2, 3)
    for size in ((2, 2), (2,), (2, 2, 4), (3, 2, 3)):
        with pytest.raises(RuntimeError, match="size must be"):
            make([0, 1], [0], blocks, size)


def test_sparse_matrices_become_blocks_without_becoming_dense():
    n = 10**7
    x = clew.sparse_coo_tensor([[0, n - 1, n - 1], [3, n - 1, n - 2]], [1.0, 2.0, 3.0], (n, n))
    made = x.to_sparse_bsr((2, 2))
    assert made.col_indices().tolist() == [1, n // 2 - 1]
    assert made.values().tolist() == [[[0, 1], [0, 0]], [[0, 0], [3, 2]]]
    values = clew.randn(3, dtype=clew.float64, requires_grad=True)
    places = clew.tensor([[0, 3, 3], [1, 2, 0]])
    assert clew.autograd.gradcheck(
        lambda v: clew.sparse_coo_tensor(places, v, (4, 4)).to_sparse_bsc((2, 2)).values(), values
    )


@pytest.mark.parametrize("name", ["to_sparse_bsr", "to_sparse_bsc"])
def test_rows_columns_and_elements(name):
    x = getattr(dense(), name)((2, 3))
    row = x[1]
    assert row.layout is clew.sparse_coo and row.to_dense().tolist() == DENSE[1].tolist()
    assert x[:, -1].to_dense().tolist() == DENSE[:, -1].tolist()
    assert x.select(1, 3).to_dense().tolist() == DENSE[:, 3].tolist()
    assert [r.to_dense().tolist() for r in x] == DENSE.tolist()
    assert x.unbind(1)[1].to_dense().tolist() == DENSE[:, 1].tolist()
    assert x[3, 5].item() == 5 and x[0, 5].item() == 0
    x.requires_grad_()
    x[0].to_dense().sum().backward()
    assert x.grad.to_dense()[0, :3].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(NotImplementedError, match=r"\.to_dense\(\)"):
        x[1:]
    with pytest.raises(IndexError, match="out of range"):
        x[4]


@pytest.mark.parametrize("name", ["to_sparse_bsr", "to_sparse_bsc"])
def test_masks(name):
    mask = getattr(dense(), name)((2, 3))
    shown = np.ones((4, 6))
    shown[:2, 3:] = 0
    x = clew.arange(24.0).reshape(4, 6).requires_grad_()
    made = x.sparse_mask(mask)
    assert made.layout is mask.layout and made.dtype is clew.float32
    np.testing.assert_array_equal(made.to_dense().detach(), shown * x.detach().numpy())
    made.values().sum().backward()
    np.testing.assert_array_equal(x.grad, shown)
    other = np.triu(np.arange(24.0).reshape(4, 6))
    made = clew.tensor(other).to_sparse().sparse_mask(mask)
    assert made.layout is mask.layout
    np.testing.assert_array_equal(made.to_dense(), shown * other)
    assert mask.sparse_mask(mask).to_dense().tolist() == DENSE.tolist()
    for wrong in (clew.ones(2, 2), clew.ones(2, 2).to_sparse()):
        with pytest.raises(RuntimeError, match="must have one shape"):
            wrong.sparse_mask(mask)
    deep = clew.arange(48.0).reshape(4, 6, 2)
    made = deep.sparse_mask(getattr(deep, name)((2, 3), 1))
    assert made.to_dense().tolist() == deep.tolist()
