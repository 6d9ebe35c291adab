"""Running sums down columns that lie side by side: long ones go past the caches."""

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
