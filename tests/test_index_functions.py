"""Functions that gather, scatter and view by indices: what the generic suite cannot check."""

from __future__ import annotations

import importlib
import time
import warnings

import numpy as np
import pytest

import clew

RNG = np.random.default_rng(7)


def array(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def test_embedding_gradient():
    weight = clew.tensor(RNG.normal(size=(5, 3)), requires_grad=True)
    indices = clew.tensor([[1, 2, 1], [4, 1, 0]])
    seed = RNG.normal(size=(2, 3, 3))
    for padding, scale in [(-1, False), (1, False), (2, True), (-1, True)]:
        out = clew._C.ops._embedding(weight, indices, padding, scale)
        s = clew.tensor(seed, requires_grad=True)
        (g,) = clew.autograd.grad(out, weight, s, create_graph=True)
        want = np.zeros((5, 3))
        np.add.at(want, indices.numpy().ravel(), seed.reshape(-1, 3))
        if scale:
            want /= np.maximum(np.bincount(indices.numpy().ravel(), minlength=5), 1)[:, None]
        if padding >= 0:
            want[padding] = 0
        np.testing.assert_allclose(g.detach().numpy(), want)
        v = RNG.normal(size=(5, 3))
        (gs,) = clew.autograd.grad(g, s, clew.tensor(v))
        # <v, G s> is linear in s: its gradient is what G's rows give.
        assert np.isclose((gs.numpy() * seed).sum(), (v * want).sum())


def test_gradients_of_parts_that_got_none():
    x = clew.tensor(array(4, 2), requires_grad=True)
    a, _, _, d = x.unbind()
    (a * 2 + d).sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [0, 0], [1, 1]]
    x.grad = None
    _, rest = x.split([1, 3])
    (rest * 3).sum().backward()
    assert x.grad.tolist() == [[0, 0], [3, 3], [3, 3], [3, 3]]
    x.grad = None
    p, q, r = x.chunk(3, 0)[0], x.chunk(2, 1)[1], x.tensor_split([1, 1])[0]
    (p.sum() + 10 * q.sum() + 100 * r.sum()).backward()
    assert x.grad.tolist() == [[101, 111], [1, 11], [0, 10], [0, 10]]


