"""Calls of modules whose forward() is one call of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import clew

_Forward = TypeVar("_Forward", bound=Callable[..., Any])


def one_call(
    callee: Callable[..., Any], *arguments: str, unset: tuple[str, ...] = ()
) -> Callable[[_Forward], _Forward]:
    """Says that forward(self, input) is ``callee(*arguments)`` where all of `unset` are None or
    False: a call of the module may then make that call without entering Python.

    Args:
        callee: a function of the core.
        arguments: names of the module's attributes, "input" for the argument of forward.
        unset: names of attributes that ask for more.
    """
    names = tuple(None if name == "input" else name for name in arguments)

    def register(forward: _Forward) -> _Forward:
        clew._C._add_shortcut(forward, callee, names, unset)
        return forward

    return register
