"""searchsorted and bucketize: eight searches side by side, of any length, beside NumPy's."""

import numpy as np
import pytest

import clew

DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8"]


def numbers(rng, n, dtype):
    """With many equal ones."""
    if "int" in dtype:
        return rng.integers(0, 20, n).astype(dtype)
    x = rng.choice([-np.inf, np.inf, -0.0, 0.0, 1.5, *rng.normal(size=12)], n)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", [False, True])
def test_every_length_of_row(dtype, right):
    rng = np.random.default_rng(0)
    side = "right" if right else "left"
    for length in [*range(20), 31, 32, 33, 1000]:
        row = np.sort(numbers(rng, length, dtype))
        values = numbers(rng, 37, dtype)
        expected = np.searchsorted(row, values, side)
        got = clew.searchsorted(clew.from_numpy(row), clew.from_numpy(values), right=right)
        assert got.tolist() == expected.tolist(), length
        got = clew.bucketize(
            clew.from_numpy(values), clew.from_numpy(row), out_int32=True, right=right
        )
        assert got.dtype is clew.int32 and got.tolist() == expected.tolist()


@pytest.mark.parametrize("right", [False, True])
def test_nan_comes_last(right):
    row = np.array([-1.0, 2.0, 2.0, np.nan, np.nan], dtype=np.float32)
    values = np.array([np.nan, 3.0, 2.0, -5.0, np.inf], dtype=np.float32)
    got = clew.searchsorted(clew.from_numpy(row), clew.from_numpy(values), right=right)
    assert got.tolist() == ([5, 3, 3, 0, 3] if right else [3, 3, 1, 0, 3])


@pytest.mark.parametrize("with_sorter", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_of_their_own(threads, with_sorter):
    rng = np.random.default_rng(1)
    rows, values = rng.normal(size=(70, 33)), rng.normal(size=(70, 1001))
    order = rows.argsort(1)
    given = rows if with_sorter else np.take_along_axis(rows, order, 1)
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(threads)
        got = clew.searchsorted(
            clew.from_numpy(given),
            clew.from_numpy(values),
            sorter=clew.from_numpy(order) if with_sorter else None,
        )
    finally:
        clew.set_num_threads(before)
    for row, value, places in zip(np.sort(rows, 1), values, got.numpy(), strict=True):
        np.testing.assert_array_equal(places, np.searchsorted(row, value))


@pytest.mark.parametrize("dtype", [clew.uint8, clew.int64, clew.float16, clew.float32])
def test_truth_values_beside_numbers(dtype):
    truths, numbers = clew.tensor([True, False, True]), clew.tensor([1, 0, 1]).to(dtype)
    edges = clew.tensor([0, 1])
    for values, bounds in ((truths, edges.to(dtype)), (numbers, edges.bool())):
        assert clew.bucketize(values, bounds).tolist() == [1, 0, 1]
        assert clew.searchsorted(bounds, values, right=True).tolist() == [2, 1, 2]
    with pytest.raises(NotImplementedError, match="not implemented for bool"):
        clew.bucketize(truths, edges.bool())