def test_as_strided_of_shared_memory():
    base = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    wide = base.as_strided((2, 2), (1, 1))
    assert wide.tolist() == [[1, 2], [2, 3]]
    wide.sum().backward()
    assert base.grad.tolist() == [1, 2, 1]
    # An input whose elements share memory: each stands for its memory once.
    base.grad = None
    base.expand(4, 3).as_strided((3,), (1,)).sum().backward()
    assert base.grad.tolist() == [1, 1, 1]
    x = clew.tensor(array(2, 3), requires_grad=True)
    x.t().as_strided((2,), (2,), 1).sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_scatter_reduce_prod_with_zeros():
    x = clew.tensor([0.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    src = clew.tensor([2.0, 3.0, 0.0, 5.0, 0.0, 0.0], dtype=clew.float64, requires_grad=True)
    out = x.scatter_reduce(0, clew.tensor([0, 0, 1, 1, 2, 2]), src, "prod")
    assert out.tolist() == [0, 0, 0]
    out.sum().backward()
    assert x.grad.tolist() == [6, 0, 0]
    assert src.grad.tolist() == [0, 0, 10, 0, 0, 0]


def test_scatter_reduce_shares_ties():
    x = clew.tensor([1.0, 5.0], requires_grad=True)
    src = clew.tensor([3.0, 3.0, 5.0], requires_grad=True)
    x.scatter_reduce(0, clew.tensor([0, 0, 1]), src, "amax").sum().backward()
    assert x.grad.tolist() == [0, 0.5] and src.grad.tolist() == [0.5, 0.5, 0.5]


def test_complex_and_byte_views():
    z = clew.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    r = clew.view_as_real(z)
    assert r.data_ptr() == z.data_ptr()
    (r * clew.tensor([1.0, 10.0])).sum().backward()
    assert z.grad.tolist() == [1 + 10j, 1 + 10j]
    x = clew.tensor([1.0, -2.0])
    assert (
        x.view(clew.int32).tolist()
        == np.array([1.0, -2.0], dtype=np.float32).view(np.int32).tolist()
    )
    assert x.view(clew.uint8).shape == (8,) and x.view(clew.uint8).view(clew.float32).tolist() == [
        1,
        -2,
    ]
    x.view(clew.int32)[0] = 0
    assert x[0] == 0
    for bad in (clew.zeros(3), clew.zeros(2, 2).t()):
        with pytest.raises(RuntimeError, match="view"):
            bad.view(clew.float64)
    with pytest.raises(RuntimeError, match="stride 1"):
        clew.view_as_complex(clew.zeros(2, 2).t())


def test_view_refuses_what_needs_a_copy():
    x = clew.zeros(2, 3).t()
    with pytest.raises(RuntimeError, match="use reshape"):
        x.view(6)
    assert x.reshape(6).shape == (6,)
    assert x.contiguous() is not x and x.contiguous().is_contiguous()
    y = clew.zeros(2, 3)
    assert y.contiguous() is y
    assert y.reshape(3, 2).data_ptr() == y.data_ptr()


def test_scatter_takes_numbers_and_larger_sources():
    x = clew.zeros(3, dtype=clew.float64)
    assert x.scatter(0, clew.tensor([1]), 2.5).tolist() == [0, 2.5, 0]
    assert x.scatter(0, clew.tensor([1]), value=2.5).tolist() == [0, 2.5, 0]
    assert clew.ones(2).scatter(0, clew.tensor([1]), 3, reduce="multiply").tolist() == [1, 3]
    src = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    x.scatter_add(0, clew.tensor([0, 0]), src).sum().backward()
    assert src.grad.tolist() == [1, 1, 0]
    y = clew.zeros(3, dtype=clew.bfloat16)
    n = 1000
    assert (
        y.scatter_add(0, clew.zeros(n, dtype=clew.int64), clew.ones(n, dtype=clew.bfloat16))[0]
        == 1000
    )


def test_nonzero_as_tuple():
    x = clew.tensor([[0, 1], [2, 0]])
    rows, columns = x.nonzero(as_tuple=True)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    assert isinstance(x.nonzero(as_tuple=False), clew.Tensor)
    assert [t.tolist() for t in clew.tensor([0, 3]).nonzero(as_tuple=True)] == [[1]]
    assert [t.tolist() for t in clew.where(x > 0)] == [[0, 1], [1, 0]]
    assert x.nonzero().shape == (2, 2)
    assert clew.nonzero(x, as_tuple=False).tolist() == [[0, 1], [1, 0]]
    assert clew.nonzero(input=x, as_tuple=False).tolist() == [[0, 1], [1, 0]]
    assert [t.tolist() for t in clew.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    with pytest.raises(RuntimeError, match=r"nonzero: out goes with as_tuple=False"):
        clew.nonzero(x, as_tuple=True, out=clew.empty(0, dtype=clew.int64))


def test_no_native_function_hides_one_written_in_python():
    from clew._base.names import FUNCTIONS, by_name

    for name, module in by_name(FUNCTIONS).items():
        assert getattr(clew, name) is getattr(importlib.import_module(module), name), name


def test_index_put():
    a = array(3, 4)
    x = clew.tensor(a, requires_grad=True)
    i, j = clew.tensor([0, 2, 0]), clew.tensor([1, -1, 1])
    v = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    y = x.index_put((i, j), v, accumulate=True)
    want = a.copy()
    np.add.at(want, (i.numpy(), j.numpy()), v.detach().numpy())
    np.testing.assert_array_equal(y.detach().numpy(), want)
    z = clew.tensor(a)
    assert z.index_put_((None, clew.tensor([1])), clew.tensor(9.0, dtype=clew.float64)) is z
    assert z[:, 1].tolist() == [9, 9, 9]
    assert clew.index_put(
        clew.zeros(2), (clew.tensor([True, False]),), clew.tensor(1.0)
    ).tolist() == [1, 0]
    assert clew.zeros(2).index_put_((clew.tensor([True, False]),), clew.ones(1, 1)).tolist() == [
        1,
        0,
    ]
    for name in ("index_put", "index_put_"):
        with pytest.raises(IndexError, match=rf"^{name}: index 7"):
            getattr(clew.zeros(2), name)((clew.tensor([7]),), clew.tensor(1.0))
    with pytest.raises(TypeError, match="tuple"):
        x.index_put(i, v)
    with pytest.raises(RuntimeError, match="dtypes"):
        z.index_put_((i,), clew.tensor(1.0))
    with pytest.raises(TypeError, match="values"):
        z.index_put_((i,), 1.0)


@pytest.mark.parametrize(
    "blocks, want",
    [
        ([clew.ones(1, 2).half(), clew.tensor(1.0)], clew.float16),
        ([clew.tensor(1.0, dtype=clew.float64), clew.ones(1).half()], clew.float16),
        ([clew.ones(1, 2).long(), clew.tensor(1.0)], clew.float32),
        ([clew.tensor(1), clew.tensor(1.0).half(), clew.ones(1, 2).bfloat16()], clew.bfloat16),
        ([clew.ones(2).int(), clew.ones(1).half()], clew.float16),
        ([clew.tensor(1), clew.tensor(1.0)], clew.float32),
    ],
)
def test_numbers_among_blocks_change_no_more_than_the_kind_of_dtype(blocks, want):
    made = clew.block_diag(*blocks)
    assert made.dtype is want
    assert made.sum().item() == sum(b.numel() for b in blocks)


def test_joining_any_number():
    r = np.random.default_rng(3)
    a, b = r.normal(size=(2, 3)), r.normal(size=(1, 2))
    ta, tb = clew.tensor(a), clew.tensor(b)
    want = np.zeros((4, 6))
    want[:2, :3], want[2:3, 3:5], want[3, 5] = a, b, 7
    np.testing.assert_array_equal(clew.block_diag(ta, tb, clew.tensor(7.0)).numpy(), want)
    assert clew.cartesian_prod(clew.tensor([1, 2])).tolist() == [1, 2]
    assert clew.combinations(clew.tensor([1, 2]), with_replacement=True).tolist() == [
        [1, 1],
        [1, 2],
        [2, 2],
    ]
    assert clew.combinations(clew.tensor([1, 2]), 3).shape == (0, 3)
    one, two = clew.atleast_1d(clew.tensor(1), clew.tensor([2]))
    assert one.tolist() == [1] and two.tolist() == [2]
    assert clew.atleast_3d(clew.tensor([1, 2])).shape == (1, 2, 1)
    gx, gy = clew.meshgrid([clew.tensor([1, 2]), clew.tensor([3, 4, 5])], indexing="xy")
    assert gx.shape == gy.shape == (3, 2)
    with pytest.raises(TypeError):
        clew.atleast_1d(3)
    with pytest.raises(RuntimeError, match="at most 2"):
        clew.block_diag(clew.zeros(1, 1, 1))


def test_scatters_into_views():
    x = clew.zeros(3, 3, requires_grad=True)
    src = clew.ones(3, requires_grad=True)
    for y, where in [
        (x.select_scatter(src, 1, 2), np.s_[:, 2]),
        (x.diagonal_scatter(src), np.s_[[0, 1, 2], [0, 1, 2]]),
        (x.slice_scatter(src[None], 0, -1), np.s_[-1:]),
        (x.as_strided_scatter(src, (3,), (3,), 1), np.s_[:, 1]),
    ]:
        want = np.zeros((3, 3))
        want[where] = 1
        np.testing.assert_array_equal(y.detach().numpy(), want)
        gx, gs = clew.autograd.grad(y.sum(), (x, src))
        np.testing.assert_array_equal(gx.numpy(), 1 - want)
        assert gs.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="shape"):
        x.select_scatter(clew.ones(2), 0, 0)
    assert clew.ones(2, dtype=clew.float64).index_reduce(
        0,
        clew.tensor([1, 1]),
        clew.tensor([4.0, 8.0], dtype=clew.float64),
        "mean",
        include_self=False,
    ).tolist() == [1, 6]


def test_shapes_change_in_place():
    x = clew.arange(6).reshape(1, 2, 3)
    assert x.squeeze_() is x and x.shape == (2, 3)
    x.t_()
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]] and not x.is_contiguous()
    x.unsqueeze_(-1).transpose_(0, 2).swapaxes_(1, 2)
    assert x.shape == (1, 3, 2)
    w = clew.tensor([[1.0, 2.0]], requires_grad=True)
    y = w * 3
    y.t_()
    (y * clew.tensor([[1.0], [10.0]])).sum().backward()
    assert w.grad.tolist() == [[3, 30]]
    with pytest.raises(RuntimeError, match="leaf"):
        w.t_()
    z = w * 1
    square = z * z
    z.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_unravel_index():
    flat = clew.tensor([[0, 23], [7, 12]])
    for got, want in zip(
        clew.unravel_index(flat, (2, 3, 4)), np.unravel_index(flat.numpy(), (2, 3, 4))
    ):
        np.testing.assert_array_equal(got.numpy(), want)
    for indices in (clew.ones(1), clew.ones(1, dtype=clew.bool), clew.ones(1) * 1j):
        with pytest.raises(TypeError, match="unravel_index: indices must be integers"):
            clew.unravel_index(indices, (2, 3))
    for shape in (2.0, (2, 3.0), clew.tensor([2, 3])):
        with pytest.raises(TypeError, match="shape must be an int or a sequence of ints"):
            clew.unravel_index(flat, shape)


