"""The greatest of long lines many of whose elements are equal."""

import pytest

import clew


@pytest.mark.parametrize(
    "dtype", [clew.float32, clew.float64, clew.int64, clew.uint8, clew.bfloat16]
)
@pytest.mark.parametrize("kinds", [1, 2, 5, 40])
@pytest.mark.parametrize(("length", "k"), [(300, 1), (3000, 5), (5000, 60), (40000, 3)])
def test_ties(length, k, kinds, dtype):
    x = clew.randint(0, kinds, (3, length)).to(dtype)
    x[1, length // 2] = kinds + 1  # one that is alone
    for largest in (True, False):
        values, places = x.topk(k, largest=largest)
        want = x.sort(1, descending=largest)[0][:, :k]
        assert clew.equal(values, want)
        assert clew.equal(x.gather(1, places), values)
        for row in places.tolist():
            assert len(set(row)) == k
        loose = x.topk(k, largest=largest, sorted=False)[0]
        assert clew.equal(loose.sort(1, descending=largest)[0], want)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 0.0])
def test_lines_of_one_value(value):
    x = clew.full((2, 4000), value)
    for largest in (True, False):
        values, places = x.topk(7, largest=largest)
        assert clew.equal(values.isnan(), x[:, :7].isnan())
        assert clew.equal(values.nan_to_num(3), x[:, :7].nan_to_num(3))
        assert all(len(set(row)) == 7 for row in places.tolist())
