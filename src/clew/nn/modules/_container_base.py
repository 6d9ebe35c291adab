"""What containers of modules and of parameters share."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


def _position(idx: Any, length: int) -> int:
    idx = operator.index(idx)
    if not -length <= idx < length:
        raise IndexError(f"index {idx} is out of range")
    return idx % length


def _pairs(where: str, items: Any) -> list[tuple[Any, Any]]:
    if hasattr(items, "items"):
        return list(items.items())
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{where.replace(' ', '.')} should be called with an iterable of key/value pairs, "
            "but got " + type(items).__name__
        )
    found = []
    for j, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{where} sequence element #{j} should be Iterable; is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{where} sequence element #{j} has length {len(pair)}; 2 is required")
        found.append(pair)
    return found
