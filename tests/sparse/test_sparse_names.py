"""Rare names of PyTorch's sparse tensors, with the values that PyTorch 2.13 gives."""

import numpy as np
import pytest

import clew

A = clew.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
B = clew.arange(8.0).reshape(4, 2)
UNSORTED = clew.sparse_coo_tensor([[0, 0, 2, 0], [1, 3, 0, 1]], [1.0, 2.0, 3.0, 4.0], (3, 4))


def same(got, wanted):
    np.testing.assert_allclose(clew.tensor(got.tolist()).numpy(), clew.tensor(wanted).numpy())


def test_products_that_stay_sparse():
    wanted = (A @ B).tolist()
    made = clew.smm(A.to_sparse(), B)
    assert made._indices().tolist() == [[0, 0, 1, 1], [0, 1, 0, 1]] and not made.is_coalesced()
    same(made.to_dense(), wanted)
    made = clew.hspmm(A.to_sparse(), B)
    assert (made.sparse_dim(), made.dense_dim(), made._nnz()) == (1, 1, 2)
    same(made.to_dense(), wanted)
    same(clew.dsmm(A.to_sparse(), B), wanted)
    same(A.to_sparse().smm(B).to_dense(), wanted)
    made = clew.sspaddmm(clew.ones(3, 2).to_sparse(), A.to_sparse(), B, beta=2, alpha=3)
    assert made._nnz() == 10
    same(made.to_dense(), (2 + 3 * (A @ B)).tolist())


