"""Edges of operations: complex numbers, empty and one-dimensional inputs, zeros among factors,
bytes, overwritten inputs.
"""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn
from clew.autograd import gradcheck, gradgradcheck

F = nn.functional


def complex_tensor(*shape: int, scale: float = 1.0, seed: int = 0) -> clew.Tensor:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return clew.tensor(np.asarray(x * scale)).requires_grad_()


def check(f, *inputs: clew.Tensor) -> None:
    assert gradcheck(f, inputs) and gradgradcheck(f, inputs)


@pytest.mark.parametrize(
    "function, formula",
    [
        (F.silu, lambda z: z / (1 + np.exp(-z))),
        (F.softsign, lambda z: z / (1 + np.abs(z))),
    ],
)
def test_activations_of_complex_numbers(function, formula):
    z = complex_tensor(3, 4)
    got = function(z)
    np.testing.assert_allclose(got.detach().numpy(), formula(z.detach().numpy()), rtol=1e-12)
    assert gradcheck(function, (z,))


def test_softsign_of_complex_numbers_has_a_second_derivative():
    assert gradgradcheck(F.softsign, (complex_tensor(3),))


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_logsumexp_of_complex_numbers(dim):
    z = complex_tensor(3, 4)
    want = np.log(np.exp(z.detach().numpy()).sum(dim))
    np.testing.assert_allclose(clew.logsumexp(z, dim).detach().numpy(), want, rtol=1e-12)
    check(lambda t: clew.logsumexp(t, dim), z)
    huge = clew.logsumexp(z.detach() + 800, dim).numpy()
    np.testing.assert_allclose(huge, want + 800, rtol=1e-12)
    empty = clew.logsumexp(clew.zeros(0, 2, dtype=clew.complex128), 0)
    assert (empty.real == -np.inf).all()


def test_logcumsumexp_of_complex_numbers():
    z = complex_tensor(3, 4, scale=0.3)
    want = np.log(np.cumsum(np.exp(z.detach().numpy()), 1))
    np.testing.assert_allclose(clew.logcumsumexp(z, 1).detach().numpy(), want, rtol=1e-12)
    check(lambda t: clew.logcumsumexp(t, 1), z)


def test_logaddexp_of_complex_numbers():
    a, b = complex_tensor(3, 4, scale=0.4), complex_tensor(4, scale=0.4, seed=1)
    want = np.log(np.exp(a.detach().numpy()) + np.exp(b.detach().numpy()))
    np.testing.assert_allclose(clew.logaddexp(a, b).detach().numpy(), want, rtol=1e-12)
    check(clew.logaddexp, a, b)
    # The imaginary part goes on from the larger operand's instead of being wrapped.
    got = clew.logaddexp(clew.tensor(5 + 9j), clew.tensor(-50 + 0j))
    np.testing.assert_allclose(got.numpy(), 5 + 9j, rtol=1e-6)


@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_prod_can_be_differentiated_twice_at_zeros(include_self: bool):
    x = clew.tensor([[2.0, 0.0, -1.0], [0.5, 3.0, 0.0]], dtype=clew.float64, requires_grad=True)
    src = clew.tensor(
        [[0.0, 2.0, 3.0, 0.0], [1.5, 0.0, 0.0, -2.0]], dtype=clew.float64, requires_grad=True
    )
    index = clew.tensor([[0, 0, 1, 0], [2, 1, 1, 2]])
    check(lambda a, b: a.scatter_reduce(1, index, b, "prod", include_self=include_self), x, src)
    columns = clew.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 1]])
    wide = clew.tensor(
        [[0.0, 1.0, 2.0], [0.0, -1.0, 0.0], [3.0, 0.5, 4.0]],
        dtype=clew.float64,
        requires_grad=True,
    )
    check(lambda a, b: a.scatter_reduce(0, columns, b, "prod", include_self=include_self), x, wide)


def test_nextafter_moves_with_its_first_operand():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    y = clew.tensor([3.0, 0.0], requires_grad=True)
    gx, gy = clew.autograd.grad(clew.nextafter(x, y).sum(), (x, y))
    assert gx.tolist() == [1.0, 1.0] and gy.tolist() == [0.0, 0.0]


