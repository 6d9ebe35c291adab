"""Loops of integers, casts and complex numbers beside NumPy, around the sizes of their vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import clew
from samples import INTS

R = np.random.default_rng(3)
SIZES = [1, 7, 8, 255, 256, 257, 1000]


def integers(dtype: str, n: int, low: int | None = None) -> np.ndarray:
    limits = np.iinfo(dtype)
    low = limits.min if low is None else max(low, limits.min)
    return R.integers(low, limits.max, n, dtype=dtype, endpoint=True)


def layouts(a: np.ndarray) -> list[clew.Tensor]:
    """The same numbers, dense and not."""
    wide = np.repeat(a, 2)
    return [clew.tensor(a), clew.tensor(wide)[::2]]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("kind", ["all", "small", "edge"])
def test_quotients_and_rests(dtype: str, n: int, kind: str) -> None:
    a, b = integers(dtype, n), integers(dtype, n)
    if kind == "small":
        a, b = (a % 100).astype(dtype), (b % 7 + 1).astype(dtype)
    if kind == "edge" and dtype == "int64":  # doubles tell all of these apart, up to 2^51
        a = R.integers(-(2**51), 2**51, n)
        b = R.choice(np.array([3, -3, 2**50, -(2**50), 1, -1, 2**51 - 1]), n)
        a = a // b * b + R.integers(-1, 2, n)
    b[b == 0] = 3
    if dtype.startswith("int"):
        b[(b == -1) & (a == np.iinfo(dtype).min)] = 1  # NumPy warns of what wraps
    trunc = (np.abs(a.astype(object)) // np.abs(b.astype(object))) * np.where(
        (a < 0) == (b < 0), 1, -1
    )
    for x in layouts(a):
        for y in layouts(b):
            np.testing.assert_array_equal((x // y).numpy(), a // b)
            np.testing.assert_array_equal((x % y).numpy(), a % b)
            np.testing.assert_array_equal(clew.fmod(x, y).numpy(), np.fmod(a, b))
            found = clew.div(x, y, rounding_mode="trunc")
            np.testing.assert_array_equal(found.numpy(), trunc.astype(dtype))
    one = int(b[0])
    np.testing.assert_array_equal((clew.tensor(a) // one).numpy(), a // b[0])
    np.testing.assert_array_equal((clew.tensor(a) % one).numpy(), a % b[0])


@pytest.mark.parametrize("n", [3, 300])
def test_division_by_zero_is_an_error_wherever_it_stands(n: int) -> None:
    a, b = clew.arange(n), clew.ones(n, dtype=clew.int64)
    b[n - 1] = 0
    for f in (clew.floor_divide, clew.remainder, clew.fmod):
        with pytest.raises(RuntimeError, match="division or modulo by zero"):
            f(a, b)
        with pytest.raises(RuntimeError, match="division or modulo by zero"):
            f(a, clew.tensor(0))
    least = clew.tensor([-(2**63)] * n)
    assert (least // clew.tensor(-1)).tolist() == [-(2**63)] * n
    assert (least % clew.tensor(-1)).tolist() == [0] * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", INTS)
def test_integer_arithmetic(dtype: str, n: int) -> None:
    a, b = integers(dtype, n), integers(dtype, n)
    with np.errstate(over="ignore"):
        for x in layouts(a):
            for y in layouts(b):
                pairs = [
                    (x + y, a + b), (x - y, a - b), (x * y, a * b), (x & y, a & b), (x ^ y, a ^ b),
                    (x == y, a == b), (x < y, a < b), (x >= y, a >= b),
                    (clew.maximum(x, y), np.maximum(a, b)), (clew.fmin(x, y), np.minimum(a, b)),
                ]  # fmt: skip
                for got, want in pairs:
                    np.testing.assert_array_equal(got.numpy(), want)
                if dtype in ("int32", "int64"):
                    np.testing.assert_array_equal(
                        clew.add(x, y, alpha=3).numpy(), a + b * np.array(3, dtype)
                    )
            np.testing.assert_array_equal(x.clamp(3, 90).numpy(), np.clip(a, 3, 90))
            low, high = clew.tensor(np.minimum(a, b)), clew.tensor(np.maximum(a, b))
            got = clew.tensor(integers(dtype, n)).clamp(low, high)
            assert ((got >= low) & (got <= high)).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_shifts_by_any_count(dtype: str) -> None:
    width = np.iinfo(dtype).bits
    a = integers(dtype, 300)
    counts = np.array([0, 1, width - 1, width, width + 1, 100] * 50).astype(dtype)
    left = [(int(x) << int(c)) if c < width else 0 for x, c in zip(a, counts)]
    want = np.array([x % 2**width for x in left], dtype=object).astype(f"uint{width}").astype(dtype)
    right = np.array([int(x) >> int(c) for x, c in zip(a, counts)]).astype(dtype)
    for x in layouts(a):
        for c in layouts(counts):
            np.testing.assert_array_equal((x << c).numpy(), want)
            np.testing.assert_array_equal((x >> c).numpy(), right)


@pytest.mark.parametrize("n", [5, 512, 513, 1500])
@pytest.mark.parametrize("to", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_numbers_cut_to_integers(of: str, to: str, n: int) -> None:
    """Fractions towards zero; beyond 32 bits by way of int64, NaN as its least."""
    a = (R.standard_normal(n) * 1000).astype(of)
    for large in ([], [3e9, -5e12, 2147483648.0, 4294967296.0, -2147483648.0], [np.nan, np.inf]):
        b = np.concatenate([a, np.array(large, of)])
        R.shuffle(b)
        whole = np.where(np.isfinite(b), b, -(2.0**63)).astype(of).astype("int64")
        for x in layouts(b):
            got = x.to(getattr(clew, to)).numpy()
            np.testing.assert_array_equal(got, whole.astype(to))


@pytest.mark.parametrize("n", [1, 3, 8, 100])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_sums_and_products(dtype: str, n: int) -> None:
    real = R.standard_normal((4, n)).astype("float32" if dtype == "complex64" else "float64")
    a, b = real[0] + 1j * real[1], real[2] + 1j * real[3]
    close = {"rtol": 1e-5 if dtype == "complex64" else 1e-13, "atol": 1e-6}
    for x in layouts(a.astype(dtype)):
        for y in layouts(b.astype(dtype)):
            np.testing.assert_array_equal((x + y).numpy(), a + b)
            np.testing.assert_array_equal((x - y).numpy(), a - b)
            np.testing.assert_allclose((x * y).numpy(), a * b, **close)
            got = clew.add(x, y, alpha=2 - 1j).numpy()
            np.testing.assert_allclose(got, a + (2 - 1j) * b, **close)
    x = clew.tensor(a.astype(dtype))
    x *= x
    np.testing.assert_allclose(x.numpy(), a * a, **close)


@pytest.mark.parametrize("shape, dim", [((300, 70), 0), ((4, 33, 129), 1), ((2, 3), 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_places_of_extrema_of_columns(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    a = R.integers(0, 9, shape).astype(dtype)  # many ties: the first counts
    if "float" in dtype:
        a.reshape(-1)[[1, 5]] = np.nan  # and NaN above all
    for x in (clew.tensor(a), clew.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))).mT):
        np.testing.assert_array_equal(x.argmax(dim).numpy(), np.argmax(a, dim))
        np.testing.assert_array_equal(x.argmin(dim).numpy(), np.argmin(a, dim))
        values, places = x.max(dim)
        np.testing.assert_array_equal(values.numpy(), a.max(dim))
        np.testing.assert_array_equal(places.numpy(), np.argmax(a, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape, dim", [((100_000,), 0), ((33, 500), 1), ((500, 33), 0)])
def test_sums_of_what_is_there(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    a = R.standard_normal(shape).astype(dtype)
    a[R.random(shape) < 0.2] = np.nan
    want = np.nansum(a.astype("float64"), dim)
    np.testing.assert_allclose(clew.tensor(a).nansum(dim).numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("source", [clew.float16, clew.bfloat16, clew.float32, clew.float64])
def test_sums_of_what_is_there_as_another_dtype(source: clew.dtype) -> None:
    x = clew.tensor([[1.5, math.nan], [1.75, 300], [math.nan, math.nan]], dtype=source)
    for dtype in (clew.int64, clew.int32, clew.uint8, clew.bool, clew.float64):
        there = x.nan_to_num(0).to(dtype)
        for view in (x, x.t(), x[::2], x.expand(2, 3, 2)):
            want = view.nan_to_num(0).to(dtype).sum(0, dtype=dtype)
            assert view.nansum(0, dtype=dtype).tolist() == want.tolist()
        assert x.nansum(dtype=dtype).item() == there.sum(dtype=dtype).item()
    for shape in ((3, 2), (0,)):
        with pytest.raises(RuntimeError, match="nansum: dtype must be real; got complex64"):
            clew.ones(shape, dtype=source).nansum(dtype=clew.complex64)


@pytest.mark.parametrize("n", [1, 17, 4096, 4097, 300_000, 3_000_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_dot_products(n: int, dtype: str) -> None:
    whole = dtype == "int64"
    a, b = (
        R.integers(-(2**40), 2**40, n) if whole else R.standard_normal(n).astype(dtype)
        for _ in "ab"
    )
    want = np.dot(a, b) if whole else np.dot(a.astype("float64"), b.astype("float64"))
    before = clew.get_num_threads()
    for threads in (1, 2, 3):
        clew.set_num_threads(threads)
        got = clew.dot(clew.tensor(a), clew.tensor(b)).item()
        if whole:
            assert got == want
        else:
            np.testing.assert_allclose(got, want, rtol=0, atol=3e-7 * n**0.5 + 1e-7)
    clew.set_num_threads(before)


@pytest.mark.parametrize("dtype, bits", [("float32", "uint32"), ("float64", "uint64")])
def test_next_numbers(dtype: str, bits: str) -> None:
    a, b = (integers(bits, 50_000).view(dtype) for _ in "ab")
    b[::7] = a[::7]
    a[:50], a[20:30], b[10:25], b[25:40] = 0.0, -0.0, 0.0, -0.0
    a[100:120], b[110:130] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        want = np.nextafter(a, b)
    got = clew.nextafter(clew.tensor(a), clew.tensor(b)).numpy()
    same = (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))
    assert same.all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5,), (100,), (1000,), (37, 2049), (300, 70), (3, 33, 129)])
def test_complex_sums_over_any_dim(dtype: str, shape: tuple[int, ...]) -> None:
    z = (R.standard_normal(shape) + 1j * R.standard_normal(shape)).astype(dtype)
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == "complex64" else {"rtol": 1e-11, "atol": 1e-10}
    for t in (clew.tensor(z), clew.tensor(np.repeat(z, 2, -1))[..., ::2]):
        np.testing.assert_allclose(t.sum().numpy(), z.astype("complex128").sum(), **close)
        for dim in range(len(shape)):
            np.testing.assert_allclose(t.sum(dim).numpy(), z.astype("complex128").sum(dim), **close)
    sizes = clew.tensor(z).abs().numpy()
    np.testing.assert_allclose(sizes, np.abs(z), rtol=1e-6)
    np.testing.assert_allclose(clew.sgn(clew.tensor(z)).numpy(), z / np.abs(z), rtol=1e-5)


def test_sizes_of_complex_numbers_at_the_edges() -> None:
    huge, tiny, inf, nan = 3e38, 1e-42, float("inf"), float("nan")
    z = np.array(
        [0, -0.0, huge, complex(huge, huge) / 2, tiny, complex(tiny, -tiny), complex(inf, nan)]
    )
    got = clew.tensor(z.astype("complex64")).abs().numpy()
    np.testing.assert_allclose(got, np.abs(z.astype("complex64")), rtol=1e-6, atol=1.5e-45)
    assert np.isnan(clew.tensor([complex(nan, 1)]).abs().item())
    assert clew.sgn(clew.tensor([0j, 3 + 4j])).tolist() == [0j, clew.tensor(0.6 + 0.8j).item()]


PARTS = {
    "complex64": [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e30, 1e-30, 3e38, 1e-45],
    "complex128": [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, 1.7e308, 5e-324],
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_quotient_does_not_depend_on_its_row(dtype: str) -> None:
    """Rows go by the definition and step aside for what leaves the range."""
    values = np.array([complex(a, b) for a in PARTS[dtype] for b in PARTS[dtype]]).astype(dtype)
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    rows = (clew.tensor(a) / clew.tensor(b)).numpy()
    for i in range(0, len(a), 11):
        one = (clew.tensor(a[i : i + 1]) / clew.tensor(b[i : i + 1])).numpy()
        np.testing.assert_array_equal(rows[i : i + 1], one)
    assert (clew.tensor([1 + 1j, 1j]) / 0).tolist()[0] == complex(np.inf, np.inf)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_of_any_size(dtype: str) -> None:
    single = dtype == "complex64"
    spread = 15 if single else 140
    a, b = (
        R.standard_normal((2, 3000)) * 10.0 ** R.uniform(-spread, spread, (2, 3000)) for _ in "ab"
    )
    x, y = (part[0] + 1j * part[1] for part in (a, b))
    x, y = x.astype(dtype), y.astype(dtype)
    want = x.astype(np.clongdouble) / y.astype(np.clongdouble)
    p, q = clew.tensor(x), clew.tensor(y)
    got = (p / q).numpy()
    info = np.finfo(dtype)
    kept = (abs(want) < float(info.max) / 4) & (abs(want) > float(info.tiny) * 4)
    assert kept.sum() > 2000
    assert (abs(got - want)[kept] <= 4 * info.eps * abs(want)[kept]).all()
    # Whatever the layout, in place, and with one number for all.
    turned = p.reshape(50, 60).t() / q.reshape(50, 60).t()
    np.testing.assert_array_equal(turned.numpy(), got.reshape(50, 60).T)
    np.testing.assert_array_equal((p[::3] / q[::3]).numpy(), got[::3])
    np.testing.assert_array_equal(p.clone().div_(q).numpy(), got)
    np.testing.assert_array_equal(clew.div(p, q, out=q.clone()).numpy(), got)
    np.testing.assert_array_equal((p / q[7]).numpy(), (p / q[7].repeat(3000)).numpy())
    np.testing.assert_array_equal((p * q[7]).numpy(), (p * q[7].repeat(3000)).numpy())
    np.testing.assert_array_equal((p[7] - q).numpy(), (p[7].repeat(3000) - q).numpy())
