"""Sparse tensors written in place, joined, taken apart and printed; against dense references."""

from __future__ import annotations

import numpy as np
import pytest

import clew

DENSE = np.array([[0.0, 0.0, 3.0, 0.0], [4.0, 0.0, 5.0, 0.0], [0.0, 6.0, 0.0, 0.0]])
OTHER = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 7.0]])
LAYOUTS = ["coo", "csr", "csc"]


def make(layout, array=DENSE, **options):
    dense = clew.tensor(array, **options)
    return dense.to_sparse() if layout == "coo" else getattr(dense, f"to_sparse_{layout}")()


def repeated():
    """Two elements of one place."""
    return clew.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, -3.0, 3.0], (2, 2))


def check(got, want, layout=None):
    if layout is not None:
        assert got.layout is getattr(clew, f"sparse_{layout}")
        got = got.to_dense()
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", [DENSE * 2, OTHER])
def test_adding_in_place(layout, other):
    x = make(layout)
    assert x.add_(make(layout, other), alpha=3) is x
    check(x, DENSE + 3 * other, layout)
    x -= make(layout, other)
    check(x, DENSE + 2 * other, layout)
    x += make(layout, other)
    check(x, DENSE + 3 * other, layout)
    # It is still one that operations take.
    check(x @ clew.ones(4, 2, dtype=clew.float64), (DENSE + 3 * other) @ np.ones((4, 2)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_adding_to_dense_in_place(layout):
    x = clew.tensor(OTHER)
    x.add_(make(layout))
    check(x, OTHER + DENSE)
    x.sub_(make(layout), alpha=2)
    check(x, OTHER - DENSE)
    x.mul_(make(layout))
    check(x, (OTHER - DENSE) * DENSE)
    values = clew.tensor([1.0, 2.0], requires_grad=True)
    sparse = clew.sparse_coo_tensor([[0, 0], [1, 1]], values, (1, 2))
    (clew.ones(1, 2).add_(sparse) ** 2).sum().backward()
    assert values.grad.tolist() == [8.0, 8.0]


def test_adding_in_place_where_a_leaf_would_get_other_places():
    x = make("csr").requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(make("csr", OTHER))
    with clew.no_grad(), pytest.raises(RuntimeError, match="other places"):
        x.add_(make("csr", OTHER))
    with clew.no_grad():
        x.add_(make("csr"))
    check(x, DENSE * 2, "csr")
    with pytest.raises(RuntimeError, match="one shape"):
        make("coo").add_(make("coo").t())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zero_leaves_no_elements(layout):
    x = make(layout)
    assert x.zero_() is x
    assert x._nnz() == 0
    check(x, DENSE * 0, layout)
    x += make(layout)
    check(x, DENSE, layout)
    leaf = make(layout).requires_grad_()
    leaf.to_dense().sum().backward()
    leaf.grad.zero_()
    check(leaf.grad, DENSE * 0, layout)
    with clew.no_grad():
        leaf.zero_()
    assert leaf.requires_grad
    assert leaf.is_leaf
    check(leaf, DENSE * 0, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_that_keep_their_dims(layout):
    x = make(layout)
    for dim in (0, 1, -1):
        check(x.sum(dim, keepdim=True), DENSE.sum(dim, keepdims=True), layout)
    check(x.sum((0, 1), keepdim=True), DENSE.sum(keepdims=True))
    values = clew.tensor([[1.0, 2.0], [3.0, 4.0]])
    hybrid = clew.sparse_coo_tensor([[0, 2]], values, (3, 2))
    check(hybrid.sum(0, keepdim=True), [[4.0, 6.0]])


def test_stack_and_unbind():
    x, y = make("coo"), make("coo", OTHER)
    for dim in (0, 1, 2, -1):
        check(clew.stack([x, y], dim), np.stack([DENSE, OTHER], dim), "coo")
    for dim in (0, 1):
        parts = x.unbind(dim)
        assert len(parts) == DENSE.shape[dim]
        for part, want in zip(parts, np.moveaxis(DENSE, dim, 0)):
            check(part, want, "coo")
    with pytest.raises(RuntimeError, match="same shape"):
        clew.stack([x, y.t()])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_iterated_over(layout):
    x = make(layout)
    assert len(x) == 3
    for row, want in zip(x, DENSE, strict=True):
        check(row.to_dense(), want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_like_another(layout):
    x = make(layout)
    empty = clew.empty_like(x)
    assert (empty.layout, empty.shape, empty.dtype) == (x.layout, x.shape, x.dtype)
    new = x.new_zeros((2, 5))
    assert (new._nnz(), new.dtype) == (0, clew.float64)
    check(new, np.zeros((2, 5)), layout)
    assert x.is_same_size(x * 2)
    assert not x.is_same_size(x.t())
    check(x.type_as(clew.ones(1)), DENSE, layout)
    assert x.type_as(clew.ones(1)).dtype is clew.float32
    assert x.type_as(x.float()).dtype is clew.float32
    if layout != "coo":
        check(clew.ones_like(x), DENSE != 0, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_more_functions_that_leave_zeros(layout):
    x = make(layout)
    check(x // 2, DENSE // 2, layout)
    check(clew.div(x, 2, rounding_mode="floor"), np.floor(DENSE / 2), layout)
    check(clew.div(-x, 2, rounding_mode="trunc"), np.trunc(-DENSE / 2), layout)
    check((x / 0).nan_to_num(posinf=9.0), (DENSE != 0) * 9.0, layout)
    check(clew.nn.functional.dropout(x, 0.0), DENSE, layout)
    dropped = clew.nn.functional.dropout(make(layout, np.ones((50, 40))), 0.25).to_dense()
    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert bool(x.bool().any())
    assert not bool((x * 0).bool().any())
    check(x.H.to_dense(), DENSE.T)
    assert x.H.layout is x.t().layout
    if layout != "coo":
        check(x.abs_().neg_(), -DENSE, layout)


def test_elements_of_one_place_are_added_first():
    x = repeated()
    check(x // 2, [[0, -1], [1, 0]], "coo")
    large = np.finfo("f4").max
    check((x.coalesce() / 0).nan_to_num(), [[0, -large], [large, 0]], "coo")
    with pytest.raises(RuntimeError, match="coalesce"):
        x.abs_()
    check(x.coalesce().abs_(), [[0, 2], [3, 0]], "coo")
    nothing = clew.sparse_coo_tensor([[0, 0]], [1.0, -1.0], (2,))
    assert not bool(nothing.any())


def test_complex_adjoints():
    z = clew.tensor([[0.0, 1 + 2j], [3.0, 0.0]])
    for layout in LAYOUTS:
        x = z.to_sparse() if layout == "coo" else getattr(z, f"to_sparse_{layout}")()
        for got in (x.H, x.mH, x.adjoint()):
            assert got.to_dense().tolist() == z.H.tolist()


def test_batches_of_products():
    dense = np.arange(12.0).reshape(2, 2, 3) % 5
    x = clew.tensor(dense).to_sparse()
    y = clew.tensor(np.arange(12.0).reshape(2, 3, 2), requires_grad=True)
    for made in (clew.bmm(x, y), x @ y):
        check(made, dense @ y.detach().numpy())
    clew.bmm(x, y).sum().backward()
    check(y.grad, np.broadcast_to(dense.sum(1)[:, :, None], (2, 3, 2)))
    with pytest.raises(RuntimeError, match="bmm"):
        clew.bmm(x, y[:1])


def test_size_alone_and_copies_of_parts():
    x = clew.sparse_coo_tensor(size=(2, 3))
    assert (x._nnz(), tuple(x.shape), x.is_coalesced()) == (0, (2, 3), True)
    with pytest.raises(TypeError, match="indices or size"):
        clew.sparse_coo_tensor()
    y = make("coo")
    part = y.narrow_copy(0, 1, 2)
    y.mul_(2)
    check(part, DENSE[1:], "coo")


def test_parts_are_printed_without_their_dtype():
    x = clew.sparse_coo_tensor([[0, 1]], clew.tensor([1, 2], dtype=clew.int32), (3,))
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1]]),\n       values=tensor([1, 2]),\n"
        "       size=(3,), nnz=2, dtype=clew.int32, layout=clew.sparse_coo)"
    )
    assert repr(clew.sparse_coo_tensor((2, 3))) == (
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=clew.sparse_coo)"
    )
    y = clew.tensor([[1.0, 0.0]]).double().to_sparse_csr()
    assert repr(y) == (
        "tensor(crow_indices=tensor([0, 1]),\n       col_indices=tensor([0]),\n"
        "       values=tensor([1.]), size=(1, 2), nnz=1, dtype=clew.float64,\n"
        "       layout=clew.sparse_csr)"
    )


def test_long_parts_are_broken_where_lines_are_full():
    assert repr(clew.arange(3000.0).to_sparse()) == (
        "tensor(indices=tensor([[   1,    2,    3,  ..., 2997, 2998, 2999]]),\n"
        "       values=tensor([1.0000e+00, 2.0000e+00, 3.0000e+00,  ...,\n"
        "                      2.9970e+03, 2.9980e+03, 2.9990e+03]),\n"
        "       size=(3000,), nnz=2999, layout=clew.sparse_coo)"
    )
    assert repr(clew.tensor([1j, 0]).to_sparse()) == (
        "tensor(indices=tensor([[0]]),\n       values=tensor([0.+1.j]),\n"
        "       size=(2,), nnz=1, layout=clew.sparse_coo)"
    )


def test_momentum_with_sparse_gradients():
    table = clew.nn.Embedding(4, 2, sparse=True)
    start = np.arange(8.0, dtype="f4").reshape(4, 2)
    with clew.no_grad():
        table.weight.copy_(clew.tensor(start))
    for nesterov in (False, True):
        with clew.no_grad():
            table.weight.copy_(clew.tensor(start))
        options = {"momentum": 0.9, "nesterov": nesterov}
        optimizer = clew.optim.SGD(table.parameters(), lr=0.1, **options)
        want, velocity = start.copy(), np.zeros_like(start)
        for step in range(3):
            optimizer.zero_grad()
            (table(clew.tensor([1, 1, step])) ** 2).sum().backward()
            optimizer.step()
            grad = np.zeros_like(start)
            for row in (1, 1, step):
                grad[row] += 2 * want[row]
            velocity = 0.9 * velocity + grad
            want -= 0.1 * (grad + 0.9 * velocity if nesterov else velocity)
        np.testing.assert_allclose(table.weight.detach().numpy(), want, rtol=1e-5)
        buffer = optimizer.state_dict()["state"][0]["momentum_buffer"]
        np.testing.assert_allclose(buffer.to_dense().numpy(), velocity, rtol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 2)])
