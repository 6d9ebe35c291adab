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
