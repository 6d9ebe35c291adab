"""Writes results into ``out=``, for functions written in Python."""

from __future__ import annotations

import warnings
from typing import Any

from clew import _C
from clew._base.promotion import can_cast
from clew._base.provenance import user_level
from clew._C import Tensor

__all__ = ["write_out"]


def write_out(
    name: str, result: Any, out: Any, *, converts: bool = False, records: bool = False
) -> Any:
    """``result``, or ``out`` with the result written into it when it is given.

    Args:
        name: the public name of the operation, for messages.
        result: a tensor or a (named) tuple of tensors.
        out: None, a tensor, or a tuple of as many tensors.
        converts: out may have another dtype that the result's can be cast to; it differs from
            function to function, as it does in PyTorch.
        records: an input may require grad, and out gets the result's history, as of ``copy_``.
            PyTorch does so in functions that it composes of others, and takes such inputs where it
            has no derivative.

    Raises:
        RuntimeError: something requires grad, or out has another dtype.
        TypeError: out is not a tensor, or not a tuple of the right length.
    """
    if out is None:
        return result
    if isinstance(result, Tensor):
        _check_one(name, result, out, converts, records)
        _write_one(name, result, out)
        return out
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(result)} Tensors")
    for r, o in zip(result, out):
        _check_one(name, r, o, converts, records)
    for r, o in zip(result, out):
        _write_one(name, r, o)
    return type(result)(*out) if hasattr(result, "_fields") else tuple(out)


def check_castable(name: str, result: Tensor, out: Tensor) -> None:
    """Raises where a result cannot be written into a tensor of out's dtype."""
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(
            f"{name}: result type {result.dtype.name} can't be cast to the desired output type "
            f"{out.dtype.name}"
        )


def _check_one(name: str, result: Tensor, out: Any, converts: bool, records: bool) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be a Tensor; got {type(out).__name__}")
    wanted = result.requires_grad and not records
    if wanted or (out.requires_grad and _C.is_grad_enabled() and (out.is_leaf or not records)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            f"differentiation, but {'one of the arguments' if wanted else 'out'} "
            f"requires grad; call it without out=, or inside no_grad()"
        )
    if out.is_inference() and not _C.is_inference_mode_enabled():
        raise RuntimeError(
            f"{name}: inplace update to inference tensor outside InferenceMode is not allowed; "
            f"clone() it first"
        )
    if result.device.type != out.device.type:
        raise RuntimeError(
            f"{name}: Expected all tensors to be on the same device; the result is on "
            f"{result.device}, out on {out.device}"
        )
    if not converts and result.dtype != out.dtype:
        raise RuntimeError(
            f"{name}: Expected out tensor to have dtype {result.dtype.name}, but got "
            f"{out.dtype.name} instead"
        )
    check_castable(name, result, out)


def _write_one(name: str, result: Tensor, out: Tensor) -> None:
    if out.shape != result.shape:
        if out.numel():
            warnings.warn(
                f"{name}: an output with one or more elements was resized since it had shape "
                f"{list(out.shape)}, which does not match the required output shape "
                f"{list(result.shape)}",
                stacklevel=user_level(),
            )
        out.resize_(result.shape)
    out.copy_(result)
