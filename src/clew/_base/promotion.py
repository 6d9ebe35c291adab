"""Which dtype operands give together, and which dtypes a result may be stored in."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import empty

__all__ = ["can_cast", "promote_types", "result_type"]


# What promote_types() gave.
_promoted: dict[tuple[_C.dtype, _C.dtype], _C.dtype] = {}


def promote_types(type1: _C.dtype, type2: _C.dtype) -> _C.dtype:
    """The smallest dtype that both dtypes convert to.

    Args:
        type1: a dtype.
        type2: another.

    Returns:
        a dtype.

    >>> clew.promote_types(clew.int32, clew.float32)
    clew.float32
    """
    if isinstance(type1, _C.dtype) and isinstance(type2, _C.dtype):
        known = _promoted.get((type1, type2))
        if known is not None:
            return known
    for name, given in (("type1", type1), ("type2", type2)):
        if not isinstance(given, _C.dtype):
            raise TypeError(
                f"promote_types(): argument '{name}' must be dtype, not {type(given).__name__}"
            )
    made = result_type(empty(1, dtype=type1, device="meta"), empty(1, dtype=type2, device="meta"))
    _promoted[type1, type2] = made
    return made


def result_type(tensor1: Any, tensor2: Any) -> _C.dtype:
    """The dtype an arithmetic operation on the two (tensors or numbers) gives.

    Args:
        tensor1: a tensor or a number.
        tensor2: another.

    Returns:
        a dtype.

    >>> clew.result_type(clew.ones(1), 1 + 2j)
    clew.complex64
    """
    return _C._result_type(tensor1, tensor2)


def can_cast(from_: _C.dtype, to: _C.dtype) -> bool:
    """Whether a result of dtype from_ may be stored into a tensor of dtype to.

    >>> clew.can_cast(clew.float32, clew.int64)
    False
    """

    def rank(d: _C.dtype) -> int:
        return 3 if d.is_complex else 2 if d.is_floating_point else 0 if d is _dtypes.bool else 1

    try:
        return rank(from_) <= rank(to)
    except AttributeError:
        kinds = f"{type(from_).__name__} and {type(to).__name__}"
        raise TypeError(f"can_cast: from_ and to must be dtypes; got {kinds}") from None
