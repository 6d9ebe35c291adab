"""Causal masks for queries and keys of different lengths."""

from __future__ import annotations

from typing import Any

import clew

__all__ = ["causal_lower_right", "causal_upper_left"]


def causal_upper_left(*size: int) -> Any:
    """A mask that lets query i see keys 0 to i.

    Args:
        size: queries and keys.

    Returns:
        (queries, keys) of bool.
    """
    rows, cols = _two(size)
    return clew.ones(rows, cols, dtype=clew.bool).tril()


def causal_lower_right(*size: int) -> Any:
    """A mask that lets the last query see all keys, and each earlier one a key less.

    Args:
        size: queries and keys.

    Returns:
        (queries, keys) of bool.
    """
    rows, cols = _two(size)
    return clew.ones(rows, cols, dtype=clew.bool).tril(cols - rows)


def _two(size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise RuntimeError(f"a causal mask has 2 dims; got {len(size)}")
    return size