def test_an_overwritten_tensor_has_a_gradient_of_zeros():
    x = clew.ones(2, requires_grad=True)
    z = clew.tensor([3.0, 4.0], requires_grad=True)
    y = x * 2
    y.copy_(z)
    gx, gz = clew.autograd.grad(y.sum(), (x, z))
    assert gx.tolist() == [0.0, 0.0] and gz.tolist() == [1.0, 1.0]
    w = x * 2
    w[0].copy_(z[1])
    gx, gz = clew.autograd.grad(w.sum(), (x, z))
    assert gx.tolist() == [0.0, 2.0] and gz.tolist() == [0.0, 1.0]


def test_gather_accepts_empty_indices_of_any_integer_dtype():
    x = clew.ones(5, requires_grad=True)
    index = clew.zeros(0, dtype=clew.uint8)
    got = clew.gather(x, 0, index)
    assert got.shape == (0,) and got.requires_grad
    (g,) = clew.autograd.grad(got.sum(), x)
    assert g.tolist() == [0.0] * 5
    with pytest.raises(RuntimeError, match="int64 or int32"):
        clew.gather(x, 0, clew.zeros(2, dtype=clew.uint8))


def test_batch_norm_of_an_empty_vector_and_feature_dropout_of_a_vector():
    empty = clew.zeros(0, requires_grad=True)
    out = F.batch_norm(empty, clew.zeros(0), clew.zeros(0), training=True)
    assert out.shape == (0,) and out.requires_grad
    with pytest.raises(RuntimeError, match="at least 2"):
        F.batch_norm(clew.ones(3), None, None, training=True)
    x = clew.ones(3)
    assert F.feature_alpha_dropout(x, 0.5, training=False).tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="at least 2"):
        F.feature_alpha_dropout(x, 0.5, training=True)


def test_addr_of_bools():
    eye = clew.eye(2, dtype=clew.bool)
    a, b = clew.tensor([True, False]), clew.tensor([True, True])
    assert clew.addr(eye, a, b).tolist() == [[True, True], [False, True]]
    assert clew.addr(eye, a, b, beta=0).tolist() == [[True, True], [False, False]]
    assert clew.addr(eye, a, b, alpha=0).tolist() == eye.tolist()


def test_diff_of_order_zero_is_the_input():
    x = clew.ones(3, 3)
    assert clew.diff(x, 0, 0, clew.ones(1, 3), clew.ones(2, 3)).shape == (3, 3)
    out = clew.empty(0)
    assert clew.diff(x, out=out) is out and out.shape == (3, 2)


def test_combinations_of_too_few_elements():
    x = clew.ones(1, requires_grad=True)
    got = clew.combinations(x, 2)
    assert got.shape == (0, 2) and got.requires_grad
    assert clew.combinations(x, 0).shape == (0,)


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce_in_place_and_into_out(reduce: str):
    index = clew.tensor([0, 0, 1])
    source = clew.tensor([[2.0, 3.0], [4.0, 0.5], [1.5, 5.0]], requires_grad=True)
    x = clew.tensor([[1.0, 2.5], [3.0, 4.0]], requires_grad=True)
    want = clew.index_reduce(x, 0, index, source, reduce)
    y = x * 1
    assert y.index_reduce_(0, index, source, reduce) is y
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy())
    got = clew.autograd.grad(y.sum(), (x, source))
    for a, b in zip(got, clew.autograd.grad(want.sum(), (x, source))):
        np.testing.assert_allclose(a.numpy(), b.numpy())
    out = clew.empty(0)
    assert clew.index_reduce(x.detach(), 0, index, source.detach(), reduce, out=out) is out
    np.testing.assert_allclose(out.numpy(), want.detach().numpy())


