"""Helpers of rules for an export that never happens: decorators leave functions as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """A decorator that returns the function itself: exports here use no such rules.

    Args:
        arg_descriptors: not used.

    Example:
        >>> from clew.onnx.symbolic_helper import parse_args
        >>> parse_args("v", "i")(len) is len
        True
    """
    return lambda fn: fn


def quantized_args(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that returns the function itself: exports here use no such rules.

    Args:
        args, kwargs: not used.

    Example:
        >>> from clew.onnx.symbolic_helper import quantized_args
        >>> quantized_args(True)(len) is len
        True
    """
    return lambda fn: fn