def test_scipy_arrays_of_other_numbers_of_dims(shape):
    scipy = pytest.importorskip("scipy.sparse")
    array = np.arange(float(np.prod(shape))).reshape(shape) % 3
    try:
        theirs = scipy.coo_array(array)
    except (TypeError, ValueError):
        pytest.skip("this SciPy has matrices only")
    x = clew.sparse.from_scipy(theirs)
    check(x, array, "coo")
    back = clew.sparse.to_scipy(x)
    assert type(back) is scipy.coo_array
    np.testing.assert_array_equal(back.toarray(), array)
    assert np.shares_memory(back.data, x._values().numpy())


def test_scipy_rows_of_one_dim():
    scipy = pytest.importorskip("scipy.sparse")
    try:
        theirs = scipy.csr_array(np.array([0.0, 2.0, 3.0]))
    except (TypeError, ValueError):
        pytest.skip("this SciPy has matrices only")
    if theirs.ndim == 1:
        check(clew.sparse.from_scipy(theirs), [0.0, 2.0, 3.0], "coo")
    hybrid = clew.ones(2, 2).to_sparse(1)
    with pytest.raises(TypeError, match="numbers"):
        clew.sparse.to_scipy(hybrid)


def test_parts_are_checked_whatever_a_program_says():
    check_parts = clew.sparse.check_sparse_tensor_invariants
    assert check_parts.is_enabled()
    check_parts.disable()
    assert check_parts.is_enabled()
    check_parts.enable()

    @check_parts(enable=False)
    def make_bad():
        return clew.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,))

    for within in (check_parts(), check_parts(False)):
        with within, pytest.raises(RuntimeError, match="found index 5"):
            make_bad()


