"""Reductions of masked elements where too few are left."""

from __future__ import annotations

import math

import pytest

import clew
from clew import masked


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_of_too_few(name: str) -> None:
    x = clew.tensor([[1.0, 5.0, 9.0], [1.0, 5.0, 9.0], [1.0, 5.0, 9.0]])
    mask = clew.tensor([[True, False, False], [True, True, False], [False, False, False]])
    spread = getattr(masked, name)
    one, two, none = spread(x, 1, mask=mask).tolist()
    assert math.isnan(one) and math.isnan(none)
    assert two == pytest.approx(8.0 if name == "var" else math.sqrt(8.0))
    assert spread(x, 1, unbiased=False, mask=mask)[0].item() == 0.0
    # More is taken away than there is: nothing is left to divide by, rather than a negative number.
    assert spread(x, 1, correction=3, mask=mask)[1].item() == math.inf


def test_dtype_of_places_is_that_of_the_result() -> None:
    x = clew.tensor([[0.25, 0.75, 0.5], [-0.25, -0.75, 0.9]])
    mask = clew.tensor([[True, True, True], [True, True, False]])
    for dtype in (clew.int64, clew.int32, clew.float64):
        high = masked.argmax(x, 1, dtype=dtype, mask=mask)
        low = masked.argmin(x, 1, dtype=dtype, mask=mask)
        assert high.dtype is low.dtype is dtype
        assert high.tolist() == [1, 0] and low.tolist() == [0, 1]
    assert masked.argmax(x, dtype=clew.int64).item() == 5


def test_a_median_goes_along_one_dimension() -> None:
    x = clew.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert masked.median(x, [0]).tolist() == [1.0, 2.0]
    for dim in (None, (0, 1), ()):
        with pytest.raises(ValueError, match=r"masked\.median: goes along one dimension; got dim="):
            masked.median(x, dim)
