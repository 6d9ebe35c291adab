"""What the native operations are made by, as their declarations say."""

from __future__ import annotations

import functools

from clew import _C

__all__ = ["elementwise_names", "kinds"]


@functools.cache
def kinds() -> dict[str, str]:
    """The native ops' kinds ("elementwise", "view", "general", "composite"), by name with and
    without the module.

    >>> from clew._ops.kinds import kinds
    >>> kinds()["transpose"], kinds()["special.entr"], kinds()["entr"]
    ('view', 'elementwise', 'elementwise')
    """
    known = _C._operation_kinds
    return {**{name.rsplit(".", 1)[-1]: kind for name, kind in known.items()}, **known}


@functools.cache
def elementwise_names() -> frozenset[str]:
    """The public names, without the module, of functions that make each element of their result
    from the elements at the same place.

    >>> from clew._ops.kinds import elementwise_names
    >>> "mul" in elementwise_names(), "sum" in elementwise_names()
    (True, False)
    """
    public = (n for n, kind in kinds().items() if kind == "elementwise" and "." not in n)
    return frozenset(name for name in public if not name.startswith("_"))