def test_index_tensors_write_through_views_with_gradient():
    w = clew.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    v = clew.tensor([5.0, 6.0], requires_grad=True)
    y = w * 2
    whole = y.reshape(2, 2)
    y[1:][clew.tensor([2, 0])] = v * 10
    assert y.tolist() == [2, 60, 6, 50] and whole.tolist() == [[2, 60], [6, 50]]
    whole.t()[0].index_put_((clew.tensor([1, 1]),), v, accumulate=True)
    assert y.tolist() == [2, 60, 17, 50]
    (y * clew.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert w.grad.tolist() == [2, 0, 200, 0]
    assert v.grad.tolist() == [10 * 1000 + 100, 10 * 10 + 100]


def test_second_derivative_of_assignment():
    x = clew.tensor([1.0, 2.0, 3.0], dtype=clew.float64, requires_grad=True)
    v = clew.tensor([4.0], dtype=clew.float64, requires_grad=True)
    y = x * x
    y[clew.tensor([1])] = v * v * v
    y[0] = v[0] * x[2]
    (g, gv) = clew.autograd.grad((y * y).sum(), (x, v), create_graph=True)
    # y = (v x2, v^3, x2^2)
    np.testing.assert_allclose(g.detach().numpy(), [0, 0, 2 * 16 * 3 + 4 * 27])
    np.testing.assert_allclose(gv.detach().numpy(), [6 * 4**5 + 2 * 4 * 9])
    (h,) = clew.autograd.grad(gv.sum(), v, retain_graph=True)
    np.testing.assert_allclose(h.numpy(), [30 * 4**4 + 2 * 9])
    (hx,) = clew.autograd.grad(g[2], x)
    np.testing.assert_allclose(hx.numpy(), [0, 0, 2 * 16 + 12 * 9])


def test_index_fill_counts_a_repeated_index_once():
    x = clew.zeros(2, 4, dtype=clew.float64, requires_grad=True)
    value = clew.tensor(2.0, dtype=clew.float64, requires_grad=True)
    y = x.index_fill(1, clew.tensor([1, -1, 1, 3]), value)
    assert y.tolist() == [[0, 2, 0, 2]] * 2
    y.backward(clew.arange(8.0, dtype=clew.float64).view(2, 4))
    assert value.grad.item() == 1 + 3 + 5 + 7
    assert x.grad.tolist() == [[0, 0, 2, 0], [4, 0, 6, 0]]


def _mask(value, dtype):
    return clew.tensor(value).to(dtype)


@pytest.mark.parametrize("dtype", [clew.bool, clew.uint8])
@pytest.mark.parametrize("on", [0, 1])
def test_a_mask_without_dimensions_is_a_new_dimension(dtype, on):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = clew.tensor(a)
    mask, flag = _mask(on, dtype), bool(on)
    for key, want in [
        (mask, np.bool_(flag)),
        ((mask, 1), (np.bool_(flag), 1)),
        ((..., mask), (..., np.bool_(flag))),
        ((None, mask), (None, np.bool_(flag))),
        ((mask, slice(0, 1)), (np.bool_(flag), slice(0, 1))),
    ]:
        np.testing.assert_array_equal(x[key].numpy(), a[want])
        y, b = x.clone(), a.copy()
        y[key] = -1.0
        b[want] = -1.0
        np.testing.assert_array_equal(y.numpy(), b)
    assert clew.tensor(5.0)[mask].shape == (on,)


@pytest.mark.filterwarnings("ignore:indexing with dtype")
@pytest.mark.parametrize("dtype", [clew.bool, clew.uint8])
def test_index_put_with_a_mask_without_dimensions(dtype):
    x = clew.arange(6.0).reshape(2, 3)
    minus = clew.tensor(-1.0)
    assert x.index_put((_mask(1, dtype),), minus).tolist() == [[-1.0] * 3] * 2
    assert x.index_put((_mask(0, dtype),), minus).tolist() == x.tolist()
    assert x.index_put((_mask(1, dtype),), minus, accumulate=True).tolist() == (x - 1).tolist()
    one = x.index_put((_mask(1, dtype), clew.tensor([1])), minus)
    assert one.tolist() == [[0, 1, 2], [-1] * 3]
    leaf = x.clone().requires_grad_()
    value = minus.clone().requires_grad_()
    y = leaf * 1
    y.index_put_((_mask(1, dtype), clew.tensor([1])), value)
    y.sum().backward()
    assert leaf.grad.tolist() == [[1.0] * 3, [0.0] * 3] and value.grad.item() == 3
    with pytest.raises(IndexError, match="broadcast"):
        x.index_put((_mask(0, dtype), clew.tensor([0, 1])), minus)


def test_uint8_masks_warn():
    x = clew.arange(3.0)
    mask = clew.tensor([1, 0, 2], dtype=clew.uint8)
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        x[mask] = 7.0
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert x.index_put((mask,), clew.tensor(8.0)).tolist() == [8, 1, 8]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = x.tolist()
        with pytest.raises(UserWarning):
            x[mask] = 9.0
        assert x.tolist() == before


def test_a_key_of_false_assigns_nothing():
    x = clew.arange(3.0)
    x[False] = clew.ones(2)
    assert x.tolist() == [0, 1, 2]


@pytest.mark.at_once
def test_index_fill_of_little_does_not_pass_over_the_whole():
    x = clew.zeros(2000, 2000)
    few = clew.tensor([3, -1])

    def seconds(f):
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            f()
            times.append(time.perf_counter() - begin)
        return min(times)

    assert seconds(lambda: x.index_fill_(0, few, 1.0)) < seconds(x.clone) / 5
    assert x.sum().item() == 4000 and x[3].sum() == 2000


def test_index_fill_in_place_keeps_gradients():
    x = clew.arange(12.0).reshape(3, 4).requires_grad_()
    y = x * 1
    y.index_fill_(1, clew.tensor([0, 3, 0]), 5.0)
    (y * y).sum().backward()
    assert y[:, 0].tolist() == [5, 5, 5]
    assert x.grad.tolist() == [[0, 2, 4, 0], [0, 10, 12, 0], [0, 18, 20, 0]]
    value = clew.tensor(2.0, requires_grad=True)
    z = clew.zeros(3, 4)
    z.index_fill_(1, clew.tensor([0, 3, 3]), value)
    z.sum().backward()
    assert value.grad.item() == 6 and z.sum().item() == 12
    assert clew.tensor(5.0).index_fill_(0, clew.tensor(0), 2.0).item() == 2


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include", [True, False])
def test_reductions_in_place_are_those_out_of_place(reduce, include):
    x = clew.arange(12.0).reshape(3, 4)
    src = clew.arange(12.0).reshape(3, 4) * 2 - 5
    index = clew.tensor([[0, 1, 2, 0], [0, 0, 0, 0]])
    for lies in (
        lambda t: t,
        lambda t: t.t().contiguous().t(),
        lambda t: t.repeat_interleave(2, 0)[::2],
    ):
        here = lies(x.clone())
        version = here._version
        expected = x.scatter_reduce(0, index, src, reduce, include_self=include)
        assert here.scatter_reduce_(0, index, src, reduce, include_self=include) is here
        assert here.equal(expected) and here._version == version + 1
        if reduce != "sum":
            rows, here = clew.tensor([2, 0, 2]), lies(x.clone())
            expected = x.index_reduce(0, rows, src, reduce, include_self=include)
            assert here.index_reduce_(0, rows, src, reduce, include_self=include).equal(expected)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    s, r = src[:2].clone().requires_grad_(), src[:2].clone().requires_grad_()
    y = a * 1
    y.scatter_reduce_(0, index, s, reduce, include_self=include)
    z = (b * 1).scatter_reduce(0, index, r, reduce, include_self=include)
    (y * y).sum().backward()
    (z * z).sum().backward()
    assert a.grad.equal(b.grad) and s.grad.equal(r.grad)


def test_put_in_place_through_views_and_gradients():
    x = clew.arange(12.0).reshape(3, 4).requires_grad_()
    s = clew.tensor([3.0, 4.0], requires_grad=True)
    for lies in (lambda t: t * 1, lambda t: (t * 1).t()):
        x.grad = s.grad = None
        y = lies(x)
        old = y.detach().clone()
        y.put_(clew.tensor([1, -5]), s)
        (y * y).sum().backward()
        assert s.grad.tolist() == [6, 8]
        assert y.flatten()[[1, 7]].tolist() == [3, 4] and (y != old).sum() == 2
        assert x.grad.count_nonzero() == 9  # but for the two written over, and 0 squared
    with pytest.raises(IndexError, match="out of bounds"):
        clew.zeros(3).put_(clew.tensor([3]), clew.tensor([1.0]))


def test_clamp_in_place_writes_once():
    x = clew.tensor([1.0, float("nan"), 5.0, -2.0])
    address, version = x.data_ptr(), x._version
    assert x.clamp_(0, 2) is x and x.data_ptr() == address and x._version == version + 1
    assert x[[0, 2, 3]].tolist() == [1, 2, 0] and x[1].isnan()
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.tensor([1, 2]).clamp_(0.5, 1.5)
    with pytest.raises(RuntimeError, match="at least one of min and max"):
        x.clamp_()
    a = clew.arange(6.0, requires_grad=True)
    y = a * 1
    y[2:].clamp_(3, 4)
    (y * y).sum().backward()
    assert a.grad.tolist() == [0, 2, 0, 6, 8, 0]


def test_index_fill_with_a_value_of_what_it_fills():
    x = clew.arange(3.0)
    assert x.index_fill_(0, clew.tensor([0, 2]), x[1]).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name, arguments",
    {
        "put_": (clew.tensor([0]), clew.ones(1)),
        "index_fill_": (0, clew.tensor([0]), 1.0),
        "index_copy_": (0, clew.tensor([0]), clew.ones(1)),
        "clamp_": (0, 1),
    }.items(),
)
def test_refused_writes_name_the_operation_that_was_called(name, arguments):
    with pytest.raises(RuntimeError, match=rf"^{name}: a leaf Variable that requires grad"):
        getattr(clew.zeros(3, requires_grad=True), name)(*arguments)
    expanded = clew.zeros(1).expand(3)
    if name == "index_fill_":  # PyTorch does it, and warns
        with pytest.warns(UserWarning, match="index_fill_ on expanded tensors"):
            expanded.index_fill_(*arguments)
        assert expanded.tolist() == [1, 1, 1]
        return
    with pytest.raises(RuntimeError, match=rf"^{name}: .*more than one element"):
        getattr(expanded, name)(*arguments)