def test_renorm_in_place_has_the_gradient_of_renorm():
    x = clew.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    y = x * 1
    y.renorm_(2, 0, 1.0)
    want = clew.renorm(x, 2, 0, 1.0)
    seed = clew.tensor([[1.0, 2.0], [3.0, 4.0]])
    a, b = clew.autograd.grad(y, x, seed)[0], clew.autograd.grad(want, x, seed)[0]
    np.testing.assert_allclose(a.numpy(), b.numpy())


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **k: clew.narrow_copy(x, 0, 1, 2, **k),
        lambda x, **k: clew.select_scatter(x, clew.ones(3), 0, 1, **k),
        lambda x, **k: clew.slice_scatter(x, clew.ones(1, 3), 0, 1, 2, **k),
        lambda x, **k: clew.diagonal_scatter(x, clew.ones(3), **k),
        lambda x, **k: clew.as_strided_scatter(x, clew.ones(2), (2,), (2,), **k),
    ],
)
def test_copies_into_out(call):
    x = clew.arange(9.0).reshape(3, 3)
    out = clew.empty(0)
    assert call(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), call(x).numpy())


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_of_bytes_is_rounded_and_cut_off(mode: str):
    x = clew.tensor(np.random.default_rng(0).integers(0, 256, (1, 1, 6, 6)).astype(np.uint8))
    got = F.interpolate(x, size=(4, 9), mode=mode)
    # Columns first, then rows, each rounded and cut off.
    wide = F.interpolate(x.double(), size=(6, 9), mode=mode).round().clamp(0, 255)
    want = F.interpolate(wide, size=(4, 9), mode=mode).round().clamp(0, 255)
    assert got.dtype is clew.uint8
    assert np.abs(got.numpy().astype(int) - want.numpy()).max() <= 1


def test_dtypes_of_sums_and_indices():
    byte = clew.tensor([5, 2], dtype=clew.uint8)
    assert all(i.dtype is clew.int64 for i in clew.unravel_index(byte, (2, 3)))
    assert byte.sum_to_size(()).dtype is clew.int64
    mask = clew.tensor([True, False])
    assert clew.masked.cumsum(byte, 0, mask=mask).dtype is clew.uint8
    half = clew.ones(3, dtype=clew.float16)
    assert clew.masked.var(half, correction=0.5).dtype is clew.float16


@pytest.mark.parametrize("kind", ["layer", "group", "batch", "batch of images"])
def test_norms_of_values_far_from_zero_are_as_exact_as_their_mean(kind: str):
    """The mean is taken off before scaling: 1000 and a little gives what the little gives."""
    rng = np.random.default_rng(0)
    shape = {"batch of images": (4, 6, 3, 3), "group": (4, 6, 3)}.get(kind, (64, 6))
    little = np.round(rng.normal(size=shape) * 8) / 8  # exact beside 1000 in float32
    w, b = rng.normal(size=6).astype(np.float32), rng.normal(size=6).astype(np.float32)

    def run(x: np.ndarray, dtype: clew.dtype) -> list[np.ndarray]:
        t = clew.tensor(x, dtype=dtype, requires_grad=True)
        weight = clew.tensor(w, dtype=dtype, requires_grad=True)
        bias = clew.tensor(b, dtype=dtype)
        if kind == "layer":
            y = F.layer_norm(t, (6,), weight, bias)
        elif kind == "group":
            y = F.group_norm(t, 2, weight, bias)
        else:
            y = F.batch_norm(t, None, None, weight, bias, training=True)
        seed = clew.tensor(np.sin(np.arange(x.size)).reshape(x.shape), dtype=dtype)
        grads = clew.autograd.grad(y, (t, weight), seed)
        return [y.detach().numpy(), *(g.numpy() for g in grads)]

    for got, want in zip(run(little + 1000, clew.float32), run(little, clew.float64)):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_layer_norm_of_one_element_is_the_bias():
    x, w = clew.tensor([-4.3228]), clew.tensor([-8.4784])
    assert F.layer_norm(x, (1,), w, clew.tensor([-1.75])).item() == -1.75


@pytest.mark.parametrize("groups", [1, 3])
def test_layer_and_group_norm_lose_nothing_to_large_means(groups: int):
    little = np.round(np.random.default_rng(0).normal(size=(16, 6, 5)) * 8) / 8
    x = clew.tensor(little + 30000, dtype=clew.float32)  # exact
    want = F.group_norm(clew.tensor(little), groups).numpy()
    np.testing.assert_allclose(F.group_norm(x, groups).numpy(), want, rtol=2e-5, atol=2e-5)
    rows = F.layer_norm(clew.tensor(little), (5,)).numpy()
    np.testing.assert_allclose(F.layer_norm(x, (5,)).numpy(), rows, rtol=2e-5, atol=2e-5)


