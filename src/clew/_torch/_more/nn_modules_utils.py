"""Sizes of which some are left open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """Sizes with those of the input, its last, where they are None."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[len(defaults) - len(out_size) :]
    return [own if size is None else size for size, own in zip(out_size, last)]
