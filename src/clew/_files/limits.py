"""Bounds on what a file can cost: the work and memory of reading it, and the text of a message.

A few bytes of a pickle can stand for a lot: what was read once is referred to again in two bytes,
so that tuples of tuples double at every level, and a constructor can be called on the same
megabyte a thousand times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sized
from pickle import UnpicklingError
from typing import Any, NoReturn

import numpy as np

import clew
from clew.storage import TypedStorage

from . import safe

__all__ = ["Budget", "fail", "shown"]

_MOST_SHOWN = 80
_MOST_COPIED = 64 << 20  # bytes beyond what the file's own size allows
_ITEM = 16  # bytes that an item of a container counts for
_MOST_KEY_PARTS = 1_000_000  # the same of what keys consist of
_KEY_DEPTH = 20
_ONE_HASH = 256  # keys of a container that may have the same hash
_NESTED = 1000  # levels of defaultdicts, which Python frees recursively


def fail(text: str) -> NoReturn:
    """Says what is wrong with the file."""
    raise UnpicklingError(f"load: {text}; the file is damaged or was not made by save")


def shown(value: Any) -> str:
    """A short text about any value from a file, made without looking at all of it."""
    if value is None or isinstance(value, (bool, float, complex, clew.dtype, clew.device)):
        return repr(value)
    kind = type(value)
    if kind is int:
        bits = value.bit_length()
        return repr(value) if bits <= 128 else f"an int of {bits} bits"
    if kind in (str, bytes, bytearray):
        text = repr(value[:_MOST_SHOWN])
        return text if len(value) <= _MOST_SHOWN else f"{text} ... ({len(value)} in all)"
    if kind in (tuple, list, clew.Size):
        if len(value) <= 8 and all(v is None or type(v) in (int, bool, float) for v in value):
            return f"({', '.join(shown(v) for v in value)})"
        return f"a {kind.__name__} of {len(value)} items"
    name = getattr(value, "name", None)
    if isinstance(name, str):  # a name from the file
        return name[:_MOST_SHOWN]
    return f"a {kind.__name__}"


def _has_own_hash(key: Any) -> bool:
    """Whether equal hashes cannot be made at will among such keys."""
    if type(key) is int:
        return -(2**60) < key < 2**60
    return key is None or isinstance(key, (str, bytes))


def _is_plain(key: Any) -> bool:
    """Whether a value that is no container can be a key."""
    return (
        _has_own_hash(key)
        or isinstance(key, (int, float, complex, clew.dtype, clew.device))
        or isinstance(key, (np.generic, clew.Tensor))
        or safe.is_allowed(type(key))
    )


class Budget:
    """What reading one file may still cost.

    Args:
        size: bytes of the structure, to which the bounds are in proportion.
    """

    def __init__(self, size: int) -> None:
        self._copies = _MOST_COPIED + _ITEM * size
        self._key_parts = _MOST_KEY_PARTS + 16 * size
        self._hashes: Counter[tuple[int, int]] = Counter()
        self._nested: list[defaultdict[Any, Any]] = []

    def copy(self, values: Iterable[Any]) -> None:
        """Charges for the containers, texts and bytes among the arguments of a constructor."""
        for value in values:
            if isinstance(value, Sized) and not isinstance(value, (clew.Tensor, TypedStorage)):
                count = len(value)
                self._copies -= (
                    count if isinstance(value, (str, bytes, bytearray)) else _ITEM * count
                )
                if self._copies < 0:
                    fail("it makes copies of the same values again and again")

    def check_key(self, key: Any, container: Any) -> None:
        """Keys are hashed, and hashing recurses: only plain, flat and various ones are accepted."""
        if _has_own_hash(key):
            return
        self._check_parts(key, 0)
        place = id(container), hash(key)
        self._hashes[place] += 1
        if self._hashes[place] > _ONE_HASH:
            fail(f"more than {_ONE_HASH} keys of a {type(container).__name__} have the same hash")

    def _check_parts(self, key: Any, depth: int) -> None:
        self._key_parts -= 1
        if self._key_parts < 0:
            fail("its keys are made of the same values again and again")
        if isinstance(key, (tuple, frozenset)) and depth < _KEY_DEPTH:
            for part in key:
                self._check_parts(part, depth + 1)
        elif not _is_plain(key):
            fail(f"a key is of type {type(key).__name__}")

    def note_value(self, target: Any, value: Any) -> None:
        """Remembers defaultdicts within defaultdicts."""
        if isinstance(value, defaultdict) and isinstance(target, defaultdict):
            self._nested.append(target)

    def take_apart(self) -> None:
        """Unties what was found nested, so that it can be freed whatever its depth."""
        for target in self._nested:
            target.clear()

    def check_nesting(self) -> None:
        """Refuses defaultdicts that lie within one another too deeply.

        Lists, tuples, dicts and sets are freed in a loop. A defaultdict is freed recursively, and
        enough of them overflow the stack.
        """
        if len(self._nested) <= _NESTED:
            return
        levels: dict[int, int] = {}  # of a defaultdict; 0 while it is looked at
        for root in self._nested:
            path = [(root, iter(root.values()), 1)] if id(root) not in levels else []
            if path:
                levels[id(root)] = 0
            while path:
                current, values, deepest = path.pop()
                for value in values:
                    if not isinstance(value, defaultdict):
                        continue
                    below = levels.get(id(value))
                    if below is None:
                        path.append((current, values, deepest))
                        levels[id(value)] = 0
                        path.append((value, iter(value.values()), 1))
                        break
                    if below == 0:
                        fail("defaultdicts contain one another in a circle")
                    deepest = max(deepest, below + 1)
                else:
                    levels[id(current)] = deepest
                    if deepest > _NESTED:
                        fail(f"defaultdicts lie within one another more than {_NESTED} deep")
                    if path:
                        above, rest, known = path.pop()
                        path.append((above, rest, max(known, deepest + 1)))
