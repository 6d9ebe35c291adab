"""Lines long enough to be sorted on all threads: the orders numpy finds, for each thread count."""

from collections.abc import Iterator

import numpy as np
import pytest

import clew


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = clew.get_num_threads()
    clew.set_num_threads(request.param)
    yield request.param
    clew.set_num_threads(before)


def line(kind: str, n: int) -> np.ndarray:
    r = np.random.default_rng(n)
    if kind == "floats":
        a = r.standard_normal(n).astype(np.float32)
        a[::97], a[5], a[6], a[7], a[8] = np.nan, -0.0, 0.0, np.inf, -np.inf
        return a
    if kind == "equal":
        return np.full(n, 7)
    if kind == "doubles":
        return r.standard_normal(n)
    if kind == "clusters":  # most keys differ in their lowest digits alone
        return r.integers(-(2**62), 2**62, 5)[r.integers(0, 5, n)] + r.integers(0, 5000, n)
    if kind == "one far":  # no sample sees it, and without it all would be alike
        a = r.integers(0, 2**18, n)
        a[n // 2 + 1] = 2**61
        return a
    if kind == "extremes":
        a = r.integers(-(2**63), 2**63 - 1, n)
        a[3], a[n - 2] = -(2**63), 2**63 - 1
        return a
    if kind == "unsigned":
        return r.integers(0, 2**64 - 1, n, dtype=np.uint64)
    ranges = {
        "few": (-50, 50),
        "wide": (-(2**62), 2**62),
        "dense": (-n // 2, n),
        "sparse": (0, 40 * n),
    }
    return r.integers(*ranges[kind], n)


KINDS = ["floats", "equal", "few", "wide", "doubles", "clusters", "one far", "extremes"]


@pytest.mark.parametrize("n", [256, 16384, 200_001])
@pytest.mark.parametrize("kind", [*KINDS, "unsigned", "dense"])
def test_orders_of_long_lines(threads: int, kind: str, n: int) -> None:
    a = line(kind, n)
    t = clew.tensor(a)
    order = np.argsort(a, kind="stable")
    values, indices = t.sort(stable=True)
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), a[order])
    falling = t.sort(stable=True, descending=True)
    np.testing.assert_array_equal(falling[0].numpy(), a[order][::-1])
    for k in (1, n // 3, n):
        np.testing.assert_array_equal(t.kthvalue(k)[0].numpy(), a[order][k - 1])
    np.testing.assert_array_equal(t.topk(n // 3)[0].numpy(), a[order][::-1][: n // 3])


@pytest.mark.parametrize("k", [1, 7, 31])
@pytest.mark.parametrize("n", [32, 33, 993, 1000, 20_011])
@pytest.mark.parametrize("kind", ["floats", "equal", "few", "wide"])
@pytest.mark.parametrize("largest", [False, True])
def test_few_of_many(kind: str, n: int, k: int, largest: bool) -> None:
    """Ties by position, NaN above all, whether k is a small part of the line or not."""
    a = line(kind, n)
    a = np.stack([a, a[::-1]], 1)
    for t, dim in ((clew.tensor(a), 0), (clew.tensor(a.T.copy()), 1)):
        ordered = t.sort(dim, descending=largest, stable=True)
        first = t.topk(k, dim, largest)
        for found, wanted in zip(first, ordered, strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted.narrow(dim, 0, k).numpy())
        loose = t.topk(k, dim, largest, sorted=False)[1].sort(dim)[0]
        np.testing.assert_array_equal(loose.numpy(), first[1].sort(dim)[0].numpy())


@pytest.mark.parametrize("dtype", [None, np.int32, np.int16, np.uint8, bool])
@pytest.mark.parametrize("n", [1, 700, 200_001])
@pytest.mark.parametrize("kind", ["equal", "few", "dense", "sparse", "wide", "extremes", "floats"])
def test_distinct_elements(threads: int, kind: str, n: int, dtype: type | None) -> None:
    """By a set of bits or by sorting, with and without what needs the elements' places."""
    a = np.abs(line(kind, max(n, 10))[:n]) if kind == "floats" else line(kind, max(n, 10))[:n]
    if dtype:
        a = np.nan_to_num(a, posinf=99, neginf=0).astype(dtype)
    t = clew.tensor(a)
    values, places, counts = np.unique(
        a, return_inverse=True, return_counts=True, equal_nan=kind != "floats"
    )
    for inverse in (False, True):
        for count in (False, True):
            found = clew.unique(t, return_inverse=inverse, return_counts=count)
            found = list(found) if inverse or count else [found]
            np.testing.assert_array_equal(found.pop(0).numpy(), values)
            if inverse:  # which NaN is which, each of them being distinct, is nobody's business
                got, nan = found.pop(0).numpy(), a != a
                np.testing.assert_array_equal(got[~nan], places.reshape(-1)[~nan])
                assert len(np.unique(got[nan])) == nan.sum() and np.isnan(values[got[nan]]).all()
            if count:
                np.testing.assert_array_equal(found.pop(0).numpy(), counts)


def test_distinct_elements_keep_the_shape_of_places() -> None:
    a = np.arange(100_000).reshape(100, 1000) % 977
    values, places = clew.unique(clew.tensor(a).t(), return_inverse=True)
    assert places.shape == (1000, 100)
    np.testing.assert_array_equal(values[places].numpy(), a.T)
    assert clew.unique(clew.empty(0, 3, dtype=clew.int64)).shape == (0,)
    assert clew.unique(clew.empty(0), return_inverse=True)[1].shape == (0,)
