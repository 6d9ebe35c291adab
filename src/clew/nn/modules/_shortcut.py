"""Calls of modules whose forward() is one call of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import clew

from .. import functional as F

_Forward = TypeVar("_Forward", bound=Callable[..., Any])


def one_call(
    callee: Callable[..., Any], *arguments: str, unset: tuple[str, ...] = ()
) -> Callable[[_Forward], _Forward]:
    """Says that forward(self, input) is ``callee(*arguments)`` where all of `unset` are None or
    False: a call of the module may then make that call without entering Python.

    Args:
        callee: a function of the core. One of nn.functional is looked up there at every call, as
            forward does: others may stand in for it.
        arguments: names of the module's attributes, "input" for the argument of forward.
        unset: names of attributes that ask for more.
    """
    names = tuple(None if name == "input" else name for name in arguments)
    name = callee.__name__
    home = vars(F) if vars(F).get(name) is callee else None

    def register(forward: _Forward) -> _Forward:
        clew._C._add_shortcut(forward, callee, names, unset, home, name)
        return forward

    return register