@pytest.mark.parametrize("dtype", [clew.int8, clew.uint8, clew.int32, clew.int64])
def test_index_add_to_integers_takes_the_whole_part_of_alpha(dtype):
    x, places, ones = clew.ones(3, dtype=dtype), clew.tensor([0, 1, 0]), clew.ones(3, dtype=dtype)
    for alpha, want in ((2.0, [5, 3, 1]), (2.5, [5, 3, 1]), (0.5, [1, 1, 1]), (True, [3, 2, 1])):
        assert x.index_add(0, places, ones, alpha=alpha).tolist() == want
        assert x.clone().index_add_(0, places, ones, alpha=alpha).tolist() == want
    for alpha in (1e20, float("nan"), float("inf"), 2j):
        with pytest.raises(RuntimeError, match="without overflow|complex value"):
            x.index_add(0, places, ones, alpha=alpha)
    if dtype in (clew.int8, clew.uint8):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.index_add_(0, places, ones, alpha=300)
    told = clew.zeros(2, dtype=clew.bool).index_add(0, places[:1], ones[:1].bool(), alpha=0.5)
    assert told.tolist() == [True, False]


@pytest.mark.parametrize("call", [clew.Tensor.index_reduce, clew.Tensor.index_reduce_])
def test_index_reduce_refuses_in_its_own_name(call):
    x, i = clew.zeros(3, 2), clew.tensor([0, 1])
    for index, source, dim, error, text in (
        ([0, 3], (2, 2), 0, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ([-1, 0], (2, 2), 0, IndexError, "index -1 is out of bounds"),
        ([0, 2], (3, 2), 1, IndexError, "index 2 is out of bounds for dimension 1 with size 2"),
        ([0, 1], (2, 1), 0, RuntimeError, r"source must have .* \[2, 2\]; got \[2, 1\]"),
        ([0, 1], (3, 2), 0, RuntimeError, r"got \[3, 2\]"),
        ([0, 1], (2,), 0, RuntimeError, r"got \[2\]"),
        ([0, 1], (2, 2), 2, IndexError, "Dimension out of range"),
    ):
        with pytest.raises(error, match="^index_reduce: .*" + text):
            call(x, dim, clew.tensor(index), clew.ones(source), "amax")
    with pytest.raises(RuntimeError, match="source must have the input's dtype"):
        call(x, 0, i, clew.ones(2, 2, dtype=clew.float64), "amax")
    with pytest.raises(TypeError, match="argument 'reduce' must be str, not NoneType"):
        call(x, 0, i, clew.ones(2, 2), None)
    assert (x == 0).all()
    made = call(x, -2, i.int(), clew.ones(2, 2), "amax")
    assert made.tolist() == [[1, 1], [1, 1], [0, 0]]


def test_index_reduce_of_samples():
    x, s = clew.zeros(3), clew.tensor([1.0, 2.0])
    each = clew.func.vmap(lambda i: x.index_reduce(0, i, s, "amax"))
    assert each(clew.tensor([[0, 2], [1, 1]])).tolist() == [[1, 0, 2], [0, 2, 0]]


def test_max_and_min_are_names_of_amax_and_amin():
    x, i = clew.tensor([3.0, 1.0, 2.0]), clew.tensor([0, 0, 2])
    src = clew.tensor([5.0, 7.0, 1.0], requires_grad=True)
    for name, same in (("max", "amax"), ("min", "amin")):
        for include in (True, False):
            got, want = (x.scatter_reduce(0, i, src, r, include_self=include) for r in (name, same))
            assert got.tolist() == want.tolist()
            here = x.clone().scatter_reduce_(0, i, src.detach(), name, include_self=include)
            assert here.tolist() == want.tolist()
            grads = [clew.autograd.grad(y.sum(), src)[0].tolist() for y in (got, want)]
            assert grads[0] == grads[1]
    with pytest.raises(NotImplementedError, match="real numbers"):
        x.cfloat().scatter_reduce(0, i, src.detach().cfloat(), "max")
    with pytest.raises(RuntimeError, match="reduce must be"):
        x.scatter_reduce(0, i, src, "most")


@pytest.mark.at_once
def test_index_functions_raise_pytorch_kinds_of_exceptions():
    x, ones, t = clew.zeros(3, 4), clew.ones(2, 4), clew.tensor
    cube = clew.zeros(2, 3, 4)
    table = clew.ones(3, 2)
    bag = clew.nn.functional.embedding_bag
    kinds = {
        RuntimeError: [
            lambda: x.index_add(0, t([0, 3]), ones),
            lambda: x.index_add_(0, t([0, -1]), ones),
            lambda: cube.index_add(2, t([4]), clew.ones(2, 3, 1)),
            lambda: x.index_add(0, t([0.0, 1.0]), ones),
            lambda: x.index_copy(0, t([0.0, 1.0]), ones),
            lambda: x.index_select(0, t([0.0])),
            lambda: x.index_fill(0, t([[0]]), 1),
            lambda: x.index_copy(0, t([0, 1]), clew.ones(2, 3)),
            lambda: bag(t([[3]]), table),
            lambda: bag(t([[3]]), table, mode="max"),
            lambda: bag(t([[3]]), table, mode="sum", sparse=True),
        ],
        IndexError: [
            lambda: x[0].index_add(0, t([4]), clew.ones(1)),
            lambda: cube.index_add(1, t([3]), clew.ones(2, 1, 4)),
            lambda: x.index_copy(0, t([0, 3]), ones),
            lambda: x.index_fill(0, t([3]), 1),
            lambda: x.index_select(0, t([3])),
            lambda: x.index_add(0, t([[0, 1]]), ones),
            lambda: x.index_copy(0, t([[0, 1]]), ones),
            lambda: x.index_copy(0, t([0, 1, 2]), ones),
            lambda: x.index_copy(0, t([0, 1]), clew.ones(2)),
            lambda: x.index_select(0, t([[0]])),
            lambda: x.index_fill(0, t([0.0]), 1),
            lambda: x.clone().put_(t([0, 1]), clew.ones(1)),
        ],
        NotImplementedError: [
            lambda: clew.ones(2).repeat_interleave(t([1.0, 1.0])),
            lambda: clew.ones(3, device="meta").nonzero(),
            lambda: clew.where(clew.ones(3, device="meta")),
            lambda: clew.ones(3, device="meta").masked_select(clew.ones(3, device="meta") > 0),
            lambda: clew.ones(3, device="meta")[clew.ones(3, device="meta") > 0],
        ],
    }
    for kind, calls in kinds.items():
        for k, call in enumerate(calls):
            with pytest.raises(Exception) as caught:
                call()
            assert caught.type is kind, (kind, k, caught.value)