def test_gradients_of_products_that_stay_sparse():
    values = clew.tensor([2.0, 1.0, 3.0, 4.0], requires_grad=True)
    dense = B.clone().requires_grad_()
    a = clew.sparse_coo_tensor(A.to_sparse().indices(), values, (3, 4))
    for product in (clew.smm, clew.hspmm):
        got = clew.autograd.grad(product(a, dense).to_dense().square().sum(), (values, dense))
        wanted = clew.autograd.grad((a @ dense).square().sum(), (values, dense))
        for g, w in zip(got, wanted):
            same(g, w.tolist())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: clew.smm(A.to_sparse_csr(), B), "layout sparse_coo"),
        (lambda: clew.hspmm(A.to_sparse(), A.t().to_sparse()), "must be a dense one"),
        (lambda: clew.smm(A.to_sparse(), A), "cannot be multiplied"),
        (lambda: clew.smm(A.to_sparse(), B.double()), "one dtype"),
        (lambda: clew.sspaddmm(clew.ones(3, 2), A.to_sparse(), B), "in coordinates"),
        (lambda: clew.sspaddmm(clew.ones(2, 2).to_sparse(), A.to_sparse(), B), r"\[3, 2\]"),
    ],
)
def test_what_sparse_products_refuse(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_another_size_in_place():
    s = A.to_sparse()
    assert s.sparse_resize_((4, 5), 2, 0) is s
    assert tuple(s.shape) == (4, 5) and s.is_coalesced()
    wanted = clew.zeros(4, 5)
    wanted[:3, :4] = A
    same(s.to_dense(), wanted.tolist())
    rows = A.to_sparse(1).sparse_resize_((3, 6), 1, 1)
    assert tuple(rows.values().shape) == (2, 6)
    same(rows.to_dense()[:, :4], A.tolist())
    empty = clew.sparse_coo_tensor(size=(2, 3)).sparse_resize_((4,), 0, 1)
    assert (empty.sparse_dim(), empty.dense_dim()) == (0, 1)
    s.sparse_resize_and_clear_((2, 3, 4), 1, 2)
    assert (tuple(s.shape), s._nnz(), s.sparse_dim()) == ((2, 3, 4), 0, 1)
    assert tuple(A.to_sparse().resize_as_sparse_(clew.eye(5).to_sparse()).shape) == (5, 5)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: A.to_sparse().sparse_resize_((1, 4), 2, 0), "cannot shrink"),
        (lambda: A.to_sparse(1).sparse_resize_((3, 2), 1, 1), "cannot shrink"),
        (lambda: A.to_sparse().sparse_resize_((3, 4), 1, 1), "must keep its 2 sparse"),
        (lambda: A.to_sparse().sparse_resize_((3, 4, 2), 1, 1), "a number for each"),
        (lambda: A.sparse_resize_((3, 4), 2, 0), "layout sparse_coo"),
        (lambda: A.to_sparse_csr().sparse_resize_and_clear_((3, 4), 2, 0), "layout sparse_coo"),
        (lambda: A.to_sparse().resize_as_sparse_(A), "two sparse tensors"),
    ],
)
def test_what_other_sizes_refuse(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_what_a_tensor_in_coordinates_says_of_itself():
    s = A.to_sparse()
    assert not s.is_contiguous() and s.stride() == (0, 0) and s.storage_offset() == 0
    assert not s.is_conj() and not s.is_neg() and not s.is_pinned() and not s.is_inference()
    assert s.type() == "clew.sparse.FloatTensor"
    assert s.type("torch.sparse.DoubleTensor").dtype is clew.float64
    assert (A.sparse_dim(), A.dense_dim()) == (0, 2)
    z = (A * (1 + 2j)).to_sparse()
    same(z.imag.to_dense(), (2 * A).tolist())
    same(s.real.to_dense(), A.tolist())


@pytest.mark.parametrize("name", "neg positive conj conj_physical".split())
def test_linear_functions_keep_elements_of_equal_places(name):
    made = getattr(UNSORTED, name)()
    assert made._nnz() == 4 and not made.is_coalesced()
    same(made.to_dense(), getattr(UNSORTED.to_dense(), name)().tolist())


@pytest.mark.parametrize("name", "frac erfinv isposinf isneginf signbit angle".split())
def test_more_functions_that_leave_zero(name):
    x = A.to_sparse() / -8
    for s in (x, x.to_sparse_csr(), UNSORTED / 8):
        same(getattr(s, name)().to_dense(), getattr(s.to_dense(), name)().tolist())


def test_elements_at_the_places_of_another_tensor():
    mask = clew.sparse_coo_tensor([[0, 0, 2], [1, 2, 0]], [1.0, 1.0, 1.0], (3, 4)).coalesce()
    for x in (A.to_sparse(), UNSORTED, clew.sparse_coo_tensor(size=(3, 4))):
        got = x.sparse_mask(mask)
        assert got._indices().tolist() == mask.indices().tolist()
        same(got.to_dense(), (x.to_dense() * mask.to_dense()).tolist())
    values = clew.tensor([1.0, 2.0], requires_grad=True)
    x = clew.sparse_coo_tensor([[0, 1], [1, 1]], values, (3, 4))
    x.sparse_mask(mask).to_dense().square().sum().backward()
    assert values.grad.tolist() == [2.0, 0.0]


def test_changes_in_place():
    d = clew.tensor([[1.0, 2.0, 3.0, 4.0]] * 3)
    same(A.to_sparse().mul_(d.to_sparse()).to_dense(), (A * d).tolist())
    same(A.to_sparse().mul_(d).to_dense(), (A * d).tolist())
    same(A.to_sparse_csr().mul_(d).to_dense(), (A * d).tolist())
    same(UNSORTED.clone().floor_divide_(2).to_dense(), (UNSORTED.to_dense() // 2).tolist())
    t = A.to_sparse()
    assert t.t_() is t and tuple(t.shape) == (4, 3)
    same(t.to_dense(), A.t().tolist())
    same(A.to_sparse().transpose_(0, 1).to_dense(), A.t().tolist())
    x = clew.ones(3, 2)
    assert x.addmm_(A.to_sparse(), B) is x
    same(x, (1 + A @ B).tolist())
    csr = A.to_sparse_csr()
    assert csr.fill_(7).values().tolist() == [7.0] * 4
    assert clew.full_like(csr, 2).values().tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match=r"copy_: .*\.to_dense\(\)"):
        clew.ones(3, 4).copy_(A.to_sparse())
    with pytest.raises(RuntimeError, match="cannot be copied into each other"):
        A.to_sparse().copy_(A)


def test_places_by_tensors_and_from_the_end():
    s = A.to_sparse()
    same(s[clew.tensor(1)].to_dense(), A[1].tolist())
    assert float(s[1, clew.tensor(2)]) == 4.0
    got = s.index_select(1, clew.tensor([-1, 1, 3]))
    assert got._values().tolist() == [1.0, 2.0, 1.0]  # the order of the index, as in PyTorch
    same(got.to_dense(), A[:, [3, 1, 3]].tolist())
    assert s.permute(0, 1).is_coalesced()
    same(clew.dstack([s, s]).to_dense(), clew.dstack([A, A]).tolist())
    same(clew.nn.functional.embedding(clew.tensor([1, 0]), s).to_dense(), A[[1, 0]].tolist())
    same(s.pow(-1).values(), [0.5, 1.0, 1 / 3, 0.25])


def test_like_others_and_other_layouts():
    s = A.to_sparse()
    assert clew.zeros_like(s, dtype=clew.float64).dtype is clew.float64
    assert clew.zeros_like(s, layout=clew.strided).layout is clew.strided
    same(s.to_sparse(layout=clew.strided), A.tolist())
    same(clew.clone(s).to_dense(), A.tolist())
    same(clew.addmv(clew.ones(3), A.to_sparse_csr(), B[:, 0]), (1 + A @ B[:, 0]).tolist())


def test_blocks():
    d = clew.cat([A, A[:1]])
    x = d.to_sparse_bsr((2, 2))
    same(x.mH.to_dense(), d.t().tolist())
    assert clew.zeros_like(x)._nnz() == 0 and x.clone().zero_()._nnz() == 0
    same(clew.ones_like(x).values(), clew.ones(x.values().shape).tolist())
    same(x.clone().neg_().to_dense(), (-d).tolist())
    same(clew.nn.functional.linear(x, B.t()), (d @ B).tolist())
    same(clew.sparse.addmm(clew.ones(2), x, B), (1 + d @ B).tolist())
    assert x.sum(dtype=clew.float64).dtype is clew.float64
    assert x.is_same_size(d.to_sparse_bsr((1, 1)))


def test_low_rank_of_sparse_matrices():
    clew.manual_seed(0)
    a = clew.randn(12, 5)
    a = a * (a > 0)
    for x in (a, a.t()):
        u, s, v = clew.pca_lowrank(x.to_sparse(), 5, niter=4)
        centred = x - x.mean(0)
        np.testing.assert_allclose(((u * s) @ v.mH).numpy(), centred.numpy(), atol=1e-5)
    gram = a.t() @ a
    largest = clew.linalg.eigvalsh(gram)[-1]
    for x in (gram.to_sparse(), gram.to_sparse_csr()):
        value, vector = clew.lobpcg(x, 1)
        np.testing.assert_allclose(value.numpy(), largest.numpy(), rtol=1e-4)
        np.testing.assert_allclose((x @ vector).numpy(), (value * vector).numpy(), atol=1e-2)


def test_without_elements_by_layout():
    for make in (clew.zeros, clew.empty):
        x = make(2, 3, layout=clew.sparse_coo, dtype=clew.float64)
        assert (x._nnz(), x.sparse_dim(), x.dtype) == (0, 2, clew.float64) and x.is_coalesced()
        assert make((2, 3), layout=clew.sparse_csr).crow_indices().tolist() == [0, 0, 0]
        assert make((2, 3), layout=clew.sparse_csc).ccol_indices().tolist() == [0, 0, 0, 0]
    assert clew.zeros_like(A, layout=clew.sparse_coo).to_dense().tolist() == [[0.0] * 4] * 3
    for call in (
        lambda: clew.zeros(2, layout=clew.sparse_csr),
        lambda: clew.ones(2, 3, layout=clew.sparse_coo),
        lambda: clew.zeros(2, 3, layout=clew.sparse_bsr),
    ):
        with pytest.raises(RuntimeError, match="layout"):
            call()


def test_other_names_of_operations():
    clew.manual_seed(0)
    a = clew.randn(3, 4, 2) * (clew.rand(3, 4, 2) > 0.5)
    x = a.to_sparse()
    for source, destination in ((0, 2), (-1, 0), ((0, 1), (1, 2))):
        for move in (clew.movedim, clew.moveaxis):
            moved = move(x, source, destination)
            np.testing.assert_array_equal(moved.to_dense(), a.movedim(source, destination))
    np.testing.assert_array_equal(x.swapdims(0, 2).to_dense(), a.swapdims(0, 2))
    for wrong in ((0, 3), ((0, 0), (1, 2)), ((0, 1), (2,))):
        with pytest.raises((IndexError, RuntimeError), match="movedim: "):
            x.movedim(*wrong)
    np.testing.assert_array_equal(x.clone().multiply_(2).divide_(4).to_dense(), a / 2)
    np.testing.assert_array_equal(x.clone().subtract_(x, alpha=3).to_dense(), -2 * a)
    assert x.float_power(2).dtype is clew.float64
    np.testing.assert_allclose(x.float_power(2).to_dense(), a.double() ** 2)
    np.testing.assert_allclose(x.dist(x * 3), a.dist(a * 3), rtol=1e-6)
    np.testing.assert_allclose(x.sum_to_size(1, 1, 1), a.sum_to_size(1, 1, 1), rtol=1e-6)
    assert x.flatten(-1) is x and x.sum_to_size(3, 4, 2) is x
    with pytest.raises(NotImplementedError):
        x.flatten()
    nan = clew.tensor([[float("nan"), 0.0], [0.0, 1.0]])
    for layout in (clew.sparse_coo, clew.sparse_csr):
        made = nan.to_sparse(layout=layout)
        assert made.nan_to_num_(2.0) is made and made.to_dense().tolist() == [[2, 0], [0, 1]]
        assert made.new_ones(2, 1).tolist() == [[1], [1]]
        assert made.real.to_dense().tolist() == [[2, 0], [0, 1]]


def test_masks_of_compressed_layouts_and_of_the_tensor_itself():
    a = clew.tensor([[1.0, 0.0], [2.0, 3.0]])
    mask = clew.tensor([[0.0, 5.0], [7.0, 0.0]])
    for layout in (clew.sparse_csr, clew.sparse_csc):
        made = a.to_sparse(layout=layout).sparse_mask(mask.to_sparse(layout=layout))
        assert made.layout is layout and made.values().tolist() == [2.0]
        assert made.to_dense().tolist() == [[0, 0], [2, 0]]
    twice = clew.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 4.0], (2,))
    assert twice.sparse_mask(twice).to_dense().tolist() == [3, 4]


