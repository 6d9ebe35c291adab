"""The operations `torch.ops.profiler`, with which recorded programs mark parts of themselves."""

from __future__ import annotations

import clew
from clew import _C, Tensor
from clew.library import Library


def _enter(name: str, args: str | None = None) -> Tensor:
    handle = _C._trace_begin(name if args is None else f"{name}({args})")
    return clew.tensor(-1 if handle is None else handle)  # -1: nothing is being recorded


def _exit(handle: Tensor) -> None:
    number = int(handle)
    _C._trace_end(None if number < 0 else number)


def register() -> None:
    """Defines them."""
    library = Library("profiler", "DEF")
    library.define("_record_function_enter(str name, str? args=None) -> Tensor")
    library.impl("_record_function_enter", _enter)
    library.define("_record_function_enter_new(str name, str? args=None) -> Tensor")
    library.impl("_record_function_enter_new", _enter)
    library.define("_record_function_exit(Tensor handle) -> ()")
    library.impl("_record_function_exit", _exit)
