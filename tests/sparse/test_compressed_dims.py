"""Compressed layouts with dense dims and in batches, and sparse inputs of linear layers."""

import copy
import io
import pickle

import numpy as np
import pytest

import clew
from clew import nn

CSR, CSC = clew.sparse_csr_tensor, clew.sparse_csc_tensor
ENDS, PLACES = [0, 2, 3], [0, 2, 1]  # two rows, three elements


def wide(by_rows=True):
    """A matrix of elements of two numbers, and what it is when dense."""
    values = np.arange(1.0, 7.0, dtype="float32").reshape(3, 2)
    dense = np.zeros((2, 3, 2), "float32")
    dense[[0, 0, 1], PLACES] = values
    dense = dense if by_rows else dense.swapaxes(0, 1)
    make = CSR if by_rows else CSC
    return make(ENDS, PLACES, clew.tensor(values), dense.shape), dense


def batch(by_rows=True, dense_dim=0):
    """Two matrices, and what they are when dense."""
    ends, places = np.array([ENDS, [0, 1, 3]]), np.array([PLACES, [2, 0, 1]])
    values = np.arange(1.0, 1 + 6 * 2**dense_dim, dtype="float32").reshape(2, 3, *[2] * dense_dim)
    dense = np.zeros((2, 2, 3, *[2] * dense_dim), "float32")
    dense[0][[0, 0, 1], places[0]] = values[0]
    dense[1][[0, 1, 1], places[1]] = values[1]
    dense = dense if by_rows else dense.swapaxes(1, 2)
    make = CSR if by_rows else CSC
    return make(*map(clew.tensor, (ends, places, values)), dense.shape), dense


@pytest.mark.parametrize("by_rows", [True, False])
def test_elements_of_several_numbers(by_rows):
    s, dense = wide(by_rows)
    assert (s.sparse_dim(), s.dense_dim(), s._nnz()) == (2, 1, 3) and s.shape == dense.shape
    np.testing.assert_array_equal(s.to_dense().numpy(), dense)
    for other in (s.to_sparse_csr(), s.to_sparse_csc(), s.to_sparse_coo(), s.transpose(0, 1)):
        want = dense if other.shape == dense.shape else dense.swapaxes(0, 1)
        np.testing.assert_array_equal(other.to_dense().numpy(), want)
        assert other.dense_dim() == 1
    np.testing.assert_allclose((s * 2 + s).sin().to_dense().numpy(), np.sin(dense * 3), rtol=1e-6)
    np.testing.assert_array_equal((s * clew.tensor(dense)).to_dense().numpy(), dense**2)
    assert clew.zeros_like(s).values().shape == (0, 2)
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        np.testing.assert_array_equal(again.to_dense().numpy(), dense)
    with pytest.raises(NotImplementedError, match="transpose"):
        s.transpose(1, 2)
    with pytest.raises(RuntimeError, match="two sparse dims"):
        clew.sparse.sampled_addmm(s, clew.ones(2, 2), clew.ones(2, 3))
    with pytest.raises(TypeError, match="expected a sparse matrix"):
        clew.sparse.to_scipy(s)


@pytest.mark.parametrize("layout", [clew.sparse_csr, clew.sparse_csc], ids=str)
def test_dense_tensors_become_such_matrices(layout):
    _, dense = wide()
    x = clew.tensor(dense, requires_grad=True)
    s = x.to_sparse(layout=layout, dense_dim=1)
    assert s.layout is layout and s.values().shape == (3, 2)
    (s.values() ** 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * dense)
    assert clew.tensor(dense).to_sparse(dense_dim=2).sparse_dim() == 1
    with pytest.raises(RuntimeError, match="as many elements each"):
        x.to_sparse(layout=layout)
    with pytest.raises(RuntimeError, match="not both"):
        x.to_sparse(2, dense_dim=1)


