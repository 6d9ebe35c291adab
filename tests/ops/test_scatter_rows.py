"""Scatters whose index is one vector for whole rows, as message passing has it."""

from __future__ import annotations

import numpy as np
import pytest

import clew

REDUCE = {
    "sum": (0.0, np.add),
    "mean": (0.0, np.add),
    "prod": (1.0, np.multiply),
    "amax": (-np.inf, np.maximum),
    "amin": (np.inf, np.minimum),
}


def reduced(
    x: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, reduce: str, include_self: bool
) -> np.ndarray:
    first, join = REDUCE[reduce]
    out, count = x.copy(), np.ones(x.shape)
    places = [(*p[:dim], index[p], *p[dim + 1 :]) for p in np.ndindex(index.shape)]
    if not include_self:
        for place in places:
            out[place], count[place] = first, 0
    for at, place in zip(np.ndindex(index.shape), places, strict=True):
        out[place] = join(out[place], src[at])
        count[place] += 1
    return out / np.maximum(count, 1) if reduce == "mean" else out


@pytest.mark.parametrize("reduce", REDUCE)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("shape", "dim", "count", "smaller"),
    [
        ((5, 9), 0, 30, 0),
        ((5, 9), 0, 30, 1),  # the last column has no index
        ((9, 5), 1, 30, 0),
        ((3, 4, 20), 1, 7, 0),
        ((3, 4, 20), 0, 7, 2),
        ((3, 4, 20), 2, 40, 0),
        ((6, 1, 8), 0, 1, 0),
        ((6, 8), 0, 0, 0),
        ((7,), 0, 12, 0),
    ],
)
def test_whole_rows(
    shape: tuple[int, ...], dim: int, count: int, smaller: int, include_self: bool, reduce: str
) -> None:
    random = np.random.default_rng(len(shape) + count)
    x = random.standard_normal(shape)
    sizes = [count if d == dim else n - (smaller and n > 1) for d, n in enumerate(shape)]
    line = random.integers(0, shape[dim], count).reshape(
        [count if d == dim else 1 for d in range(len(shape))]
    )
    src = random.standard_normal(sizes)
    if src.size > 10:
        src.flat[[3, 8]] = np.nan
    expanded = clew.tensor(line).expand(sizes)
    want = reduced(x, dim, np.broadcast_to(line, sizes), src, reduce, include_self)
    for index in (expanded, expanded.contiguous(), expanded.int()):
        got = clew.tensor(x).scatter_reduce(
            dim, index, clew.tensor(src), reduce, include_self=include_self
        )
        assert np.allclose(got.numpy(), want, rtol=1e-12, atol=1e-12, equal_nan=True)
        written = clew.tensor(x)
        written.scatter_reduce_(dim, index, clew.tensor(src), reduce, include_self=include_self)
        assert np.array_equal(written.numpy(), got.numpy(), equal_nan=True)
        # The last of those that meet stays.
        last = x.copy()
        for at in np.ndindex(*sizes):
            last[(*at[:dim], np.broadcast_to(line, sizes)[at], *at[dim + 1 :])] = src[at]
        assert np.array_equal(
            clew.tensor(x).scatter(dim, index, clew.tensor(src)).numpy(), last, equal_nan=True
        )


@pytest.mark.parametrize("reduce", REDUCE)
@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16, clew.int16, clew.uint8])
def test_rows_of_other_dtypes(dtype: clew.dtype, reduce: str) -> None:
    x = clew.randint(1, 4, (6, 16)).to(dtype)
    src = clew.randint(1, 4, (4, 16)).to(dtype)
    index = clew.tensor([[1], [5], [1], [2]]).expand(4, 16)
    got = x.scatter_reduce(0, index, src, reduce)
    want = reduced(
        x.double().numpy(), 0, index.numpy(), src.double().numpy(), reduce, include_self=True
    )
    if not dtype.is_floating_point:
        want = np.floor(want)
    assert got.dtype == dtype and np.allclose(got.double().numpy(), want, rtol=1e-2)


def test_an_index_out_of_range_is_named() -> None:
    index = clew.tensor([[0], [7]]).expand(2, 16)
    for reduce in REDUCE:
        with pytest.raises(
            RuntimeError, match="index 7 is out of bounds for dimension 0 with size 3"
        ):
            clew.zeros(3, 16).scatter_reduce(0, index, clew.ones(2, 16), reduce)
    with pytest.raises(RuntimeError, match="index 7 is out of bounds"):
        clew.zeros(3, 16).scatter(0, index, clew.ones(2, 16))
