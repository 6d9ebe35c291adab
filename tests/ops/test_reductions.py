"""Reductions, scans, sorts and norms: ties, accuracy, sizes, threads, side effects."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def grad_of(f, *arrays):
    xs = [clew.tensor(a, dtype=clew.float64, requires_grad=True) for a in arrays]
    return [g.tolist() for g in clew.autograd.grad(f(*xs), xs)]


def test_equal_elements_share_the_gradient_of_amax_and_of_the_full_max():
    x = [[1.0, 3.0, 3.0], [3.0, 2.0, 0.0]]
    third = 1 / 3
    assert grad_of(lambda t: t.amax(), x)[0] == [[0, third, third], [third, 0, 0]]
    assert grad_of(lambda t: t.max(), x)[0] == [[0, third, third], [third, 0, 0]]
    assert grad_of(lambda t: t.amax(1).sum(), x)[0] == [[0, 0.5, 0.5], [1, 0, 0]]
    assert grad_of(lambda t: clew.norm(t, float("inf")), [3.0, -3.0, 1.0])[0] == [0.5, -0.5, 0]


def test_the_indexed_element_alone_gets_the_gradient_of_max_along_an_axis():
    assert grad_of(lambda t: t.max(1).values.sum(), [[1.0, 3.0, 3.0]])[0] == [[0, 1, 0]]
    assert grad_of(lambda t: t.min(0)[0].sum(), [[1.0, 3.0], [1.0, 2.0]])[0] == [[1, 0], [0, 1]]
    assert grad_of(lambda t: t.cummax(0).values.sum(), [1.0, 3.0, 3.0, 2.0])[0] == [1, 1, 2, 0]
    assert grad_of(lambda t: t.topk(2).values.sum(), [5.0, 1.0, 7.0])[0] == [1, 0, 1]


def test_nan_shares_the_gradient_among_the_nan_elements():
    assert grad_of(lambda t: t.amax(), [1.0, float("nan"), float("nan")])[0] == [0, 0.5, 0.5]


def test_norm_and_std_have_no_nan_gradient_at_zero():
    for p in (1, 1.5, 2, 3, float("inf")):
        assert all(v == v for v in grad_of(lambda t, p=p: clew.norm(t, p), [0.0, 0.0])[0]), p
    assert grad_of(lambda t: clew.norm(t, 3), [0.0, 2.0])[0] == [0, 1]
    assert grad_of(lambda t: t.std(), [2.0, 2.0])[0] == [0, 0]


def test_second_derivative_of_a_product_with_zeros():
    x = clew.tensor([0.0, 2.0, 0.0, 3.0], dtype=clew.float64, requires_grad=True)
    (g,) = clew.autograd.grad(x.prod(), x, create_graph=True)
    assert g.tolist() == [0, 0, 0, 0]
    (h,) = clew.autograd.grad(g[0], x)
    assert h.tolist() == [0, 0, 6, 0]


def test_long_float_sums_stay_accurate():
    x = np.full((3, 1_000_000), 0.1, dtype=np.float32)
    exact = float(np.float64(np.float32(0.1)) * 1_000_000)
    for t, dim in [
        (clew.from_numpy(x), 1),
        (clew.from_numpy(x).T, 0),
        (clew.from_numpy(np.ascontiguousarray(x.T)), 0),
    ]:
        assert np.abs(t.sum(dim).numpy() / exact - 1).max() < 2e-7
        assert np.abs(t.mean(dim).numpy() / 0.1 - 1).max() < 2e-7
    assert abs(clew.from_numpy(x[0]).cumsum(0)[-1].item() / exact - 1) < 2e-7


def test_half_sums_accumulate_in_single_precision():
    assert clew.ones(5000, dtype=clew.float16).sum().item() == 5000
    assert clew.ones(5000, dtype=clew.bfloat16).mean().item() == 1
    assert clew.ones(1000, dtype=clew.bfloat16).cumsum(0)[-1].item() == 1000


def test_variance_far_from_zero():
    x = np.random.default_rng(0).normal(size=(4, 1000)) * 1e-3 + 1e4
    got = clew.from_numpy(x.astype(np.float32)).var(1).numpy()
    np.testing.assert_allclose(
        got, x.astype(np.float32).astype(np.float64).var(1, ddof=1), rtol=1e-5
    )


@pytest.mark.parametrize(
    "shape", [(90_001,), (3, 20_001), (20_001, 3), (157, 213), (2, 90, 201), (20, 15, 12, 10)]
)
def test_large_reductions_over_every_set_of_axes(shape):
    x = np.random.default_rng(1).normal(size=shape)
    for order in (range(len(shape)), reversed(range(len(shape)))):
        t = clew.from_numpy(x).permute(*order)
        y = t.numpy()
        for mask in range(1, 2 ** len(shape)):
            axis = tuple(d for d in range(len(shape)) if mask >> d & 1)
            np.testing.assert_allclose(t.sum(axis).numpy(), y.sum(axis), rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(t.amax(axis).numpy(), y.max(axis))
            np.testing.assert_allclose(t.var(axis).numpy(), y.var(axis, ddof=1), rtol=1e-9)
            np.testing.assert_allclose(
                clew.norm(t, 1, axis).numpy(), np.abs(y).sum(axis), rtol=1e-9
            )
        for d in range(len(shape)):
            np.testing.assert_array_equal(t.argmax(d).numpy(), y.argmax(d))
            values, indices = t.min(d)
            np.testing.assert_array_equal(values.numpy(), y.min(d))
            np.testing.assert_array_equal(indices.numpy(), y.argmin(d))
            np.testing.assert_allclose(t.cumsum(d).numpy(), y.cumsum(d), rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(t.sort(d).values.numpy(), np.sort(y, d))
            np.testing.assert_array_equal(
                t.sort(d, descending=True).indices.numpy(), np.argsort(-y, d, kind="stable")
            )
            e = np.exp(y - y.max(d, keepdims=True))
            np.testing.assert_allclose(t.softmax(d).numpy(), e / e.sum(d, keepdims=True), rtol=1e-9)
            np.testing.assert_allclose(
                t.logsumexp(d).numpy(), np.log(e.sum(d)) + y.max(d), rtol=1e-9
            )


def test_expanded_inputs():
    x = clew.arange(3.0).reshape(3, 1).expand(3, 5)
    assert x.sum(1).tolist() == [0, 5, 10] and x.sum(0).tolist() == [3] * 5 and x.sum().item() == 15
    assert x.softmax(1).tolist() == [[pytest.approx(0.2)] * 5] * 3
    assert x.cumsum(1)[2].tolist() == [2, 4, 6, 8, 10]
    assert x.max(0).indices.tolist() == [2] * 5


def test_the_result_does_not_depend_on_the_run():
    x = clew.from_numpy(np.random.default_rng(2).normal(size=(3, 100_003)).astype(np.float32))
    first = [x.sum().item(), x.sum(0).tolist(), x.var(1).tolist(), x.softmax(1)[0, :5].tolist()]
    for _ in range(3):
        assert [
            x.sum().item(),
            x.sum(0).tolist(),
            x.var(1).tolist(),
            x.softmax(1)[0, :5].tolist(),
        ] == first


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads):
    before = clew.get_num_threads()
    clew.set_num_threads(threads)
    try:
        x = np.random.default_rng(3).normal(size=(7, 50_000))
        t = clew.from_numpy(x)
        np.testing.assert_allclose(t.sum().item(), x.sum(), rtol=1e-10)
        np.testing.assert_allclose(t.T.contiguous().sum(0).numpy(), x.sum(1), rtol=1e-10)
        assert t.argmax().item() == x.argmax()
        w = clew.randn(50_000, dtype=clew.float64)
        y = clew.nn.functional.layer_norm(t, [50_000], w, w)
        np.testing.assert_allclose(
            y.mean().item(),
            (
                ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5))
                * w.numpy()
                + w.numpy()
            ).mean(),
            rtol=1e-8,
        )
    finally:
        clew.set_num_threads(before)


def test_dtypes_of_results():
    i = clew.tensor([1, 2, 3], dtype=clew.int8)
    assert (
        i.sum().dtype is clew.int64
        and i.prod().dtype is clew.int64
        and i.cumsum(0).dtype is clew.int64
    )
    assert i.sum(dtype=clew.int8).dtype is clew.int8 and i.sum(dtype=clew.float32).item() == 6.0
    assert clew.tensor([200, 100], dtype=clew.uint8).sum(dtype=clew.uint8).item() == 44
    assert clew.tensor([1.5, 1.5]).sum(dtype=clew.int32).item() == 2
    assert (
        clew.tensor([True, True]).sum().item() == 2
        and clew.tensor([0.5, 0.5]).sum(dtype=clew.bool).item() is True
    )
    assert clew.tensor([2**62, 2**62, 5]).sum().item() == -(2**63) + 5
    assert i.amax().dtype is clew.int8 and clew.tensor([False, True]).max().item() is True
    assert (
        clew.tensor([1, 0], dtype=clew.uint8).any().dtype is clew.uint8
        and i.any().dtype is clew.bool
    )
    assert (
        clew.tensor([1j, 2.0]).var().dtype is clew.float32
        and clew.tensor([1j]).norm().dtype is clew.float32
    )
    assert clew.tensor([1.0]).softmax(0, dtype=clew.float64).dtype is clew.float64
    assert clew.tensor([1, 2]).softmax(0, clew.float32).dtype is clew.float32
    assert i.logsumexp(0).dtype is clew.float32


def test_reductions_of_nothing():
    e = clew.zeros(2, 0)
    assert (
        e.sum().item() == 0
        and e.prod().item() == 1
        and e.sum(1).tolist() == [0, 0]
        and e.prod(1).tolist() == [1, 1]
    )
    assert e.any().item() is False and e.all().item() is True
    assert np.isnan(e.mean().item()) and np.isnan(e.var().item()) and np.isnan(e.median().item())
    assert e.logsumexp(1).tolist() == [-float("inf")] * 2
    assert clew.tensor([[1.0, 2.0]]).var(1, correction=5).tolist() == [float("inf")]
    for dtype in (clew.float32, clew.float64, clew.float16, clew.complex64):
        none = e.to(dtype)
        for correction in (-2, -1, 0, 0.5, 1, 2):
            for dim in (None, 1):
                var, mean = clew.var_mean(none, dim, correction=correction)
                std = clew.std(none, dim, correction=correction)
                assert var.isnan().all() and mean.isnan().all() and std.isnan().all()
    one = clew.ones(1)
    assert one.var(correction=-1).item() == 0 and one.std(0, correction=-1).item() == 0
    assert e.sum(0).shape == (0,) and e.max(0).values.shape == (0,) and e.argmax(0).shape == (0,)
    assert clew.tensor([1.0]).var().item() != clew.tensor([1.0]).var().item()


def test_sorting_is_stable_in_both_directions():
    rng = np.random.default_rng(4)
    for n in (50, 5000):
        keys = rng.integers(0, 7, n).astype(np.float32)
        keys[rng.integers(0, n, 5)] = np.nan
        t = clew.from_numpy(keys)
        clean = np.where(np.isnan(keys), 100, keys)
        assert t.sort().indices.tolist() == np.argsort(clean, kind="stable").tolist()
        assert t.argsort(descending=True).tolist() == np.argsort(-clean, kind="stable").tolist()


def test_signed_zeros_are_equal_and_kept():
    t = clew.tensor([0.0, -0.0, 0.0])
    s = t.sort()
    assert s.indices.tolist() == [0, 1, 2] and [str(v) for v in s.values.tolist()] == [
        "0.0",
        "-0.0",
        "0.0",
    ]


def test_batch_norm_keeps_running_statistics():
    x = np.random.default_rng(5).normal(size=(6, 3, 4)) * 2 + 1
    mean, var = clew.zeros(3, dtype=clew.float64), clew.ones(3, dtype=clew.float64)
    version = mean._version
    clew.nn.functional.batch_norm(clew.from_numpy(x), mean, var, training=True, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), 0.3 * x.mean(axis=(0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.7 + 0.3 * x.var(axis=(0, 2), ddof=0) * 24 / 23)
    assert mean._version > version
    before = mean.clone()
    clew.nn.functional.batch_norm(clew.from_numpy(x), mean, var, training=False)
    assert mean.tolist() == before.tolist()
    y = clew.nn.functional.batch_norm(
        clew.from_numpy(x.astype(np.float32)), mean.float(), var.float()
    )
    np.testing.assert_allclose(
        y.numpy(),
        (x - mean.numpy()[:, None]) / np.sqrt(var.numpy()[:, None] + 1e-5),
        rtol=1e-4,
        atol=1e-4,
    )


def test_batch_norm_gradients_in_evaluation():
    x = clew.randn(4, 3, dtype=clew.float64, requires_grad=True)
    w = clew.randn(3, dtype=clew.float64, requires_grad=True)
    b = clew.randn(3, dtype=clew.float64, requires_grad=True)
    mean, var = clew.randn(3, dtype=clew.float64), clew.rand(3, dtype=clew.float64) + 0.5

    def f(x, w, b):
        return clew.nn.functional.batch_norm(x, mean, var, w, b)

    assert clew.autograd.gradcheck(f, (x, w, b)) and clew.autograd.gradgradcheck(f, (x, w, b))


def test_layer_norm_takes_half_inputs_with_single_weights():
    x = clew.randn(4, 8).to(clew.bfloat16).requires_grad_()
    w = clew.ones(8, requires_grad=True)
    y = clew.nn.functional.layer_norm(x, [8], w, None)
    assert y.dtype is clew.bfloat16
    y.float().sum().backward()
    assert x.grad.dtype is clew.bfloat16 and w.grad.dtype is clew.float32


def test_softmax_of_extremes():
    x = clew.tensor([1e30, -1e30, 0.0])
    assert x.softmax(0).tolist() == [1, 0, 0] and x.log_softmax(0)[0].item() == 0
    assert clew.tensor([-float("inf"), 0.0]).softmax(0).tolist() == [0, 1]
    assert all(v != v for v in clew.tensor([float("nan"), 0.0]).softmax(0).tolist())
    assert all(v != v for v in clew.tensor([-float("inf")] * 2).softmax(0).tolist())


def test_exponentials_are_accurate():
    x = np.linspace(-90, 0, 20001, dtype=np.float32)
    t = clew.from_numpy(x)
    got = t.log_softmax(0).numpy().astype(np.float64)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got, wide - np.log(np.exp(wide).sum()), rtol=3e-7)
    soft = t.softmax(0).numpy()
    np.testing.assert_allclose(soft, np.exp(wide) / np.exp(wide).sum(), rtol=2e-6, atol=1e-38)


def test_nll_loss_weights_and_ignored_targets():
    x = clew.zeros(2, 3)
    out, total = clew._C.ops._nll_loss(x, clew.tensor([-100, -100]), None, -100, "mean")
    assert out.item() != out.item() and total.item() == 0
    out, _ = clew._C.ops._nll_loss(x, clew.tensor([-100, -100]), None, -100, "sum")
    assert out.item() == 0


@pytest.mark.parametrize("name", ["var", "std"])
def test_every_spelling_of_the_correction(name):
    f = getattr(clew, name)
    x = clew.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]])

    def want(d, c):
        return getattr(x.numpy(), name)(d, ddof=c)

    for got, d, c in [
        (f(x), None, 1),
        (f(x, False), None, 0),
        (f(x, unbiased=False), None, 0),
        (f(x, 1), 1, 1),
        (f(x, 1, False), 1, 0),
        (f(x, dim=1, unbiased=False), 1, 0),
        (f(x, dim=(0, 1), correction=0), None, 0),
        (f(x, correction=2), None, 2),
        (f(x, 1, correction=0), 1, 0),
        (getattr(x, name)(0, True), 0, 1),
        (getattr(x, name)(dim=None), None, 1),
    ]:
        np.testing.assert_allclose(got.numpy(), want(d, c), rtol=1e-6)
    assert f(x, 1, True, True).shape == (2, 1) and f(x, 1, keepdim=True).shape == (2, 1)


@pytest.mark.parametrize("name", ["var", "std", "var_mean"])
@pytest.mark.parametrize("scale", [1e-30, 1e-25, 1e-18, 1.0, 1e18, 1e25])
@pytest.mark.parametrize("complex_too", [False, True])
def test_spreads_whose_squares_do_not_fit(name, scale, complex_too):
    x = np.random.default_rng(0).normal(size=(3, 50)) * scale
    if complex_too:
        x = x * (1 + 0.5j)
    x = x.astype(np.complex64 if complex_too else np.float32)
    got = getattr(clew, name)(clew.from_numpy(x), 1)
    got, mean = got if name == "var_mean" else (got, None)
    wide = x.astype(np.complex128)
    want = wide.std(1, ddof=1) if name == "std" else wide.var(1, ddof=1)
    with np.errstate(over="ignore"):
        want = want.astype(np.float32)
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-6, atol=2e-45)
    if mean is not None:
        np.testing.assert_allclose(mean.numpy(), wide.mean(1), rtol=1e-4)


def test_slope_of_a_large_spread():
    x = clew.tensor([1e25, 2e25, -1e25, -3e25], requires_grad=True)
    x.std().backward()
    wide = x.detach().double().requires_grad_()
    wide.std().backward()
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=1e-5)


def test_extrema_over_no_dim_in_particular():
    x = clew.tensor([[1.0, 4.0], [3.0, 2.0]], requires_grad=True)
    assert x.amax(None).item() == x.amax(()).item() == 4
    assert clew.amin(x, dim=None, keepdim=True).tolist() == [[1.0]]
    x.amax(None).backward()
    assert x.grad.tolist() == [[0, 1], [0, 0]]
    with pytest.raises(RuntimeError, match="without elements"):
        clew.ones(0).amax(None)


def test_nanmean_refuses_a_whole_dtype():
    with pytest.raises(RuntimeError, match="dtype must be floating point or complex; got int64"):
        clew.nanmean(clew.ones(3), dtype=clew.int64)
    assert clew.nanmean(clew.ones(3), dtype=clew.float64).dtype == clew.float64


@pytest.mark.parametrize("dims", [(), (1,)])
def test_slope_of_a_product_of_real_parts(dims):
    z = clew.tensor([[1 + 2j, 3 - 1j], [2 + 0.5j, -1 + 1j]], requires_grad=True)
    z.prod(*dims, dtype=clew.float64).sum().backward()
    x = z.detach().real.double().requires_grad_()
    x.prod(*dims).sum().backward()
    assert z.grad.imag.abs().max() == 0
    np.testing.assert_allclose(z.grad.real.numpy(), x.grad.numpy(), rtol=1e-6)