@pytest.mark.parametrize("dense_dim", [0, 1])
@pytest.mark.parametrize("by_rows", [True, False])
def test_batches(by_rows, dense_dim):
    s, dense = batch(by_rows, dense_dim)
    assert s.shape == dense.shape and s._nnz() == 3
    assert (s.sparse_dim(), s.dense_dim()) == (2, dense_dim)
    assert s.layout is (clew.sparse_csr if by_rows else clew.sparse_csc)
    np.testing.assert_array_equal(s.to_dense().numpy(), dense)
    np.testing.assert_allclose((s * 3).sin().to_dense().numpy(), np.sin(dense * 3), rtol=1e-6)
    np.testing.assert_array_equal(s.transpose(1, 2).to_dense().numpy(), dense.swapaxes(1, 2))
    for i in (0, 1, -1):
        np.testing.assert_array_equal(s[i].to_dense().numpy(), dense[i])
    stored = io.BytesIO()
    clew.save(s, stored)
    stored.seek(0)
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), clew.load(stored)):
        assert again.layout is s.layout
        np.testing.assert_array_equal(again.to_dense().numpy(), dense)
    ends, places = (
        (s.crow_indices(), s.col_indices()) if by_rows else (s.ccol_indices(), s.row_indices())
    )
    assert ends.shape == places.shape == (2, 3)
    np.testing.assert_array_equal((s + s.sub(s, alpha=0.5)).to_dense(), 1.5 * dense)
    np.testing.assert_array_equal(s.clone().add_(s).to_dense(), 2 * dense)
    np.testing.assert_array_equal(s.clone().neg_().to_dense(), -dense)
    np.testing.assert_allclose(s.sum(), dense.sum())
    clew.testing.assert_close(s, s.clone())
    assert not clew.equal(s.to_dense(), clew.zeros_like(s).to_dense())
    assert clew.zeros_like(s)._nnz() == 0 and clew.zeros_like(s).layout is s.layout
    np.testing.assert_array_equal(clew.ones_like(s).to_dense(), dense != 0)
    np.testing.assert_array_equal(clew.full_like(s, 2.0).copy_(s).to_dense(), dense)
    np.testing.assert_array_equal(s.unbind()[1].to_dense(), dense[1])
    for coordinates in (s.to_sparse(), s.to_sparse_coo(3)):
        assert coordinates.sparse_dim() == 3 and coordinates.is_coalesced()
        np.testing.assert_array_equal(coordinates.to_dense(), dense)
    wrongs = (lambda: s + dense, lambda: s.exp(), lambda: s.sum(0), lambda: s.to_sparse_coo(2))
    for wrong in wrongs:
        with pytest.raises(NotImplementedError, match=r"batches.*\.to_dense\(\)"):
            wrong()
    with pytest.raises(IndexError, match="out of range"):
        s[2]
    with pytest.raises(RuntimeError, match="layout sparse_cs"):
        (s.ccol_indices if by_rows else s.crow_indices)()


def test_two_batch_dims_and_one_matrix_of_them():
    ends, places = clew.tensor([[ENDS] * 3] * 2), clew.tensor([[PLACES] * 3] * 2)
    values = clew.arange(18.0).reshape(2, 3, 3)
    s = CSR(ends, places, values)
    assert s.shape == (2, 3, 2, 3) and s[1].shape == (3, 2, 3)
    assert s[1, 2].to_dense().tolist() == [[15, 0, 16], [0, 17, 0]]
    assert s[-1].to_dense().tolist() == s.to_dense()[1].tolist()


@pytest.mark.parametrize("by_rows", [True, False])
def test_products_of_batches_have_gradients(by_rows):
    s, dense = batch(by_rows)
    s.requires_grad_()
    right = np.linspace(-1, 1, 2 * dense.shape[2] * 4, dtype="float32").reshape(2, -1, 4)
    y = clew.tensor(right, requires_grad=True)
    for product in (s @ y, clew.bmm(s, y)):
        np.testing.assert_allclose(product.detach().numpy(), dense @ right, rtol=1e-6)
    (s @ y).sum().backward()
    np.testing.assert_allclose(
        y.grad.numpy(), np.broadcast_to(dense.sum(1)[:, :, None], right.shape), rtol=1e-6
    )
    want = right.sum(2)[:, None, :] * np.ones_like(dense)
    np.testing.assert_allclose(s.grad.to_dense().numpy(), want * (dense != 0), rtol=1e-6)
    for wrong in (clew.ones(dense.shape[2], 4), clew.ones(3, dense.shape[2], 4)):
        with pytest.raises(NotImplementedError, match="matmul"):
            s @ wrong


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((ENDS, PLACES, np.ones((3, 2)), (2, 3)), "size must be"),
        ((ENDS, PLACES, np.ones((3, 2)), (2, 3, 3)), "size must be"),
        ((ENDS, PLACES, np.ones((2, 2))), "same number of elements"),
        (([ENDS] * 2, [PLACES] * 2, np.ones((2, 2)), (2, 2, 3)), "same number of elements"),
        (([ENDS] * 2, [PLACES] * 3, np.ones((2, 3))), "same batch dims"),
        (([ENDS] * 2, PLACES, np.ones(3)), "same batch dims"),
        (([ENDS] * 2, [PLACES] * 2, np.ones((2, 3)), (2, 3)), "size must be"),
        (([ENDS, [0, 1, 1]], [PLACES] * 2, np.ones((2, 3))), r"\[-1\] must be the number"),
        (([ENDS] * 2, [PLACES, [0, 0, 1]], np.ones((2, 3))), "must rise within each row"),
    ],
)
def test_what_does_not_fit(args, match):
    with pytest.raises(RuntimeError, match=match):
        CSR(*map(clew.tensor, args[:3]), *args[3:])


