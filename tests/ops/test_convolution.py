"""Convolutions and pooling at larger sizes: dtypes against float64, layouts, identities."""

from __future__ import annotations

import numpy as np
import pytest
from numeric import check_gradients, normal

import clew

ops = clew._C.ops

SHAPES = [
    # input, weight, stride, padding, dilation, groups
    ((2, 16, 14, 14), (32, 16, 3, 3), 1, 1, 1, 1),
    ((2, 3, 32, 32), (16, 3, 7, 7), 2, 3, 1, 1),
    ((2, 32, 9, 9), (32, 1, 3, 3), 1, 1, 1, 32),
    ((2, 8, 13, 12), (12, 4, 3, 2), (2, 1), (0, 1), (1, 2), 2),
    ((3, 24, 7, 7), (40, 24, 1, 1), 1, 0, 1, 1),
    ((3, 24, 8, 8), (40, 24, 1, 1), 2, 0, 1, 1),
    ((2, 4, 8, 8), (6, 4, 2, 2), 3, 0, 1, 1),
    ((2, 16, 30, 33), (16, 1, 7, 7), 1, 3, 1, 16),
    ((2, 8, 15, 18), (8, 1, 3, 5), (2, 3), (1, 2), (2, 1), 8),
    ((1, 8, 21, 9), (8, 1, 11, 9), 1, (5, 4), 1, 8),
    ((3, 8, 9, 20), (8, 1, 3, 3), 1, 0, (1, 3), 8),
    ((2, 6, 50), (6, 1, 5), 2, 2, 1, 6),
    ((2, 5, 40), (7, 5, 9), 2, 4, 1, 1),
    ((1, 4, 6, 7, 8), (8, 4, 3, 3, 3), 1, 1, 1, 1),
    # One channel a group, along rows: lines and volumes, with strides and dilations.
    ((2, 6, 70), (6, 1, 5), 1, 2, 1, 6),
    ((2, 6, 70), (6, 1, 4), 3, 1, 2, 6),
    ((2, 6, 61), (6, 1, 5), 4, 0, 3, 6),
    ((2, 4, 5, 6, 19), (4, 1, 3, 3, 3), 1, 1, 1, 4),
    ((2, 4, 7, 9, 23), (4, 1, 3, 2, 3), 2, (1, 0, 1), 1, 4),
    ((2, 4, 8, 9, 30), (4, 1, 2, 3, 5), (1, 3, 2), (0, 2, 2), (2, 1, 3), 4),
    ((1, 3, 9, 4, 40), (3, 1, 4, 1, 2), (3, 1, 4), (1, 0, 0), (1, 1, 5), 3),
]


