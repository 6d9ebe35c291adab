"""What scripts raise and warn of, and what chooses compilers for them; none runs here."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from clew._base.provenance import user_level
from clew.futures import Future as Future


class Error(Exception):
    """What a script raised."""


class ScriptWarning(Warning):
    """What PyTorch warns of when it compiles a script."""


class TracingCheckError(Exception):
    """A trace that gives other results than the function."""


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Does nothing: scripts run as Python.

    Args:
        name: "fuser0" to "fuser3".
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise ValueError(f"fuser: expected 'fuser0' to 'fuser3'; got {name!r}")
    yield


class strict_fusion:
    """A block that a script's compiler would have to fuse; here it warns, as outside a script."""

    def __init__(self) -> None:
        warnings.warn("strict_fusion only works in script mode", stacklevel=user_level())

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: Any) -> None: ...