@pytest.mark.parametrize("layout", [clew.sparse_coo, clew.sparse_csr, clew.sparse_csc], ids=str)
def test_linear_layers_take_sparse_inputs_and_weights(layout):
    a = np.array([[0, 2, 0], [1, 0, 3]], "float32")
    s = clew.tensor(a).to_sparse(layout=layout)
    layer = nn.Linear(3, 4)
    dense = nn.functional.linear(clew.tensor(a), layer.weight, layer.bias)
    assert clew.allclose(layer(s), dense)
    assert clew.allclose(nn.functional.linear(s, layer.weight), dense - layer.bias)
    layer(s).square().sum().backward()
    got, layer.weight.grad = layer.weight.grad, None
    dense.square().sum().backward()
    assert clew.allclose(got, layer.weight.grad)
    x = clew.arange(6.0).reshape(2, 3)
    want = x.numpy() @ a.T + 1
    assert nn.functional.linear(x, s, clew.ones(2)).tolist() == want.tolist()
    with pytest.raises(NotImplementedError, match="linear.*to_dense"):
        nn.functional.linear(s, s)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        nn.functional.linear(s, clew.ones(4, 2))


def test_lines_break_as_in_pytorch():
    assert repr(CSR([0, 1, 2], [0, 1], [1.0, 1.0], (2, 2))) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([0, 1]),\n"
        "       values=tensor([1., 1.]), size=(2, 2), nnz=2, layout=clew.sparse_csr)"
    )
    assert repr(batch()[0]) == (
        "tensor(crow_indices=tensor([[0, 2, 3],\n                            [0, 1, 3]]),\n"
        "       col_indices=tensor([[0, 2, 1],\n                           [2, 0, 1]]),\n"
        "       values=tensor([[1., 2., 3.],\n                      [4., 5., 6.]]), "
        "size=(2, 2, 3), nnz=3,\n       layout=clew.sparse_csr)"
    )


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("batch", [(2,), (2, 2)])
def test_batches_of_dense_matrices(layout, batch):
    single = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    count = int(np.prod(batch))
    dense = np.stack([single[:, np.roll(range(3), i)] for i in range(count)])
    dense = clew.tensor(dense.reshape(*batch, 2, 3), requires_grad=True)
    x = getattr(dense, f"to_sparse_{layout}")()
    assert x.layout is getattr(clew, f"sparse_{layout}")
    assert tuple(x.shape) == (*batch, 2, 3)
    assert tuple(x.values().shape) == (*batch, 3)
    np.testing.assert_array_equal(x.to_dense().detach().numpy(), dense.detach().numpy())
    (x.values() ** 2).sum().backward()
    np.testing.assert_array_equal(dense.grad.numpy(), 2 * dense.detach().numpy())
    same = dense.detach().to_sparse(layout=x.layout)
    assert clew.equal(same.values(), x.values())


def test_batches_whose_matrices_have_other_numbers_of_elements():
    dense = clew.stack([clew.eye(2), clew.ones(2, 2)])
    with pytest.raises(RuntimeError, match=r"as many elements.*\[2, 4\]"):
        dense.to_sparse_csr()
    with pytest.raises(RuntimeError, match="at least one matrix"):
        clew.ones(0, 2, 2).to_sparse_csr()