def run(dtype, shape, transposed):
    x_shape, w_shape, stride, padding, dilation, groups = shape
    nd = len(x_shape) - 2
    name = f"conv_transpose{nd}d" if transposed else f"conv{nd}d"
    x, w = normal(1, *x_shape), normal(2, *w_shape)
    if transposed:  # the input has the result's channels
        x = normal(1, x_shape[0], w_shape[0], *x_shape[2:])
    b = normal(3, w_shape[1] * groups if transposed else w_shape[0])
    leaves = [clew.tensor(a).to(dtype).requires_grad_() for a in (x, w, b)]
    extra = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    out = getattr(ops, name)(*leaves, **extra)
    g = clew.tensor(normal(4, *out.shape)).to(dtype)
    grads = clew.autograd.grad(out, leaves, g)
    return [t.detach().to(clew.float64).numpy() for t in (out, *grads)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dtype_agrees_with_float64(shape, transposed):
    exact = run(clew.float64, shape, transposed)
    for dtype, tolerance in ((clew.float32, 1e-5), (clew.bfloat16, 3e-2), (clew.float16, 4e-3)):
        for got, want in zip(run(dtype, shape, transposed), exact, strict=True):
            assert got.shape == want.shape
            assert np.abs(got - want).max() <= tolerance * max(1, np.abs(want).max())


def test_forward_and_transpose_are_adjoint():
    x, w, y = normal(1, 2, 4, 9, 8), normal(2, 6, 2, 3, 3), normal(3, 2, 6, 5, 4)
    arguments = {"stride": 2, "padding": 1, "groups": 2}
    left = (ops.conv2d(clew.tensor(x), clew.tensor(w), None, **arguments).numpy() * y).sum()
    back = ops.conv_transpose2d(
        clew.tensor(y), clew.tensor(w), None, output_padding=(0, 1), **arguments
    )
    np.testing.assert_allclose(left, (back.numpy() * x).sum())


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_strided_operands(dtype):
    x, w = normal(1, 2, 8, 9, 7), normal(2, 4, 8, 3, 3)
    plain = ops.conv2d(clew.tensor(x).to(dtype), clew.tensor(w).to(dtype), None, 1, 1)
    last = clew.tensor(x.transpose(0, 2, 3, 1).copy()).to(dtype).permute(0, 3, 1, 2)
    weights = clew.tensor(w.transpose(3, 2, 1, 0).copy()).to(dtype).permute(3, 2, 1, 0)
    got = ops.conv2d(last, weights, None, 1, 1)
    # Layouts have loops of their own, which add up in another order.
    bound = 2e-6 if dtype == clew.float32 else 1e-14
    np.testing.assert_allclose(got.numpy(), plain.numpy(), atol=bound * 20, rtol=bound)


def test_same_padding_puts_the_odd_zero_on_the_right():
    x = clew.tensor([[[1.0, 2.0, 3.0]]])
    w = clew.tensor([[[1.0, 10.0]]])
    assert ops.conv1d(x, w, padding="same").tolist() == [[[21.0, 32.0, 3.0]]]
    w = clew.tensor([[[1.0, 10.0, 100.0, 1000.0]]])
    assert ops.conv1d(x, w, padding="same").tolist() == [[[3210.0, 321.0, 32.0]]]


def test_integers_and_empty_batches():
    x = clew.arange(6).reshape(1, 1, 6)
    assert ops.conv1d(x, clew.tensor([[[1, -1]]])).tolist() == [[[-1, -1, -1, -1, -1]]]
    x = clew.zeros(0, 2, 5, requires_grad=True)
    w = clew.ones(3, 2, 2, requires_grad=True)
    out = ops.conv1d(x, w)
    assert out.shape == (0, 3, 4)
    out.sum().backward()
    assert x.grad.shape == x.shape and (w.grad.numpy() == 0).all()


def test_third_derivative_of_a_convolution():
    x, w = normal(1, 1, 2, 5), normal(2, 2, 2, 3)

    def slope(a, b):
        out = (ops.conv1d(a, b) ** 3).sum()
        return clew.autograd.grad(out, b, create_graph=True)[0]

    def with_leaf(a, b):
        if not b.requires_grad:
            b = b.detach().requires_grad_()
        return slope(a, b)

    check_gradients(with_leaf, x, w)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("kernel,stride,padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 3, 2)])
def test_pooling_of_larger_images(dtype, kernel, stride, padding):
    x = np.round(normal(1, 2, 3, 33, 47) * 100).astype(dtype)
    low = np.iinfo(dtype).min if dtype == "int64" else -np.inf
    pads = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    wide = np.pad(x.astype(dtype), pads, constant_values=low)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (kernel, kernel), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    values, indices = ops._max_pool2d(clew.tensor(x), kernel, stride, padding)
    np.testing.assert_array_equal(values.numpy(), windows.max((-1, -2)))
    picked = np.take_along_axis(x.reshape(2, 3, -1), indices.numpy().reshape(2, 3, -1), -1)
    np.testing.assert_array_equal(picked.reshape(values.shape), values.numpy())
    if dtype != "int64":
        zeros = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads), (kernel, kernel), (2, 3))
        mean = ops.avg_pool2d(clew.tensor(x), kernel, stride, padding)
        expected = zeros[:, :, ::stride, ::stride].mean((-1, -2), dtype="float64")
        np.testing.assert_allclose(mean.numpy(), expected, rtol=1e-5, atol=1e-3)


def test_means_of_integers_are_cut():
    x = clew.tensor([[[-7, 2, 4, -8]]])
    assert ops.avg_pool1d(x, 2).tolist() == [[[-2, -2]]]
    with pytest.raises(NotImplementedError):
        ops.avg_pool1d(x.to(clew.int32), 2)


def test_max_pooling_lets_nan_win():
    x = clew.tensor([[[1.0, float("nan"), 3.0, 4.0, 0.0, -1.0, 5.0, 2.0, 7.0, 8.0, 9.0, 1.0]]])
    values, indices = ops._max_pool1d(x, 2)
    assert np.isnan(values.numpy()[0, 0, 0]) and indices.tolist()[0][0][0] == 1
    assert values.tolist()[0][0][1:] == [4.0, 0.0, 5.0, 8.0, 9.0]
    assert np.isnan(float(ops._adaptive_max_pool1d(x, 1)[0]))
    low = clew.full((1, 1, 4), float("-inf"))
    assert (ops._max_pool1d(low, 2)[0].numpy() == -np.inf).all()


def test_gradients_of_overlapping_maxima_add_up():
    x = clew.tensor([[[1.0, 5.0, 2.0, 0.0]]], requires_grad=True)
    ops._max_pool1d(x, 2, 1)[0].sum().backward()
    assert x.grad.tolist() == [[[0.0, 2.0, 1.0, 0.0]]]