def test_indices_that_go_on_into_the_elements():
    dense = np.arange(30.0).reshape(5, 3, 2) % 7
    x = clew.tensor(dense).to_sparse(1)
    for key in (
        (1, 1),
        (4, slice(1, None)),
        (2, Ellipsis, 0),
        (-1, 2, 1),
        (3, clew.tensor([0, 2])),
    ):
        want = dense[tuple(k.numpy() if isinstance(k, clew.Tensor) else k for k in key)]
        check(x[key], want)
    y = clew.tensor(dense).to_sparse(2)
    check(y[1, 2, 1], dense[1, 2, 1])
    check(y[1, :, 0].to_dense(), dense[1, :, 0])
    with pytest.raises(IndexError):
        x[1, 3]


def test_dims_of_elements_are_joined_and_added():
    dense = np.arange(24.0).reshape(3, 4, 2) % 5
    other = np.arange(36.0).reshape(3, 4, 3) % 4
    x, y = clew.tensor(dense).to_sparse(1), clew.tensor(other).to_sparse(1)
    check(clew.cat([x, y], 2), np.concatenate([dense, other], 2), "coo")
    check(clew.cat([y, x, x], -1), np.concatenate([other, dense, dense], 2), "coo")
    for dim in range(4):
        check(x.unsqueeze(dim), np.expand_dims(dense, dim), "coo")
        check(clew.stack([x, x * 2], dim), np.stack([dense, dense * 2], dim), "coo")
    values = clew.ones(1, 2, requires_grad=True)
    z = clew.sparse_coo_tensor([[0]], values, (2, 2))
    (clew.cat([z, z * 3], 1).to_dense() ** 2).sum().backward()
    assert values.grad.tolist() == [[20.0, 20.0]]
    with pytest.raises(RuntimeError, match="agree in all dims"):
        clew.cat([x, x[:2]], 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_softmaxes_are_refused(layout):
    # What is not there would count as zero in a dense one and not at all in a sparse one.
    x = make(layout)
    functional = clew.nn.functional
    for function in (clew.softmax, clew.log_softmax, functional.softmax, functional.log_softmax):
        with pytest.raises(NotImplementedError, match=r"clew\.sparse\.(log_)?softmax"):
            function(x, 1)
    with pytest.raises(NotImplementedError, match="softmax"):
        functional.cross_entropy(x, clew.ones(3, 4) / 4)


@pytest.mark.parametrize("layout", [*LAYOUTS, "rows"])
@pytest.mark.parametrize("dtype", [clew.bool, clew.int32])
def test_sums_of_integers_have_the_dtype_of_dense_ones(layout, dtype):
    dense = clew.tensor(DENSE).to(dtype)
    x = dense.to_sparse(1) if layout == "rows" else make(layout, DENSE, dtype=dtype)
    for args in ((), (0,), (1,), ((0, 1),)):
        got, want = x.sum(*args), dense.sum(*args)
        assert got.dtype == want.dtype == clew.int64
        assert (got if got.layout is clew.strided else got.to_dense()).tolist() == want.tolist()


def test_rows_of_integers_keep_their_dtype():
    for dtype in (clew.bool, clew.int32):
        x = clew.tensor(DENSE).to(dtype).to_sparse(1)
        assert all(row.dtype == dtype for row in (*x.unbind(), x[0]))
        assert clew.sparse_coo_tensor(size=(), dtype=dtype).to_dense().dtype == dtype


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bools_are_not_subtracted(layout):
    x = make(layout)
    mask = make(layout, DENSE, dtype=clew.bool)
    for a, b in ((mask, mask), (x, mask), (mask, x)):
        with pytest.raises(RuntimeError, match="sub: .*bool.* not supported"):
            a - b


@pytest.mark.parametrize("layout", LAYOUTS)
def test_addmm_needs_matrices_that_fit(layout):
    x = make(layout)
    for mat, mat2, message in (
        (clew.ones(3), clew.ones(4), "mat1 and mat2 must be matrices"),
        (clew.ones(5, 3, 2), clew.ones(4, 2), "broadcastable to the product's shape"),
        (clew.ones(3), clew.ones(4, 2), "broadcastable to the product's shape"),
        (clew.ones(4, 2), clew.ones(4, 2), "broadcastable to the product's shape"),
    ):
        with pytest.raises(RuntimeError, match=message):
            clew.addmm(mat.double(), x, mat2.double())
    with pytest.raises(RuntimeError, match="broadcastable"):  # the product has one row
        clew.addmm(clew.ones(4, 2).double(), make(layout, DENSE[:1]), clew.ones(4, 2).double())
    got = clew.addmm(clew.ones(2).double(), x, clew.ones(4, 2).double())
    check(got, 1 + DENSE @ np.ones((4, 2)))


def test_empty_like_keeps_compressed_places():
    for layout in ("csr", "csc"):
        x = make(layout)
        made = clew.empty_like(x)
        assert made.layout is x.layout and made._nnz() == x._nnz()
        assert made.to_dense().shape == x.shape
    assert clew.empty_like(make("coo"))._nnz() == 0


def test_hstack_and_vstack():
    x, y = make("coo"), make("coo", OTHER)
    check(clew.hstack([x, y]), np.hstack([DENSE, OTHER]), "coo")
    check(clew.vstack([x, y]), np.vstack([DENSE, OTHER]), "coo")
    check(clew.hstack([x[0], y[1]]), np.hstack([DENSE[0], OTHER[1]]), "coo")
    check(clew.vstack([x[0], y[1]]), np.vstack([DENSE[0], OTHER[1]]), "coo")


def test_arguments_of_the_wrong_kind():
    x = make("csr")
    for call, message in (
        (lambda: clew.abs(clew.ones(3, 4), x), "abs"),
        (lambda: x.transpose(1.0, 0), "dim must be an int; got 1.0"),
        (lambda: clew.equal(x, 3), "'other' must be Tensor, not int"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_parts_of_another_layout():
    x, blocks = make("coo"), clew.eye(2).to_sparse_bsr((1, 1))
    for tensor, names in (
        (x, "crow_indices col_indices ccol_indices row_indices"),
        (x.to_sparse_csr(), "indices _indices ccol_indices row_indices coalesce"),
        (x.to_sparse_csc(), "indices _indices crow_indices col_indices coalesce"),
        (blocks, "indices coalesce ccol_indices row_indices"),
    ):
        for name in names.split():
            with pytest.raises(RuntimeError, match=f"^{name}: expected a tensor of layout sparse_"):
                getattr(tensor, name)()


def test_new_dims_by_indexing():
    x = make("coo")
    check(x[None], DENSE[None], "coo")
    check(x[:, None, 1:], DENSE[:, None, 1:], "coo")
    check(x[..., None], DENSE[..., None], "coo")
    check(x[None, 1], DENSE[None, 1], "coo")
    with pytest.raises(NotImplementedError, match="to_dense"):
        make("csr")[None]
