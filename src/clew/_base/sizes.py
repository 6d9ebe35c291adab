"""Amounts of memory as arguments: bytes, text such as "600 MB", or a fraction."""

from __future__ import annotations

import math
import re

__all__ = ["bytes_or_fraction"]

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
