"""Many short lines, which are sorted side by side: order, places of equals, NaN."""

from __future__ import annotations

import numpy as np
import pytest

import clew

DTYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "uint16",
    "uint32",
    "uint64",
]
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 32, 33, 48, 64, 100, 127, 128, 129, 200, 256, 257]


def lines(dtype: str, rows: int, width: int) -> tuple[clew.Tensor, np.ndarray]:
    """Lines with many equal elements, and the same as numbers that NumPy sorts in our order."""
    rng = np.random.default_rng(rows * 1000 + width)
    kind = getattr(clew, dtype)
    if kind.is_floating_point:
        values = rng.integers(-8, 8, (rows, width)) / 4 * rng.choice([1.0, -1.0], (rows, width))
        for value in (np.nan, np.inf, -np.inf, -0.0):
            values[rng.random((rows, width)) < 0.05] = value
        x = clew.tensor(values, dtype=kind)
        return x, np.where(np.isnan(values), np.nan, values + 0.0)
    info = {"bool": (0, 2)}.get(dtype) or (clew.iinfo(kind).min, clew.iinfo(kind).max)
    values = rng.integers(0, 12, (rows, width)) - (0 if dtype.startswith(("u", "b")) else 6)
    if dtype == "bool":
        values %= 2
    whole = values.astype(object)
    whole[rng.random((rows, width)) < 0.1] = info[0]
    if dtype != "bool":
        whole[rng.random((rows, width)) < 0.1] = info[1]
    of = np.uint64 if dtype.startswith("u") else np.int64
    x = clew.tensor(whole.astype(of)).to(kind)
    return x, whole.astype(of)


def places(x: np.ndarray, descending: bool) -> np.ndarray:
    """Stable, NaN the greatest."""
    if not descending:
        return np.argsort(x, axis=1, kind="stable")
    rows = [[(v == v, 0 if v != v else -v) for v in row] for row in x.tolist()]
    return np.array([sorted(range(len(row)), key=row.__getitem__) for row in rows])


def same(a: clew.Tensor, b: clew.Tensor) -> bool:
    return a.shape == b.shape and repr(a.tolist()) == repr(b.tolist())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype: str, width: int):
    for rows in (1, 3, 4, 8, 21):
        x, numbers = lines(dtype, rows, width)
        for descending in (False, True):
            want = clew.tensor(places(numbers, descending))
            values, found = x.sort(1, descending=descending)
            assert clew.equal(found, want)
            assert same(values, x.gather(1, want))
            # Down the columns, and of other strides.
            down, found = x.T.contiguous().sort(0, descending=descending)
            assert clew.equal(found.T, want)
            assert same(down.T, values)
            wide = clew.stack([x, x], 2).reshape(rows, -1)[:, ::2]
            assert clew.equal(wide.argsort(1, descending=descending, stable=True), want)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32", "uint8"])
def test_topk_and_kthvalue(dtype: str, width: int):
    for rows in (2, 9, 16):
        x, numbers = lines(dtype, rows, width)
        order = {largest: clew.tensor(places(numbers, largest)) for largest in (False, True)}
        for k in {1, 2, 3, 5, 8, 9, 13, width} - set(range(width + 1, 14)):
            for largest in (False, True):
                values, found = x.topk(k, 1, largest=largest)
                want = order[largest][:, :k]
                assert same(values, x.gather(1, want))
                assert same(x.gather(1, found), values)
                assert all(len(set(row)) == k for row in found.tolist())
            value, found = x.kthvalue(k, 1)
            assert same(value, x.gather(1, order[False][:, k - 1 : k])[:, 0])
            assert same(x.gather(1, found[:, None])[:, 0], value)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int16", "bool"])
def test_median_and_mode(dtype: str, width: int):
    for rows in (1, 6, 24):
        x, numbers = lines(dtype, rows, width)
        for name in ("median", "nanmedian", "mode"):
            if dtype == "bool" and name != "mode":
                continue
            values, found = getattr(x, name)(1)
            assert same(x.gather(1, found[:, None])[:, 0], values)
            for row, value in zip(numbers, values.tolist(), strict=True):
                nan = row != row
                kept = np.sort(row[~nan])
                if name == "mode":
                    counts = {v: int((row == v).sum()) for v in kept}
                    if nan.any():
                        counts[float("nan")] = int(nan.sum())
                    most = max(counts.values())
                    best = [v for v, n in counts.items() if n == most]
                    want = min((v for v in best if v == v), default=float("nan"))
                elif nan.any() and (name == "median" or nan.all()):
                    want = float("nan")
                else:
                    want = kept[(len(kept) - 1) // 2]
                assert value == want or (value != value and want != want)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("width", [2, 3, 8, 15, 16, 31, 33, 63, 64, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "float16", "uint8"])
def test_extrema_of_short_rows(dtype: str, width: int, largest: bool):
    for rows in (15, 16, 64, 150):
        x, numbers = lines(dtype, rows, width)
        values, found = (x.max if largest else x.min)(1)
        want = []
        for row in numbers.tolist():
            nans = [i for i, v in enumerate(row) if v != v]
            best = max(row) if largest else min(row)
            want.append(nans[0] if nans else row.index(best))
        assert found.tolist() == want
        assert same(values, x.gather(1, found[:, None])[:, 0])
        assert clew.equal((x.argmax if largest else x.argmin)(1), found)
        three = x.reshape(rows, 1, width).expand(rows, 2, width)
        assert clew.equal(
            three.argmax(2) if largest else three.argmin(2), found[:, None].expand(rows, 2)
        )


def test_networks_sort_every_pattern():
    """Zeros and ones in every order: what sorts these, sorts all (the 0-1 principle)."""
    for width in range(2, 13):
        x = (clew.arange(1 << width)[:, None] >> clew.arange(width)) & 1
        for dtype in (clew.float32, clew.int64):
            values, found = x.to(dtype).sort(1)
            assert clew.equal(values.sum(1), x.to(dtype).sum(1))
            assert bool((values[:, 1:] >= values[:, :-1]).all())
            ties = values[:, 1:] == values[:, :-1]
            assert bool((found[:, 1:] > found[:, :-1])[ties].all())
