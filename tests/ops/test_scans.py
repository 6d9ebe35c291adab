"""Running sums down columns that lie side by side and along rows: large ones go past the caches."""

import numpy as np
import pytest

import clew

# Rows, columns: below and above the size from which rows are streamed, whole lines and odd ends.
SHAPES = [(3, 16), (300, 1024), (300, 1040), (257, 2051), (1100, 2048)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_sums_down_columns(shape: tuple[int, int], dtype: type) -> None:
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    t = clew.from_numpy(x)
    want = np.cumsum(x.astype(np.float64), axis=0)
    np.testing.assert_array_equal(clew.cumsum(t, 0).numpy(), want)
    # Rows that do not begin where a line of memory does, and every other column.
    np.testing.assert_array_equal(clew.cumsum(t[:, 1:], 0).numpy(), want[:, 1:])
    np.testing.assert_array_equal(clew.cumsum(t[:, ::2], 0).numpy(), want[:, ::2])
    out = clew.full((shape[0] + 2, shape[1] + 3), 7, dtype=t.dtype)
    inner = out[1:-1, 1:-2]
    clew.cumsum(t, 0, out=inner)
    np.testing.assert_array_equal(inner.numpy(), want)
    assert (out[0] == 7).all() and (out[-1] == 7).all()
    assert (out[:, 0] == 7).all() and (out[:, -2:] == 7).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_run_upwards(shape: tuple[int, int]) -> None:
    g = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
    x = clew.zeros(*shape, requires_grad=True)
    x.cumsum(0).backward(clew.from_numpy(g))
    np.testing.assert_array_equal(x.grad.numpy(), np.cumsum(g[::-1], axis=0)[::-1])


def test_in_place() -> None:
    x = clew.ones(1024, 1024)
    x.cumsum_(0)
    np.testing.assert_array_equal(x.numpy(), np.arange(1, 1025.0)[:, None].repeat(1024, 1))


# Rows, columns: odd ends, many rows, and few long ones, which threads share.
LINES = [(3, 31), (3, 32), (5, 47), (7, 1000), (2100, 4096), (1, (9 << 20) + 37), (2, 5 << 20)]


@pytest.mark.parametrize("shape", LINES)
def test_sums_along_rows(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).integers(-3, 4, shape).astype(np.float32)
    t = clew.from_numpy(x).requires_grad_()
    want = np.cumsum(x.astype(np.float64), axis=1)
    np.testing.assert_array_equal(t.cumsum(1).detach().numpy(), want)
    with clew.no_grad():
        np.testing.assert_array_equal(t[:, 1:].cumsum(1).numpy(), want[:, 1:] - x[:, :1])
    t.cumsum(1).backward(t.detach())
    back = np.cumsum(x[:, ::-1].astype(np.float64), axis=1)[:, ::-1]
    np.testing.assert_array_equal(t.grad.numpy(), back)
    whole = clew.from_numpy(x.copy())
    assert clew.equal(whole.cumsum_(1), clew.from_numpy(want.astype(np.float32)))


@pytest.mark.parametrize("at", [0, 5, 8, 63, 100, 129])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_reaches_only_later_places(at: int, value: float) -> None:
    x = np.ones(130, np.float32)
    x[at] = value
    np.testing.assert_array_equal(clew.from_numpy(x).cumsum(0).numpy(), np.cumsum(x))
    np.testing.assert_array_equal(clew.zeros(40).neg().cumsum(0).signbit().numpy(), False)


def test_long_sums_keep_their_digits() -> None:
    x = np.random.default_rng(3).random(1 << 20, np.float32)
    want = np.cumsum(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_almost_equal_nulp(clew.from_numpy(x).cumsum(0).numpy(), want, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_extrema(dtype: str, largest: bool, dim: int) -> None:
    x = clew.from_numpy(np.random.default_rng(1).integers(0, 99, (40, 50))).to(getattr(clew, dtype))
    if x.is_floating_point():
        x[7, 9] = x[30, 9] = x[7, 40] = float("nan")
    values, places = (clew.cummax if largest else clew.cummin)(x, dim)
    wide = x.double().numpy()
    run = np.maximum if largest else np.minimum
    want = run.accumulate(wide, dim)
    np.testing.assert_array_equal(values.double().numpy(), want)
    # The last of the places so far that hold the extremum.
    counts = np.arange(x.shape[dim]).reshape((-1, 1) if dim == 0 else (1, -1))
    reached = (wide == want) | np.isnan(wide)
    last = np.maximum.accumulate(np.where(reached, counts, 0), dim)
    np.testing.assert_array_equal(places.numpy(), last)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float32", "bool"])
@pytest.mark.parametrize("dim", [0, 1])
def test_sums_and_extrema_at_indices(dtype: str, dim: int) -> None:
    rng = np.random.default_rng(2)
    x, source = (rng.integers(0, 2 if dtype == "bool" else 100, (70, 80)) for _ in range(2))
    x, source = x.astype(dtype), source.astype(dtype)
    row = rng.integers(0, x.shape[dim], x.shape[dim])
    want = x.copy()
    np.add.at(want, (row,) if dim == 0 else (slice(None), row), source)
    a, b = clew.from_numpy(x), clew.from_numpy(source)
    np.testing.assert_array_equal(a.index_add(dim, clew.from_numpy(row), b).numpy(), want)
    index = rng.integers(0, x.shape[dim], x.shape)
    places = list(np.ogrid[:70, :80])
    places[dim] = index
    for name, function in (("amax", np.maximum), ("amin", np.minimum)):
        if dtype == "bool":
            continue
        want = x.copy()
        function.at(want, tuple(places), source)
        got = a.scatter_reduce(dim, clew.from_numpy(index), b, name)
        np.testing.assert_array_equal(got.numpy(), want)
