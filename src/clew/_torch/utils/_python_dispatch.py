"""Modes and classes that see the operations inside of operations: not part of clew."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
]


class TorchDispatchMode:
    """The base class of such modes: entering one raises.

    clew.overrides.TorchFunctionMode sees calls of operations.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: clew has no dispatch modes; overrides.TorchFunctionMode sees "
            "the calls of operations"
        )

    def __exit__(self, *exc: Any) -> None:
        pass


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is of a class that is taken apart by `__tensor_flatten__`.

    Args:
        t: anything.
    """
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What an operation of such a class gives: `out`.

    Args:
        func: the operation.
        args: its arguments.
        kwargs: its named arguments.
        out: the result.
    """
    return out


def _get_current_dispatch_mode() -> None:
    return None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []
