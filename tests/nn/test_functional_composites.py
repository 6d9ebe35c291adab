"""Functions of nn.functional that are written in Python, against NumPy and SciPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import clew
from clew import nn
from clew.nn import functional as F

rng = np.random.default_rng(1)
t = clew.tensor


def close(got, want, tol=1e-9):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tol, atol=tol)


def test_softmax_arguments():
    x = t([[1.0, 2.0]])
    with pytest.warns(UserWarning, match="give dim"):
        assert F.softmax(x).shape == (1, 2)
    assert F.softmax(x, 1, dtype=clew.float64).dtype == clew.float64
    close(F.softmin(x, 1), F.softmax(-x, 1).numpy())
    close(F.log_softmax(x.double(), -1), np.log(F.softmax(x.double(), -1).numpy()))


def test_normalize_and_distances():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    close(F.normalize(t(a)), a / np.linalg.norm(a, axis=1, keepdims=True))
    close(F.normalize(t(a), 1, 0), a / np.abs(a).sum(0))
    assert F.normalize(clew.zeros(2, 2)).tolist() == [[0, 0], [0, 0]]
    out = clew.empty(3, 4, dtype=clew.float64)
    assert F.normalize(t(a), out=out) is out
    cos = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    close(F.cosine_similarity(t(a), t(b)), cos)
    close(F.cosine_similarity(t(a), t(b[0]), -1)[0], cos[0])
    with pytest.raises(RuntimeError, match="eps must not be negative"):
        F.cosine_similarity(t(a), t(b), eps=-1e-8)
    close(F.pairwise_distance(t(a), t(b), 1.0, 0.0, True), np.abs(a - b).sum(1, keepdims=True))


def test_glu_and_gumbel():
    a = rng.normal(size=(4, 6))
    close(F.glu(t(a), 0), a[:2] / (1 + np.exp(-a[2:])))
    with pytest.raises(RuntimeError, match="even"):
        F.glu(t(a[:3]), 0)
    logits = clew.zeros(4000, 2, requires_grad=True)
    hard = F.gumbel_softmax(logits + t([0.0, np.log(3.0)]), hard=True)
    assert set(np.round(hard.detach().numpy().ravel(), 5)) == {0.0, 1.0}
    assert hard[:, 1].mean().item() == pytest.approx(0.75, abs=0.03)
    hard[:, 0].sum().backward()
    assert logits.grad.any()
    soft = F.gumbel_softmax(logits, tau=0.5)
    close(soft.sum(1), np.ones(4000), 1e-5)


def test_local_response_norm():
    a = rng.normal(size=(2, 5, 3))
    want = np.empty_like(a)
    for c in range(5):
        low, high = max(0, c - 1), min(5, c + 2)
        mean = (a[:, low:high] ** 2).sum(1) / 3
        want[:, c] = a[:, c] / (2.0 + 0.1 * mean) ** 0.5
    close(F.local_response_norm(t(a), 3, 0.1, 0.5, 2.0), want)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    w = rng.normal(size=(6, 2))
    bags = [[1, 2, 4], [], [5], [0, 0]]
    flat = [k for bag in bags for k in bag]
    offsets = np.cumsum([0] + [len(bag) for bag in bags])
    pick = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    want = np.array([pick(w[bag], 0) if bag else np.zeros(2) for bag in bags])
    close(F.embedding_bag(t(flat), t(w), t(offsets[:-1]), mode=mode), want)
    got = F.embedding_bag(t(flat), t(w), t(offsets), mode=mode, include_last_offset=True)
    close(got, want)
    short = [[k for k in bag if k != 2] for bag in bags]
    want = np.array([pick(w[bag], 0) if bag else np.zeros(2) for bag in short])
    got = F.embedding_bag(t(flat), t(w), t(offsets[:-1]), mode=mode, padding_idx=-4)
    close(got, want)
    close(F.embedding_bag(t([[1, 2], [3, 3]]), t(w), mode=mode)[0], pick(w[[1, 2]], 0))


def test_embedding_bag_takes_the_order_of_old_releases():
    table, bags = clew.arange(6.0).reshape(3, 2), clew.tensor([0, 1, 2])
    starts = clew.tensor([0, 2])
    with pytest.warns(UserWarning, match="pass input first"):
        got = F.embedding_bag(table, bags, starts)
    assert clew.equal(got, F.embedding_bag(bags, table, starts))


def test_embedding_bag_weights_and_errors():
    w = t(rng.normal(size=(6, 2)))
    factors = t([[1.0, 2.0], [0.5, 0.0]]).double().requires_grad_()
    got = F.embedding_bag(t([[1, 2], [3, 3]]), w, per_sample_weights=factors, mode="sum")
    close(got[0], (w[1] + 2 * w[2]).numpy())
    got.sum().backward()
    close(factors.grad[0, 1], w[2].sum().numpy())
    for bad, error in (
        (lambda: F.embedding_bag(t([1]), w), ValueError),
        (lambda: F.embedding_bag(t([[1]]), w, t([0])), ValueError),
        (lambda: F.embedding_bag(t([[1]]), w, mode="no"), ValueError),
        (lambda: F.embedding_bag(t([1]), w, t([1])), RuntimeError),
        (lambda: F.embedding_bag(t([1, 2]), w, t([0, 7])), RuntimeError),
    ):
        with pytest.raises(error):
            bad()


def test_embedding_renormalises_rows_in_place():
    m = nn.Embedding(4, 3, max_norm=1.0)
    with clew.no_grad():
        m.weight.fill_(5.0)
    got = m(t([1, 1, 2]))
    assert np.allclose(np.linalg.norm(got.detach().numpy(), axis=1), 1, atol=1e-5)
    norms = np.linalg.norm(m.weight.detach().numpy(), axis=1)
    assert norms[0] > 8 and norms[1] == pytest.approx(1, abs=1e-5)


def test_embedding_padding_and_frequency():
    m = nn.Embedding(4, 2, padding_idx=-1)
    assert m.padding_idx == 3 and not m.weight[3].any()
    m(t([0, 3, 3])).sum().backward()
    assert m.weight.grad[3].tolist() == [0, 0] and m.weight.grad[0].tolist() == [1, 1]
    m = nn.Embedding(4, 2, scale_grad_by_freq=True)
    m(t([1, 1, 2])).sum().backward()
    assert m.weight.grad[1].tolist() == [1, 1]
    with pytest.raises(AssertionError):
        nn.Embedding(4, 2, padding_idx=4)
    given = nn.Embedding.from_pretrained(clew.ones(2, 3))
    assert not given.weight.requires_grad and given(t(1)).tolist() == [1, 1, 1]


def test_unpool_is_the_inverse_on_maxima():
    x = t(rng.normal(size=(1, 2, 6)))
    values, where = F.max_pool1d(x, 2, return_indices=True)
    back = F.max_unpool1d(values, where, 2)
    found = back.numpy()
    for k in range(2):
        for p, v in zip(where[0, k].tolist(), values[0, k].tolist()):
            assert found[0, k, p] == v
    assert (found != 0).sum() == 6
    assert F.max_unpool1d(values, where, 2, output_size=(7,)).shape == (1, 2, 7)
    with pytest.raises(ValueError, match="invalid output_size"):
        F.max_unpool1d(values, where, 2, output_size=(20,))


def test_fractional_pooling_places_windows_in_the_precision_of_the_input():
    line = clew.arange(9.0).expand(1, 1, 9, 9).contiguous()
    samples = clew.tensor([[[0.49609375, 0.76953125]]])
    for dtype, expected in ((clew.bfloat16, [2, 5, 7, 8]), (clew.float64, [2, 4, 6, 8])):
        got = F.fractional_max_pool2d(line.to(dtype), 3, 4, _random_samples=samples.to(dtype))
        assert got[0, 0, 0].tolist() == expected


def test_lp_and_fractional_pooling():
    x = np.abs(rng.normal(size=(1, 1, 6)))
    want = (x.reshape(1, 1, 3, 2) ** 3).sum(-1) ** (1 / 3)
    close(F.lp_pool1d(t(x), 3, 2), want)
    y = t(rng.normal(size=(2, 3, 9, 7)))
    values, where = F.fractional_max_pool2d(y, 2, (4, 3), return_indices=True)
    assert values.shape == where.shape == (2, 3, 4, 3)
    flat = y.reshape(2, 3, -1).gather(2, where.reshape(2, 3, -1))
    close(values.reshape(2, 3, -1), flat.numpy())
    assert F.fractional_max_pool3d(y, 2, output_ratio=0.5).shape == (2, 1, 4, 3)
    assert F.fractional_max_pool2d(y[:0], 2, 3).shape == (0, 3, 3, 3)
    samples = t([[[0.5, 0.25]]]).double()
    line = t(np.arange(25.0).reshape(1, 1, 5, 5))
    got = F.fractional_max_pool2d(line, 1, 3, _random_samples=samples)
    assert got[0, 0].tolist() == [[0, 2, 4], [10, 12, 14], [20, 22, 24]]
    with pytest.raises(RuntimeError, match="_random_samples must be"):
        F.fractional_max_pool2d(line, 1, 3, _random_samples=samples[:, :, :1])
    with pytest.raises(ValueError, match="requires specifying"):
        F.fractional_max_pool2d(y, 2)


@pytest.mark.parametrize("align", [False, True])
def test_linear_interpolation_of_a_line_is_the_line(align):
    x = np.linspace(0.0, 1.0, 5)
    got = F.interpolate(t(x)[None, None], 9, mode="linear", align_corners=align)[0, 0].numpy()
    if align:
        want = np.linspace(0, 1, 9)
    else:
        want = np.interp((np.arange(9) + 0.5) * 5 / 9 - 0.5, np.arange(5), x)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_cubic_interpolation_keeps_parabolas_inside():
    x = np.arange(12.0)
    y = (x - 3) ** 2
    image = np.broadcast_to(y, (1, 1, 12, 12)).copy()
    got = F.interpolate(t(image), (12, 23), mode="bicubic", align_corners=True)[0, 0, 5].numpy()
    at = np.linspace(0, 11, 23)
    # a = -0.75 is not exact on parabolas, but symmetric: whole places keep their values.
    np.testing.assert_allclose(got[::2], y, atol=1e-9)
    np.testing.assert_allclose(got[3:-3], (at[3:-3] - 3) ** 2, atol=0.2)


RESIZED = [
    ((2, 1, 5), {"size": 8, "mode": "linear"}),
    ((1, 2, 4, 3), {"size": (7, 5), "mode": "bilinear"}),
    ((1, 1, 5, 6), {"size": (2, 4), "mode": "bilinear", "align_corners": True}),
    ((1, 2, 4, 3), {"scale_factor": (1.7, 2), "mode": "bicubic"}),
    ((1, 1, 6, 7), {"size": (2, 3), "mode": "bilinear", "antialias": True}),
    ((1, 1, 7, 3), {"size": (3, 5), "mode": "bicubic", "antialias": True}),
    ((1, 1, 2, 3, 2), {"size": (3, 2, 5), "mode": "trilinear"}),
]


@pytest.mark.parametrize(("shape", "options"), RESIZED)
def test_derivatives_of_interpolation(shape, options):
    x = clew.randn(*shape, dtype=clew.float64, requires_grad=True)
    resize = functools.partial(F.interpolate, **options)
    assert clew.autograd.gradcheck(resize, (x,))
    assert clew.autograd.gradgradcheck(resize, (x,))
    strided = x.detach().transpose(0, -1).contiguous().transpose(0, -1)
    assert clew.equal(resize(strided), resize(x.detach()))
    both = clew.vmap(resize)(clew.stack([x.detach(), 2 * x.detach()]))
    close(both[1], 2 * resize(x).detach().numpy(), 1e-12)


def test_interpolation_of_a_size_that_stays():
    x = clew.randn(1, 1, 4, 4)
    kept = F.interpolate(x, scale_factor=(1.2, 2), mode="bilinear")
    assert clew.equal(kept, F.interpolate(x, (4, 8), mode="bilinear"))
    cubic = F.interpolate(x, scale_factor=(1.2, 2), mode="bicubic")
    assert not clew.equal(cubic, F.interpolate(x, (4, 8), mode="bicubic"))
    smooth = F.interpolate(x, scale_factor=(1.2, 2), mode="bicubic", antialias=True)
    assert clew.equal(smooth, F.interpolate(x, (4, 8), mode="bicubic", antialias=True))


@pytest.mark.parametrize(("shape", "options"), RESIZED)
def test_interpolation_reaches_no_farther_than_its_terms(shape, options):
    x = clew.ones(*shape)
    x[..., 0] = float("inf")
    assert F.interpolate(x, **options)[..., -1].isfinite().all()


@pytest.mark.parametrize("kind", ["bilinear", "bicubic"])
def test_antialiased_interpolation_reaches_no_farther_than_its_terms(kind):
    resize = functools.partial(F.interpolate, size=(1, 4), mode=kind, antialias=True)
    x = clew.randn(1, 1, 1, 11)
    share = clew.autograd.functional.jacobian(resize, x).reshape(4, 11)
    for place in range(11):
        one = x.clone()
        one[..., place] = float("inf")
        assert resize(one).isfinite().flatten().tolist() == (share[:, place] == 0).tolist()


@pytest.mark.parametrize(("shape", "options"), RESIZED)
def test_interpolation_of_shapes_alone(shape, options):
    x = clew.empty(*shape, device="meta", requires_grad=True)
    out = F.interpolate(x, **options)
    assert out.is_meta and out.shape == F.interpolate(clew.zeros(*shape), **options).shape
    out.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "trilinear"])
@pytest.mark.parametrize("size", [5, 8])
def test_interpolation_keeps_channels_last(mode, size):
    three = mode == "trilinear"
    layout = clew.channels_last_3d if three else clew.channels_last
    x = clew.randn(2, 3, *[4] * (3 if three else 2))
    want = F.interpolate(x, size, mode=mode)
    got = F.interpolate(x.to(memory_format=layout), size, mode=mode)
    close(got, want.numpy(), 1e-6)
    assert got.is_contiguous(memory_format=layout)
    same = x.to(memory_format=layout)
    kept = F.interpolate(same, 4, mode=mode)
    assert clew.equal(kept, x) and kept.is_contiguous(memory_format=layout)
    kept.zero_()
    assert clew.equal(same, x)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 3, 1), (2, 3, 1, 2)])
def test_interpolation_of_one_element_owns_its_memory(mode, shape):
    x = clew.ones(*shape)
    y = F.interpolate(x, size=[shape[2], 4], mode=mode)
    y[0, 0, 0, 0] = 5
    assert (x == 1).all() and y.sum() == y.numel() + 4


def test_other_interpolations():
    x = t(np.arange(4.0))[None, None]
    assert F.interpolate(x, 8)[0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert F.interpolate(x, scale_factor=0.5)[0, 0].tolist() == [0, 2]
    assert F.interpolate(x, 2, mode="nearest-exact")[0, 0].tolist() == [1, 3]
    assert F.interpolate(x, 2, mode="area")[0, 0].tolist() == [0.5, 2.5]
    image = t(rng.normal(size=(1, 1, 8, 8)))
    small = F.interpolate(image, (2, 2), mode="bilinear", antialias=True)
    assert small.mean().item() == pytest.approx(image.mean().item(), abs=0.2)
    constant = F.interpolate(clew.ones(1, 1, 7, 5), (3, 2), mode="bicubic", antialias=True)
    close(constant, np.ones((1, 1, 3, 2)), 1e-6)
    for bad in (
        lambda: F.interpolate(x),
        lambda: F.interpolate(x, 2, 2),
        lambda: F.interpolate(x, (2, 2)),
        lambda: F.interpolate(x, 2, align_corners=True),
        lambda: F.interpolate(x, 2, mode="linear", antialias=True),
    ):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(NotImplementedError):
        F.interpolate(x, 2, mode="bilinear")
    with pytest.raises(RuntimeError, match="greater than 0"):
        F.interpolate(x, 0)


def test_grid_sample_of_places_that_are_no_numbers():
    image = clew.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    grid = clew.tensor([[[[float("nan"), 0.0], [1e30, 0.0], [float("inf"), 0.0]]]])
    assert F.grid_sample(image, grid, align_corners=True)[0, 0, 0].isnan().tolist() == [1, 0, 1]
    edge = F.grid_sample(image, grid, padding_mode="border", align_corners=True)
    assert edge[0, 0, 0].tolist() == [2.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(image, grid.double())
    half = F.grid_sample(image.half(), clew.zeros(1, 1, 1, 2).half())
    assert half.dtype == clew.float16 and half.item() == 2.5


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize(
    ("shape", "options", "times"),
    [
        ((2, 3, 4), {"scale_factor": 3}, (3,)),
        ((1, 2, 3, 4), {"scale_factor": (2, 1)}, (2, 1)),
        ((1, 2, 3, 4), {"size": (3, 4)}, (1, 1)),
        ((2, 1, 2, 3, 2), {"scale_factor": 2}, (2, 2, 2)),
    ],
)
def test_nearest_by_whole_factors_repeats(mode, shape, options, times):
    x = clew.randn(*shape, requires_grad=True)
    y = F.interpolate(x, mode=mode, **options)
    want = x.detach()
    for d, k in enumerate(times):
        want = want.repeat_interleave(k, 2 + d)
    assert clew.equal(y.detach(), want) and y.data_ptr() != x.data_ptr()
    y.backward(clew.ones(y.shape))
    assert x.grad.tolist() == clew.full(shape, float(np.prod(times))).tolist()


def test_grid_sample_of_the_identity_and_a_shift():
    image = t(rng.normal(size=(1, 2, 4, 5)))
    theta = t([[[1.0, 0, 0], [0, 1, 0]]]).double()
    for align in (False, True):
        grid = F.affine_grid(theta, (1, 2, 4, 5), align_corners=align)
        close(F.grid_sample(image, grid, align_corners=align), image.numpy())
        close(F.grid_sample(image, grid, "bicubic", align_corners=align), image.numpy())
        close(F.grid_sample(image, grid, "nearest", align_corners=align), image.numpy())
    one = t([[[1.0, 0, 2 / 5], [0, 1, 0]]], dtype=clew.float64)
    grid = F.affine_grid(one, (1, 2, 4, 5), align_corners=False)
    moved = F.grid_sample(image, grid, align_corners=False).numpy()
    np.testing.assert_allclose(moved[..., :4], image.numpy()[..., 1:], atol=1e-6)
    np.testing.assert_allclose(moved[..., 4], 0, atol=1e-9)
    edge = F.grid_sample(image, grid, padding_mode="border", align_corners=False).numpy()
    np.testing.assert_allclose(edge[..., 4], image.numpy()[..., 4], atol=1e-9)
    mirror = F.grid_sample(image, grid, padding_mode="reflection", align_corners=False).numpy()
    np.testing.assert_allclose(mirror[..., 4], image.numpy()[..., 4], atol=1e-9)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sample_derivatives(mode, padding):
    image = clew.randn(1, 1, 3, 4, dtype=clew.float64, requires_grad=True)
    grid = (clew.rand(1, 2, 3, 2, dtype=clew.float64) * 2.6 - 1.3).requires_grad_()
    fn = lambda a, g: F.grid_sample(a, g, mode, padding, align_corners=False)
    assert clew.autograd.gradcheck(fn, (image, grid))


def test_nearest_samples_give_places_a_zero_gradient():
    image = clew.randn(1, 1, 3, 3, requires_grad=True)
    grid = clew.zeros(1, 2, 2, 2, requires_grad=True)
    F.grid_sample(image, grid, "nearest", align_corners=False).sum().backward()
    assert grid.grad is not None and not grid.grad.any()
    assert image.grad.sum().item() == 4 == image.grad[0, 0, 1, 1].item()


def test_narrow_floats_are_resampled_in_float32():
    image = clew.randn(1, 1, 4, 4).bfloat16()
    got = F.interpolate(image, (7, 5), mode="bilinear")
    want = F.interpolate(image.float(), (7, 5), mode="bilinear").bfloat16()
    assert got.dtype == clew.bfloat16 and clew.equal(got, want)


def test_shuffles_are_inverse():
    x = t(rng.normal(size=(2, 8, 2, 3)))
    close(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x.numpy())
    close(F.channel_shuffle(F.channel_shuffle(x, 2), 4), x.numpy())
    last = x.to(memory_format=clew.channels_last)
    for given in (x, last, x[:, :, :1, :1], x[:1], x[1]):
        for same in (
            F.pixel_shuffle(given, 1),
            F.pixel_unshuffle(given, 1),
            *(
                ()
                if given.dim() < 4
                else (F.channel_shuffle(given, 1), F.channel_shuffle(given, 8))
            ),
            F.interpolate(given, scale_factor=1),
        ):
            assert same.untyped_storage().data_ptr() != given.untyped_storage().data_ptr()
            close(same, given.numpy())
    pixel = F.pixel_shuffle(x[:1, :4, :1, :1].contiguous(), 2)  # whose elements stay in order
    pixel.zero_()
    assert x[0, 0, 0, 0] != 0
    up = F.pixel_shuffle(x, 2).numpy()
    assert up[0, 1, 3, 4] == x.numpy()[0, 1 * 4 + 1 * 2 + 0, 1, 2]
    for bad in (
        lambda: F.pixel_shuffle(x, 3),
        lambda: F.pixel_shuffle(x, 0),
        lambda: F.pixel_unshuffle(x, 5),
        lambda: F.channel_shuffle(x, 3),
    ):
        with pytest.raises(RuntimeError):
            bad()


def test_instance_norm_statistics():
    x = rng.normal(size=(2, 3, 10))
    mean, var = clew.zeros(3, dtype=clew.float64), clew.ones(3, dtype=clew.float64)
    got = F.instance_norm(t(x), mean, var, momentum=0.5)
    m, v = x.mean(2, keepdims=True), x.var(2, keepdims=True)
    close(got, (x - m) / np.sqrt(v + 1e-5))
    close(mean, 0.5 * x.mean(2).mean(0))
    close(var, 0.5 + 0.5 * x.var(2, ddof=1).mean(0))
    got = F.instance_norm(t(x), mean, var, use_input_stats=False)
    shape = (1, 3, 1)
    want = (x - mean.numpy().reshape(shape)) / np.sqrt(var.numpy().reshape(shape) + 1e-5)
    close(got, want)


def test_rrelu():
    x = t(rng.normal(size=1000))
    got = F.rrelu(x, 0.1, 0.3, training=True).numpy()
    a = x.numpy()
    assert (got[a > 0] == a[a > 0]).all()
    slopes = got[a < 0] / a[a < 0]
    assert slopes.min() >= 0.1 and slopes.max() <= 0.3 and slopes.std() > 0.03
    close(F.rrelu(x, 0.1, 0.3), np.where(a > 0, a, 0.2 * a))
    with pytest.raises(RuntimeError, match="lower bound"):
        F.rrelu(x, 0.3, 0.1)
    for bounds in ((float("nan"), 0.3), (0.1, float("inf")), (float("-inf"), 0.3)):
        with pytest.raises(RuntimeError, match="bounds must be finite"):
            F.rrelu(x, *bounds)


def test_rows_of_an_embedding_that_were_scaled_down_stay():
    clew.manual_seed(0)
    m = nn.Embedding(2000, 3, max_norm=0.5)
    every = clew.arange(2000)
    before = m(every).detach().clone()
    assert (m(every) != before).any(1).sum() < 10  # of rounding


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_are_those_of_the_composed_form(mode):
    """Large enough for several threads; rows and factors; nothing for indices outside of bags."""
    n, rows, width = 3000, 50, 40
    flat = t(rng.integers(0, rows, n))
    edges = t(np.concatenate([[0], np.sort(rng.integers(0, n - 7, 300)), [n - 7]]))
    w = t(rng.normal(size=(rows, width))).requires_grad_()
    factors = t(rng.normal(size=n)).requires_grad_() if mode == "sum" else None
    out = F.embedding_bag(
        flat, w, edges, mode=mode, per_sample_weights=factors, include_last_offset=True
    )
    slope = t(rng.normal(size=out.shape))
    out.backward(slope)
    picked = w.detach()[flat]
    scale = clew.ones(n, dtype=clew.float64) if factors is None else factors.detach()
    want, want_factors = clew.zeros_like(w), clew.zeros(n, dtype=clew.float64)
    for b in range(edges.shape[0] - 1):
        here = slice(int(edges[b]), int(edges[b + 1]))
        share = slope[b] / (max(1, here.stop - here.start) if mode == "mean" else 1)
        want.index_add_(0, flat[here], scale[here].unsqueeze(1) * share)
        want_factors[here] = picked[here] @ share
    close(w.grad, want.numpy())
    if factors is not None:
        close(factors.grad, want_factors.numpy())
        assert not factors.grad[-7:].any()
    shared = F.embedding_bag(flat, w, edges, mode=mode, include_last_offset=True)
    (shared.sum() + F.embedding_bag(flat, w, edges, mode=mode, include_last_offset=True).sum()
     ).backward()  # fmt: skip
    assert np.isfinite(w.grad.numpy()).all()


@pytest.mark.parametrize("options", [{}, {"mode": "max"}, {"scale_grad_by_freq": True}])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("offsets", [[0, 2, 1], [0, -1], [0, 9]])
def test_embedding_bag_refuses_offsets_out_of_order(offsets, padding, options):
    with pytest.raises(RuntimeError, match="embedding_bag: offsets must not decrease"):
        F.embedding_bag(t([0, 1]), clew.ones(4, 3), t(offsets), padding_idx=padding, **options)


@pytest.mark.parametrize("recorded", [False, True])
def test_embedding_bag_gradients_leave_out_what_no_bag_has(recorded):
    w = clew.ones(3, 2, requires_grad=True)
    factors = clew.ones(2, requires_grad=True)

    def bags(offsets):
        return F.embedding_bag(
            t([0, 1]),
            w,
            t(offsets),
            mode="sum",
            per_sample_weights=factors,
            include_last_offset=True,
        )

    g = clew.tensor([[float("nan"), 1.0]])
    rows, slopes = clew.autograd.grad(bags([0, 1]), [w, factors], g, create_graph=recorded)
    assert rows[1:].tolist() == [[0, 0], [0, 0]] and rows[0, 1] == 1 and slopes[1] == 0
    none = clew.autograd.grad(bags([0]).sum(), [w, factors], create_graph=recorded)
    assert not none[0].any() and not none[1].any()


def test_embedding_bag_of_meta_tensors():
    w = clew.ones(4, 3, device="meta")
    index = clew.zeros(2, 2, dtype=clew.int64, device="meta")
    assert F.embedding_bag(index, w).shape == (2, 3)
    assert F.embedding_bag(index[0], w, index[1]).shape == (2, 3)


@pytest.mark.parametrize(
    "mode, antialias, want",
    [
        # As Pillow's fixed-point weights give them: columns first, rounded, then rows.
        ("bilinear", False, [36, 66, 85, 131, 155, 153, 119, 53, 60, 106, 152, 161]),
        ("bilinear", True, [64, 76, 75, 118, 159, 149, 118, 65, 73, 116, 160, 146]),
        ("bicubic", False, [31, 65, 79, 136, 178, 171, 124, 30, 55, 106, 157, 164]),
        ("bicubic", True, [59, 70, 65, 127, 170, 156, 116, 53, 61, 112, 172, 151]),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_interpolation_of_bytes_by_whole_weights(mode, antialias, want, last):
    x = (clew.arange(20) * 37 % 256).to(clew.uint8).reshape(1, 1, 4, 5).expand(2, 3, 4, 5)
    x = x.contiguous(memory_format=clew.channels_last if last else clew.contiguous_format)
    y = F.interpolate(x, (3, 4), mode=mode, antialias=antialias)
    assert y.dtype == clew.uint8
    assert all(plane.flatten().tolist() == want for image in y for plane in image)


@pytest.mark.parametrize("size", [28, 30, 100])
def test_identity_grids_are_rounded_as_in_pytorch(size):
    """Places at pixels' centers are kinks of grid_sample: the last bit decides its gradients."""
    theta = clew.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    line = clew.linspace(-1, 1, size).numpy()
    want = line * np.float32(size - 1) / np.float32(size)
    got = F.affine_grid(theta, (1, 1, size, size), align_corners=False).numpy()
    assert np.array_equal(got[0, 0, :, 0], want) and np.array_equal(got[0, :, 0, 1], want)


def test_the_infinite_norm_pools_the_greatest_size():
    x = clew.tensor([[-3.0, 1.0, 2.0, -5.0]], requires_grad=True)
    inf = float("inf")
    assert F.lp_pool1d(x, inf, 2).tolist() == [[3.0, 5.0]]
    assert F.lp_pool1d(x, -inf, 2).tolist() == [[1.0, 2.0]]
    image = clew.randn(1, 2, 5, 5)
    want = F.max_pool2d(image.abs(), 2, 1, ceil_mode=True)
    assert clew.equal(clew.nn.LPPool2d(inf, 2, 1, ceil_mode=True)(image), want)
    F.lp_pool1d(x, inf, 2).sum().backward()
    assert x.grad.tolist() == [[-1.0, 0.0, 0.0, -1.0]]


def test_cosines_of_mixed_dtypes():
    x, y = clew.tensor([[1.0, 2.0]]), clew.tensor([[2, 4]], dtype=clew.uint8)
    got = F.cosine_similarity(x, y)
    assert got.dtype is clew.float32 and got.tolist() == pytest.approx([1.0])
    assert F.cosine_similarity(x, y.double()).dtype is clew.float64


def test_a_weight_of_more_dims_keeps_the_dim_of_the_classes():
    x, y = clew.tensor([0.5, -1.0]), clew.tensor([1.0, 0.0])
    got = F.multilabel_soft_margin_loss(x, y, clew.full((1, 2), 2.0), reduction="none")
    one = F.multilabel_soft_margin_loss(x.reshape(2, 1), y.reshape(2, 1), reduction="none")
    assert clew.allclose(got, one)  # summed over the weight's own dim, divided by two classes


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4), (2, 3, 4, 2, 2, 2)])
def test_dropout3d_reads_other_ranks_as_one_sample(shape):
    x = clew.ones(shape)
    with pytest.warns(UserWarning, match="dropout3d"):
        y = F.dropout3d(x, 0.5)
    rows = y.reshape(shape[0], -1)
    assert all(row.unique().numel() == 1 for row in rows) and set(y.unique().tolist()) <= {0.0, 2.0}


def test_feature_dropout_of_few_dims_where_nothing_is_drawn():
    x = clew.tensor(3.0, requires_grad=True)
    assert F.dropout2d(x, 0.0) is x and F.dropout2d(x, 0.5, training=False) is x
    y = F.dropout2d(x, 1.0)
    assert y.item() == 0.0 and clew.autograd.grad(y, x)[0].item() == 0.0
    with pytest.raises(RuntimeError, match="at least 2 dims"):
        F.dropout2d(x, 0.5)


def test_gumbel_draws_do_not_depend_on_strides():
    clew.manual_seed(0)
    want = F.gumbel_softmax(clew.zeros(3, 2))
    clew.manual_seed(0)
    assert clew.equal(F.gumbel_softmax(clew.zeros(2, 3).t()), want)
