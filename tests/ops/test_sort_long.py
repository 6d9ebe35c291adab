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
    return r.integers(*{"few": (-50, 50), "wide": (-(2**62), 2**62)}[kind], n)


@pytest.mark.parametrize("n", [256, 16384, 200_001])
@pytest.mark.parametrize("kind", ["floats", "equal", "few", "wide"])
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
