"""What tests of autograd begin with."""

from __future__ import annotations

from typing import Any

import clew


def leaf(value: Any) -> clew.Tensor:
    """A leaf of float64 that wants a gradient."""
    return clew.tensor(value, dtype=clew.float64, requires_grad=True)