@pytest.mark.parametrize("kernel,stride", [(1, 1), (3, 1), (2, 2), (3, 3), (4, 4), (5, 2), (4, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int16"])
def test_max_pooling_of_lines(dtype, kernel, stride):
    x = clew.from_numpy(np.round(normal(1, 2, 3, 301) * 9)).to(getattr(clew, dtype))
    got, at = ops._max_pool1d(x, kernel, stride)
    wide = x.double().numpy()
    if x.is_floating_point():
        x[0, 1, 100], wide[0, 1, 100] = np.nan, np.nan
        got, at = ops._max_pool1d(x, kernel, stride)
    windows = np.lib.stride_tricks.sliding_window_view(wide, kernel, 2)[:, :, ::stride]
    np.testing.assert_array_equal(got.double().numpy(), windows.max(-1))
    first = windows.argmax(-1) + np.arange(got.shape[2]) * stride  # a NaN is the greatest here too
    np.testing.assert_array_equal(at.numpy(), first)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(3, 5, 7, 7), (2, 3, 1, 1), (1, 2, 30, 41)])
def test_gradient_of_the_mean_of_a_whole_plane(dtype, shape):
    kind = getattr(clew, dtype)
    x = clew.zeros(shape, dtype=kind, requires_grad=True)
    g = clew.tensor(normal(1, *shape[:2], 1, 1)).to(kind)
    (got,) = clew.autograd.grad(ops.adaptive_avg_pool2d(x, 1), x, g)
    wide = clew.complex128 if kind.is_complex else clew.float64
    want = (g.to(wide) / (shape[2] * shape[3])).expand(shape)
    assert (got.to(wide) - want).abs().max() <= clew.finfo(kind).eps * want.abs().max()


def test_sixteen_bit_means_accumulate_in_float32():
    x = clew.full((1, 1, 4096), 1.0, dtype=clew.float16)
    x[..., 0] = 2048.0
    assert float(ops.adaptive_avg_pool1d(x, 1)) == pytest.approx((2048 + 4095) / 4096, rel=1e-3)
    ones = clew.ones(1, 1, 4096, dtype=clew.bfloat16, requires_grad=True)
    ops.avg_pool1d(ones, 4096).backward(clew.ones(1, 1, 1, dtype=clew.bfloat16) * 4096)
    assert (ones.grad.to(clew.float32).numpy() == 1).all()


LAST = [
    # input, weight, options
    ((2, 16, 9, 8), (32, 16, 3, 3), {"padding": 1}),
    ((2, 16, 9, 8), (32, 16, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 16, 9, 8), (32, 16, 1, 1), {}),
    ((2, 6, 9, 8), (9, 2, 3, 2), {"groups": 3, "dilation": 2}),
    ((2, 8, 9, 8), (8, 1, 3, 3), {"groups": 8}),
]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", LAST, ids=str)
def test_channels_last_in_and_out(case, dtype, transposed):
    """Results and the input's gradient lie with channels last when an operand does."""
    x_shape, w_shape, options = case
    function = ops.conv_transpose2d if transposed else ops.conv2d
    if transposed:
        x_shape = (x_shape[0], w_shape[0], *x_shape[2:])
    kind = getattr(clew, dtype)
    channels = w_shape[1] * options.get("groups", 1) if transposed else w_shape[0]
    arrays = normal(1, *x_shape), normal(2, *w_shape), normal(3, channels)

    def results(*last):
        leaves = [clew.tensor(a).to(kind) for a in arrays]
        for i in last:
            leaves[i] = leaves[i].to(memory_format=clew.channels_last)
        leaves = [t.requires_grad_() for t in leaves]
        out = function(*leaves, **options)
        seed = clew.tensor(normal(4, *out.shape)).to(kind)
        if last:
            assert out.is_contiguous(memory_format=clew.channels_last)
            seed = seed.to(memory_format=clew.channels_last)
        grads = clew.autograd.grad(out, leaves, seed)
        if last:
            assert grads[0].is_contiguous(memory_format=clew.channels_last)
        return [t.detach().double().numpy() for t in (out, *grads)]

    want = results()
    bound = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 3e-2}[dtype]
    for last in ((0,), (1,), (0, 1)):
        if last == (1,) and (w_shape[1] == 1 or w_shape[2:] == (1, 1)):
            continue  # such a weight lies both ways at once
        for got, expected in zip(results(*last), want, strict=True):
            assert np.abs(got - expected).max() <= bound * max(1, np.abs(expected).max())


