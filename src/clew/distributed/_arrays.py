"""Tensors as the arrays that MPI reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew._C import Tensor

_SAME_WIDTH = {1: clew.uint8, 2: clew.int16, 4: clew.int32, 8: clew.int64}


def expect(name: str, *tensors: Any) -> None:
    """Raises where something is no tensor with bytes on the CPU."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"distributed.{name}: expected a tensor; got {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise RuntimeError(
                f"distributed.{name}: expected a tensor on the CPU; got one on {tensor.device}"
            )


def _bytes_of(tensor: Tensor) -> Any:
    # Not numpy(): its tensors count as shared with the program for good, and a memory budget keeps
    # all that is made of them.
    flat = tensor.view(-1)  # raises where a copy would be filled instead of the tensor
    if tensor.is_complex() or tensor.dtype in _NUMPY:
        return flat._array_view()
    return flat.view(_SAME_WIDTH[tensor.element_size()])._array_view()


_NUMPY = {
    clew.float32, clew.float64, clew.uint8, clew.int8, clew.int16, clew.int32, clew.int64, clew.bool
}  # fmt: skip
_WIDENED = (clew.float16, clew.bfloat16)


def reading(tensor: Tensor) -> Any:
    """A flat array of a tensor's elements."""
    return _bytes_of(tensor.detach().contiguous())


def writing(tensor: Tensor) -> tuple[Any, Callable[[], Any] | None]:
    """A flat array to fill, and what then brings it into the tensor, if it is not its own bytes."""
    plain = tensor.detach()
    if plain.is_contiguous():
        return _bytes_of(plain), None
    dense = plain.contiguous()
    return _bytes_of(dense), lambda: plain.copy_(dense)


def joined(tensors: Any) -> Any:
    """One flat array of several tensors of one shape."""
    if len(tensors) == 1:
        return reading(tensors[0])
    return _bytes_of(clew.cat([t.detach().reshape(-1) for t in tensors]))


def room(tensors: Any) -> tuple[Any, Callable[[], Any] | None]:
    """A flat array for several tensors, and what then spreads it over them."""
    if len(tensors) == 1:
        return writing(tensors[0])
    plain = [t.detach() for t in tensors]
    flat = clew.empty(sum(t.numel() for t in plain), dtype=plain[0].dtype)

    def spread() -> None:
        for part, target in zip(flat.split([t.numel() for t in plain]), plain):
            target.copy_(part.view(target.shape))

    return _bytes_of(flat), spread


def operation(name: str, op: Any) -> tuple[str, float | None]:
    """The name of a ReduceOp, and a factor that comes before it."""
    from clew.distributed._process_group import ReduceOp

    factor = getattr(op, "factor", None)
    kind = ReduceOp(op)
    if kind == ReduceOp.PREMUL_SUM:
        if factor is None:
            raise ValueError(f"distributed.{name}: PREMUL_SUM needs a factor")
        return "sum", factor
    return ("sum", None) if kind == ReduceOp.AVG else (kind.name.lower(), None)


def combining(
    name: str, source: Tensor, target: Tensor, op: Any, count: int
) -> tuple[Any, Any, str, Callable[[], Any] | None]:
    """Arrays for a reduction: float16 and bfloat16 in float32, bool as 0 and 1.

    Args:
        name: of the operation.
        source: what this rank gives.
        target: what it gets; the same tensor where the reduction is in place.
        op: a ReduceOp.
        count: how many ranks there are.

    Returns:
        The source's array, the target's, the name of the operation for MPI, what is left to do.
    """
    from clew.distributed._process_group import ReduceOp

    kind, factor = operation(name, op)
    floating = source.dtype.is_floating_point or source.dtype.is_complex
    if kind in ("band", "bor", "bxor") and floating:
        error = ValueError if source.dtype.is_complex else RuntimeError  # as in PyTorch
        raise error(f"distributed.{name}: {kind} needs integers; got {source.dtype}")
    if kind in ("min", "max") and source.dtype.is_complex:
        raise ValueError(f"distributed.{name}: {kind} needs real numbers; got {source.dtype}")
    plain, result = source.detach(), target.detach()
    same, back = source is target, True
    if plain.dtype in _WIDENED:
        given = plain.to(clew.float32, memory_format=clew.contiguous_format)
        got = given if same else clew.empty(result.shape, dtype=clew.float32)
    elif plain.dtype == clew.bool:
        given = plain.to(clew.uint8, memory_format=clew.contiguous_format)
        got = given if same else clew.empty(result.shape, dtype=clew.uint8)
        kind = {"sum": "max", "product": "min"}.get(kind, kind)
    else:
        given = plain.contiguous()
        back = not result.is_contiguous()
        got = clew.empty(result.shape, dtype=result.dtype) if back else result
        got = given if same else got
    if factor is not None:
        given = given.mul_(factor) if same else given * factor
    mean = ReduceOp(op) == ReduceOp.AVG and plain.dtype != clew.bool
    if not (back or mean):
        return _bytes_of(given), _bytes_of(got), kind, None

    def finish() -> None:
        if mean:
            if floating:
                got.div_(count)
            else:
                got.copy_(got.div(count, rounding_mode="trunc"))
        if back:
            result.copy_(got)

    return _bytes_of(given), _bytes_of(got), kind, finish