def test_new_makes_another_of_its_layout():
    x = A.double().to_sparse()
    i, v = x._indices(), x._values().float()
    for made, shape in ((x.new(), (0,)), (x.new(2, 3), (2, 3)), (x.new(x.shape), (3, 4))):
        assert made.layout is clew.sparse_coo and made.dtype is clew.float64
        assert made.shape == shape and made._nnz() == 0 and made.is_coalesced()
    for made, shape in ((x.new(i, v), (2, 4)), (x.new(i, v, x.shape), (3, 4))):
        assert made.shape == shape and made.dtype is clew.float32 and not made.is_coalesced()
        same(made.to_dense(), A[: shape[0]].tolist())
    same(x.new(indices=i, values=v, size=(3, 4)).to_dense(), A.tolist())
    assert x.new().resize_as_(x).shape == x.shape
    for wrong in ((v,), ([1.0, 2.0],), ((2, 3),)):
        with pytest.raises(TypeError, match="new"):
            x.new(*wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: clew.sparse.mm(x, 1),
        lambda x: clew.dsmm([1.0], x),
        lambda x: clew.hspmm(x, 1),
        lambda x: clew.smm(x, 1),
        lambda x: clew.sspaddmm(x, 0, 1),
        lambda x: clew.sparse.addmm(x, 0, 1),
        lambda x: clew.sparse.sampled_addmm(x, 0, 1),
        lambda x: clew.sparse.spdiags(x, 0, (2, 2)),
        lambda x: clew.sparse.to_scipy([x]),
        lambda x: clew.nested.masked_select(x.to_dense(), 1),
    ],
)
def test_other_kinds_of_arguments(call):
    with pytest.raises(TypeError, match=r": .* must be a .*[tT]ensor; got (int|list)"):
        call(clew.eye(2).to_sparse())
