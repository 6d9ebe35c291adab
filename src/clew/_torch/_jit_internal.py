"""Marks for PyTorch's script compiler: functions stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clew.jit import annotate, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "annotate",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]


def _same(fn: Any) -> Any:
    return fn


_overload = _overload_method = _copy_to_script_wrapper = _same


class _Lists:
    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Lists()


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two, as one of its arguments says."""

    def call(*args: Any, **kwargs: Any) -> Any:
        chosen = args[arg_index] if len(args) > arg_index else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    call.__name__ = func_name
    return call
