"""Sizes: amounts of memory as arguments (bytes, text such as "600 MB", or a fraction), and the
shape that shapes broadcast to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

__all__ = ["broadcast_sizes", "bytes_or_fraction"]

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MOST = (1 << 63) - 1  # no machine has more


def _bytes_of(who: str, text: str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if not found or (found[3] and not found[2]):
        raise ValueError(
            f"{who} {text!r} is no size; write one like '600 MB', '1.5 GiB' or 600000000"
        )
    unit = found[2].upper()
    return int(float(found[1]) * (_BINARY if found[3] else _UNITS)[unit])


def bytes_or_fraction(who: str, name: str, value: object, *, least: int) -> int | float:
    """An int of bytes, or a float above 0 and up to 1.0: a fraction.

    Args:
        who: the operation, for messages.
        name: the argument's name.
        value: an int, text like "600 MB", or a fraction.
        least: bytes.

    Raises:
        TypeError: something else.
        ValueError: text that is no size, fewer bytes, or a float that is neither whole bytes nor a
            fraction.
    """
    if isinstance(value, str):
        nbytes = _bytes_of(f"{who}: {name}", value)
    elif isinstance(value, float) and 0 < value <= 1:
        return value
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(
            f"{who}: {name} must be bytes, a text like '600 MB', a fraction or None; "
            f"got {type(value).__name__}"
        )
    elif not math.isfinite(value) or value != int(value):
        raise ValueError(f"{who}: {name} must be whole bytes or a fraction up to 1.0; got {value}")
    else:
        nbytes = int(value)
    if nbytes < least:
        raise ValueError(f"{who}: {name} must be at least {least} bytes; got {value!r}")
    return min(nbytes, _MOST)


def broadcast_sizes(shapes: Sequence[Sequence[int]]) -> list[int] | None:
    """The shape that shapes broadcast to; None where they do not.

    Args:
        shapes: at least one.
    """
    rank = 0
    for shape in shapes:
        if len(shape) > rank:
            rank = len(shape)
    out = [1] * rank
    for shape in shapes:
        d = rank - len(shape)
        for size in shape:
            if size != 1:
                if out[d] == 1:
                    out[d] = size
                elif out[d] != size:
                    return None
            d += 1
    return out