def test_narrow_from_a_tensor():
    x = clew.arange(5.0).requires_grad_()
    part = clew.narrow(x, 0, clew.tensor(1), 3)
    assert part.tolist() == [1.0, 2.0, 3.0] and part.requires_grad
    assert x.narrow(0, clew.tensor(-2, dtype=clew.int32), 2).tolist() == [3.0, 4.0]
    for start in (clew.tensor([1]), clew.tensor(1.0), clew.tensor(True)):
        with pytest.raises(RuntimeError, match="0-dim integral"):
            clew.narrow(x, 0, start, 1)


@pytest.mark.parametrize("f", [clew.linspace, clew.logspace])
def test_spaced_numbers_between_tensors(f):
    got = f(clew.tensor(1.0), clew.tensor(3.0), 3)
    np.testing.assert_allclose(got.numpy(), f(1.0, 3.0, 3).numpy())
    with pytest.raises(RuntimeError, match="0-dimensional"):
        f(clew.tensor([1.0]), clew.tensor(3.0), 3)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums_are_computed_in_the_dtype_of_out(name: str):
    x = clew.tensor([1.5, 2.5, 3.5])
    out = clew.empty(3, dtype=clew.int64)
    assert getattr(clew, name)(x, 0, out=out) is out
    assert out.tolist() == getattr(np, name)([1, 2, 3]).tolist()
    wide = clew.empty(3, dtype=clew.float64)
    getattr(clew, name)(x, 0, out=wide)
    np.testing.assert_allclose(wide.numpy(), getattr(np, name)([1.5, 2.5, 3.5]))


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pools_refuse_sizes_that_do_not_fit(kind: str):
    two = getattr(F, f"adaptive_{kind}_pool2d")
    with pytest.raises(ValueError, match="at least 3"):
        two(clew.ones(2, 2), (2, 2))
    with pytest.raises(RuntimeError, match="3D or 4D"):
        two(clew.ones(2, 2), 2)
    with pytest.raises(RuntimeError, match="2 elements"):
        two(clew.ones(1, 2, 3, 4), ())
    with pytest.raises(RuntimeError, match="1 elements"):
        getattr(F, f"adaptive_{kind}_pool1d")(clew.ones(1, 2, 3), ())


def test_types_of_errors():
    x = clew.ones(2, 3)
    with pytest.raises(ValueError, match="min_val"):
        F.hardtanh(x, 0.5, -0.5)
    for loss in (F.multi_margin_loss, F.multilabel_margin_loss):
        with pytest.raises(ValueError, match="not a valid value for reduction"):
            loss(x, x, reduction="abc")
    with pytest.raises(RuntimeError, match="logical_not"):
        -clew.tensor([True])
    with pytest.raises(IndexError, match="no dimensions"):
        clew.roll(clew.tensor(1.0), 1, 0)
    with pytest.raises(RuntimeError, match="floating-point"):
        clew.multinomial(clew.tensor([1, 2]), 1)
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 0 with size 2"):
        clew.gather(x, 0, clew.tensor([[5]]))


@pytest.mark.parametrize("dtype", [clew.uint8, clew.int32])
def test_tensordot_of_small_integers_keeps_the_dtype(dtype: clew.dtype):
    a, b = clew.ones(1, 1, 1, dtype=dtype), clew.full((2, 1, 2), 3, dtype=dtype)
    got = clew.tensordot(a, b, dims=((0, 1), (2, 0)))
    assert got.dtype is dtype
    np.testing.assert_array_equal(got.numpy(), [[12]])


@pytest.mark.parametrize(
    ("x", "low", "high", "want"),
    [(0.0, 1.0, 1.0, (0, 0, 0)), (0.0, 1.0, 2.0, (0, 1, 0)), (3.0, 1.0, 1.0, (0, 0, 1))],
)
def test_clamp_between_equal_bounds_gives_the_lower_one_no_gradient(x, low, high, want):
    inputs = [clew.tensor([v], requires_grad=True) for v in (x, low, high)]
    got = clew.autograd.grad(clew.clamp(*inputs).sum(), inputs)
    assert tuple(int(g) for g in got) == want


