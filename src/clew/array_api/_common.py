"""What the functions of the namespace share: promotion, Python numbers, axes, lists of kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import clew
from clew import Tensor

Number = bool | int | float | complex
Axes = int | tuple[int, ...] | None

_KINDS = {
    "bool": (clew.bool,),
    "signed integer": (clew.int8, clew.int16, clew.int32, clew.int64),
    "unsigned integer": (clew.uint8, clew.uint16, clew.uint32, clew.uint64),
    "real floating": (clew.float16, clew.bfloat16, clew.float32, clew.float64),
    "complex floating": (clew.complex64, clew.complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
KINDS: dict[str, tuple[Any, ...]] = _KINDS


def tensor_of(name: str, x: Any) -> Tensor:
    """`x`, which must be a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a Tensor; got {type(x).__name__}")
    return x


def number_dtype(value: Number, dtype: clew.dtype) -> clew.dtype:
    """The dtype that a Python number has beside an array of `dtype`."""
    if isinstance(value, complex):
        return dtype.to_complex() if dtype in KINDS["real floating"] else _inexact(value, dtype)
    if isinstance(value, float):
        return _inexact(value, dtype)
    if isinstance(value, bool) or dtype is not clew.bool:
        return dtype
    return clew.asarray(value).dtype


def _inexact(value: Number, dtype: clew.dtype) -> clew.dtype:
    if dtype.is_complex or (dtype.is_floating_point and not isinstance(value, complex)):
        return dtype
    default = clew.get_default_dtype()
    return default.to_complex() if isinstance(value, complex) else default


def as_array(value: Number, beside: Tensor) -> Tensor:
    """A Python number as an array of no dims, of the dtype it has beside `beside`."""
    return clew.tensor(value, dtype=number_dtype(value, beside.dtype), device=beside.device)


def promoted(name: str, *arrays: Any) -> list[Tensor]:
    """The arrays in their common dtype; numbers among them take the arrays' dtype.

    An array without dims counts like any other here, unlike in clew's own operations.
    """
    tensors = [a for a in arrays if isinstance(a, Tensor)]
    if not tensors:
        kinds = ", ".join(type(a).__name__ for a in arrays)
        raise TypeError(f"{name}: at least one argument must be a Tensor; got {kinds}")
    dtype = common_dtype(t.dtype for t in tensors)
    plain = clew.empty((), dtype=dtype, device=tensors[0].device)
    out = []
    for a in arrays:
        if isinstance(a, Tensor):
            out.append(a)
        elif isinstance(a, (bool, int, float, complex)):
            out.append(as_array(a, plain))
        else:
            raise TypeError(f"{name}: expected a Tensor or a number; got {type(a).__name__}")
    dtype = common_dtype(t.dtype for t in out)
    return [t if t.dtype is dtype else t.to(dtype) for t in out]


def common_dtype(dtypes: Iterable[clew.dtype]) -> clew.dtype:
    """The dtype that all the dtypes fit into."""
    out: Any = None
    for d in dtypes:
        out = d if out is None or d is out else clew.promote_types(out, d)
    return out


def sum_dtype(dtype: clew.dtype) -> clew.dtype:
    """The dtype of a sum without a dtype of its own: 64 bits for integers."""
    if dtype in KINDS["unsigned integer"]:
        return clew.uint64
    return dtype if dtype.is_floating_point or dtype.is_complex else clew.int64


def axes_of(x: Tensor, axis: Axes) -> tuple[Tensor, tuple[int, ...]]:
    """The array and the axes to reduce it over, of which there is at least one.

    No axes at all means that each element stands alone: the array gets a last axis of size one.
    """
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if not axes:
        return x.unsqueeze(-1), (-1,)
    seen = set()
    for a in axes:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"axis {a} is out of range for an array of {x.ndim} dims")
        seen.add(a % x.ndim)
    if len(seen) < len(axes):
        raise ValueError(f"an axis is repeated in {axes}")
    return x, axes


def keeps(x: Tensor, axis: Axes, keepdims: bool) -> bool:
    """Whether reduced axes stay; the one that `axes_of` added never does."""
    return keepdims and not (axis == () or (axis is None and x.ndim == 0))
