"""Calls that are no operations: questions for sizes, elements and truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.export import _symbols
from clew.export._errors import ExportError, here, in_library, library_asks
from clew.export._symbols import SYMS

if TYPE_CHECKING:
    from clew.export._record import Recorder

__all__ = ["SPECIAL"]


def _ask_size(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    shape = rec.shape(args[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    return shape if dim is None else shape[dim]


def _ask_numel(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    total: Any = 1
    for n in rec.shape(args[0]):
        total = n * total
    return total


def _ask_len(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    shape = rec.shape(args[0])
    if not len(shape):
        return func(*args)
    first = shape[0]
    return first.__index__() if type(first) in SYMS else first


def _ask_item(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    return rec.item(args[0])


def _ask_number(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``if t``, ``float(t)``, ``int(t)`` where nothing of ours can take it over."""
    if not rec._depends(args):
        return rec.quietly(func, args, kwargs)
    if not in_library(4):
        what = getattr(func, "__name__", "").strip("_")
        raise ExportError(
            f"export: {what}() makes a Python value of data at {here()}\n"
            f"  Only functions and methods whose source is at hand keep such decisions, and no "
            f"properties, comprehensions of dicts and of sets, generators that "
            f"are sent values or asked for the next one, parts of a condition that may not run "
            f"and assign with `:=`, or, before Python 3.11, lambdas: write "
            f"`if`, `while` or `for` in a function, or use clew.where()."
        )
    found = rec.item(args[0])
    kind = {"__bool__": bool, "__float__": float}.get(func.__name__, int)
    return kind(_symbols.settle(found, "an element"))


def _ask_list(rec: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not rec._depends((x,)):
        return rec.quietly(func, args, kwargs)
    with rec:
        shape = rec.shape(x)
        if len(shape) == 0:
            return rec.item(x)
        if any(type(n) in SYMS for n in shape) or x.numel() > 256:
            if len(shape) == 1 and not library_asks():
                from clew.export._lists import SymIter

                return SymIter(shape[0], lambda i: rec.item(x.select(0, i)), x)
            raise ExportError(
                f"export: tolist() makes Python numbers of {len(shape)} dims whose sizes vary, at "
                f"{here()}\n  Compute with the tensor instead, or run over it in a `for` statement."
            )
        return [row.tolist() for row in x.unbind(0)]


SPECIAL: dict[str, Callable[..., Any]] = {
    "size": _ask_size,
    "numel": _ask_numel,
    "nelement": _ask_numel,
    "__len__": _ask_len,
    "item": _ask_item,
    "__bool__": _ask_number,
    "__float__": _ask_number,
    "__int__": _ask_number,
    "__index__": _ask_number,
    "tolist": _ask_list,
}