@pytest.mark.parametrize("channels", [12, 16, 33, 48])
@pytest.mark.parametrize(
    ("size", "kernel", "pad"),
    [((7, 7), 3, 1), ((14, 9), 7, 3), ((28, 28), 3, 0), ((9, 60), 5, 2), ((40, 70), 7, (3, 1))],
)
def test_depthwise_maps_of_every_width(channels, size, kernel, pad):
    # With vectors along rows or along channels, whichever was measured to be faster.
    clew.manual_seed(0)
    x = clew.randn(2, channels, *size, dtype=clew.float64, requires_grad=True)
    w = clew.randn(channels, 1, kernel, kernel, dtype=clew.float64, requires_grad=True)
    b = clew.randn(channels, dtype=clew.float64, requires_grad=True)
    want = clew.nn.functional.conv2d(x, w, b, padding=pad, groups=channels)
    g = clew.randn(want.shape, dtype=clew.float64)
    short = [v.detach().float().requires_grad_() for v in (x, w, b)]
    got = clew.nn.functional.conv2d(*short, padding=pad, groups=channels)
    assert (got - want).abs().max() < 1e-4
    pairs = zip(
        clew.autograd.grad(got, short, g.float()),
        clew.autograd.grad(want, [x, w, b], g),
        strict=True,
    )
    for narrow, wide in pairs:
        assert (narrow - wide).abs().max() < 2e-6 * wide.abs().max() * kernel * 4
    with clew.no_grad():
        short[0][1, 3, 2, 2] = float("inf")
        spoilt = clew.nn.functional.conv2d(*short, padding=pad, groups=channels)
        assert not spoilt[1, 3].isfinite().all() and spoilt[0].isfinite().all()
        assert spoilt[1, :3].isfinite().all() and spoilt[1, 4:].isfinite().all()


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_volumes_with_an_infinite_element(stride):
    # What an infinity spoils is what its windows reach; zeros around a volume spoil nothing more.
    x, w = clew.tensor(normal(1, 2, 3, 5, 6, 20)), clew.tensor(normal(2, 3, 1, 3, 3, 3))
    x[1, 2, 0, 0, 0] = w[0, 0, 2, 2, 2] = float("inf")
    want = clew.nn.functional.conv3d(x, w, stride=stride, padding=1, groups=3)
    got = clew.nn.functional.conv3d(x.float(), w.float(), stride=stride, padding=1, groups=3)
    assert clew.equal(got.isnan(), want.isnan()) and clew.equal(got.isinf(), want.isinf())
    finite = want.isfinite()
    assert 0 < int(finite.sum()) < want.numel()
    assert (got[finite] - want[finite]).abs().max() < 1e-4


@pytest.mark.parametrize("width", [1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 64])
@pytest.mark.parametrize("channels", [(1, 4), (3, 7), (2, 9), (12, 5)], ids=str)
@pytest.mark.parametrize(
    "kernel,stride,pad,dilation",
    [((3, 3), (1, 1), 1, 1), ((2, 5), (2, 3), (3, 4), (2, 1)), ((1, 4), (3, 1), 0, 2)],
)
def test_few_channels_at_every_width_of_the_result(width, channels, kernel, stride, pad, dilation):
    pads, apart = (np.broadcast_to(v, 2) for v in (pad, dilation))
    sizes = [
        max(1, (out - 1) * s + (k - 1) * int(d) + 1 - 2 * int(p))
        for out, s, k, d, p in zip((5, width), stride, kernel, apart, pads)
    ]
    c_in, c_out = channels
    x, w, b = normal(1, 2, c_in, *sizes), normal(2, c_out, c_in, *kernel), normal(3, c_out)
    found = []
    for dtype in (clew.float64, clew.float32):
        leaves = [clew.tensor(a).to(dtype).requires_grad_() for a in (x, w, b)]
        y = clew.nn.functional.conv2d(*leaves, stride=stride, padding=pad, dilation=dilation)
        seed = clew.tensor(normal(4, *y.shape)).to(dtype)
        found.append([y, *clew.autograd.grad(y, leaves, seed)])
    for exact, ours in zip(*found):
        exact = exact.detach().numpy()
        assert np.allclose(ours.detach().numpy(), exact, atol=1e-5 * max(1, abs(exact).max()))


def test_few_channels_with_infinite_weights():
    x, w = clew.ones(1, 1, 4, 9), clew.ones(2, 1, 3, 3)
    w[0, 0, 0, 0] = float("inf")
    y = clew.nn.functional.conv2d(x, w, padding=1)
    same = clew.nn.functional.conv2d(x.double(), w.double(), padding=1)
    assert not y[0, 1].isinf().any() and y[0, 0].isinf().any()
    assert clew.equal(y.isinf(), same.isinf())
