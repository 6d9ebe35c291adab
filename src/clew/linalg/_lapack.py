"""LAPACK from the library that NumPy has loaded, called by the core.

NumPy's functions run a batch in one loop, too, but compute in double precision whatever the dtype,
and leave some routines out. Where the library does not show LAPACK's names, NumPy's functions and
the loops beside them do the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew._base.lapack import load
from clew._C import Tensor

from ._common import LinAlgError, batch_index

loaded = load()


def native(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function, when the core has LAPACK; it is what primitive() takes as `native`."""
    return function if loaded else None


def check(name: str, info: Tensor, text: Callable[[int], str]) -> None:
    """Raises LinAlgError for the first matrix of a batch whose info is not zero."""
    if info.is_meta or not (info.any() if info.ndim else info):
        return
    flat = info.flatten().tolist()
    first = next(i for i, k in enumerate(flat) if k)
    where = batch_index((first,), (len(flat),)) if info.ndim else ""
    raise LinAlgError(f"{name}: {where}{text(flat[first])}")