def test_gradient_of_polygamma_of_the_greatest_order():
    x = clew.tensor([0.5, 2.0], requires_grad=True)
    (grad,) = clew.autograd.grad(clew.polygamma(2**63 - 1, x).sum(), x)
    assert not clew.isfinite(grad).any()


def test_nextafter_from_negative_zero():
    got = clew.nextafter(clew.tensor([-0.0, -0.0]), clew.tensor([1.0, -1.0]))
    assert got.tolist() == [2.0**-149, -(2.0**-149)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sign_of_16_bit_floats(dtype):
    x = clew.tensor([0.0, -0.0, 1.5, -2.0, clew.inf, -clew.inf, clew.nan] * 9).to(
        getattr(clew, dtype)
    )
    for part in (x, x[::2], x[1:4]):
        assert (-part).equal((-part.float()).to(part.dtype)) or part.isnan().any()
        for got, want in ((-part, -part.float()), (part.abs(), part.float().abs())):
            np.testing.assert_array_equal(got.float().numpy(), want.numpy())
            np.testing.assert_array_equal(
                np.signbit(got.float().numpy())[~part.isnan().numpy()],
                np.signbit(want.numpy())[~part.isnan().numpy()],
            )


@pytest.mark.parametrize("source", ["bool", "float32", "float64", "int16", "int8"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_casts_of_rows_and_of_strided_elements(source, target):
    values = np.array([0, 1, 2, 100, -3, 127, -128, 255, 300, 40000, -70000.6, 3e9] * 70)
    if source.startswith("float"):
        values[5:9] = [np.inf, -np.inf, 1e30, 2.5]
    else:
        values = values.astype(np.int64)
    x = clew.from_numpy(values).to(getattr(clew, source))
    for part in (x, x[::3], x[5:9], x[:1].expand(100)):
        got = part.to(getattr(clew, target))
        want = clew.stack([v.to(getattr(clew, target)) for v in part])
        assert got.equal(want)


def test_layouts_that_go_another_way():
    x = clew.arange(70.0 * 80).reshape(70, 80)
    for y in (
        x.t(),
        x.reshape(7, 10, 80).permute(2, 0, 1),
        x[:1].expand(70, 80),
        x[:, :1].expand(70, 80),
    ):
        a = y.numpy()
        for d in range(y.ndim):
            np.testing.assert_array_equal(y.flip(d).numpy(), np.flip(a, d))
            np.testing.assert_allclose(
                y.cumsum(d).numpy(), a.cumsum(d, dtype=np.float64), rtol=1e-6
            )
            np.testing.assert_allclose(
                (y / 5600 + 0.9).cumprod(d).numpy(),
                (a / 5600 + 0.9).cumprod(d, dtype=np.float64),
                rtol=1e-4,
            )
            np.testing.assert_allclose(y.sum(d).numpy(), a.sum(d, dtype=np.float64), rtol=1e-6)
            np.testing.assert_array_equal(y.amax(d).numpy(), a.max(d))
        assert y.flip(0).stride() == y.clone().stride()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.3, 0.5), (1, 0.5), (2, 0), (-1, 1), (0, 2), (clew.nan, 1), (1, clew.inf)]
)
def test_large_products_of_16_bit_floats_with_factors(alpha, beta, dtype):
    def draw(rows, columns):
        return clew.from_numpy(r.standard_normal((rows, columns))).to(getattr(clew, dtype))

    r = np.random.default_rng(0)
    a, b, c = draw(512, 520), draw(520, 515), draw(512, 515)
    want = alpha * (a.double() @ b.double()) + (beta * c.double() if beta else 0)
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            got = clew.addmm(c, left, right, alpha=alpha, beta=beta).double()
            assert (got.isnan() == want.isnan()).all()
            if want.isfinite().all():
                assert (got - want).abs().max() < want.abs().max() * 2**-8
