"""Questions about dtypes and layouts that libraries ask here."""

from __future__ import annotations

from typing import Any

import clew


def is_contiguous_or_false(a: Any) -> bool:
    """Whether a tensor's elements lie one after another."""
    return bool(a.is_contiguous())


is_contiguous = is_contiguous_or_false


def is_boolean_dtype(dtype: Any) -> bool:
    """Whether it is bool."""
    return dtype is clew.bool


def is_float_dtype(dtype: Any) -> bool:
    """Whether it holds floating-point numbers."""
    return bool(dtype.is_floating_point)


def is_complex_dtype(dtype: Any) -> bool:
    """Whether it holds complex numbers."""
    return bool(dtype.is_complex)


def is_integer_dtype(dtype: Any) -> bool:
    """Whether it holds whole numbers; bool does not."""
    return not (dtype is clew.bool or dtype.is_floating_point or dtype.is_complex)
