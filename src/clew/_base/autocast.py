"""What functions written in Python do inside autocast; operations of the core have a table.

A function that PyTorch's CPU autocast runs in float32 either casts its arguments where it begins
(`if autocasting(): x, y = float32(x, y)`), or, where its parts must not choose for themselves, is
decorated with `in_float32`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from clew import _C

__all__ = ["autocasting", "float32", "in_float32", "lower", "region_dtype"]

F = TypeVar("F", bound=Callable[..., Any])

autocasting = _C._autocasting  # whether autocast is on in this thread
fit = _C._fit  # whether two tensors have one floating dtype and one shape, and autocast is off


def region_dtype() -> Any:
    """The dtype that the innermost region casts to."""
    return _C._autocast_state()[1]


def float32(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, those of float16 and bfloat16 as float32."""
    return _cast(_C._autocast_float32, tensors)


def lower(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, those of float32 in the region's dtype."""
    return _cast(_C._autocast_lower, tensors)


def _cast(cast: Callable[..., tuple[Any, ...]], tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    def of_parts(t: Any) -> Any:
        if not hasattr(type(t), "_placeholder"):
            return cast(t)[0]
        (values,) = cast(t._elements)
        return t if values is t._elements else t._with(values)

    if any(hasattr(type(t), "_placeholder") for t in tensors):  # sparse and ragged tensors
        return tuple(map(of_parts, tensors))
    return cast(*tensors)


def in_float32(function: F) -> F:
    """A function that runs in float32, with autocast off, when it is called inside a region.

    Args:
        function: what to decorate; with `out` it runs in what it is given.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not autocasting():
            return function(*args, **kwargs)
        if kwargs.get("out") is None:
            args = float32(*args)
            kwargs = dict(zip(kwargs, float32(*kwargs.values())))
        _, dtype, keeps_casts = _C._autocast_state()
        _C._set_autocast(False, dtype, keeps_casts)
        try:
            return function(*args, **kwargs)
        finally:
            _C._set_autocast(True, dtype, keeps_casts)

    return run  # type: ignore[return-value]
