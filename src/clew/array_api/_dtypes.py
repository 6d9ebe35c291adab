"""Data type functions, dtypes' limits, and what the namespace says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clew
from clew import Tensor

from ._common import KINDS, Number, as_array, common_dtype, tensor_of

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
).split()


def astype(x: Tensor, dtype: clew.dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` with elements of another dtype.

    Args:
        x: an array.
        dtype: the dtype.
        copy: False gives `x` itself where nothing changes.
        device: where it is to lie.

    Raises:
        TypeError: where complex numbers would become real ones.

    >>> clew.array_api.astype(clew.tensor([1.5, 0.0]), clew.bool)
    tensor([ True, False])
    """
    if tensor_of("astype", x).is_complex() and not dtype.is_complex and dtype is not clew.bool:
        raise TypeError(f"astype: complex numbers cannot become {dtype}; take real() or abs()")
    return x.to(device=device, dtype=dtype, copy=copy)


def can_cast(from_: clew.dtype | Tensor, to: clew.dtype, /) -> bool:
    """Whether promotion takes the first dtype to the second, and not to another kind of number.

    Args:
        from_: a dtype, or an array of it.
        to: a dtype.

    >>> clew.array_api.can_cast(clew.uint8, clew.int16)
    True
    """
    source = from_.dtype if isinstance(from_, Tensor) else from_
    kinds = [_kind(source), _kind(to)]
    if kinds[0] != kinds[1] and kinds != ["real", "complex"]:
        return False
    try:
        return clew.promote_types(source, to) is to
    except RuntimeError:
        return False


def _kind(dtype: clew.dtype) -> str:
    if dtype is clew.bool:
        return "bool"
    return "complex" if dtype.is_complex else "real" if dtype.is_floating_point else "integral"


def isdtype(dtype: clew.dtype, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: the dtype.
        kind: a dtype, a kind's name ("bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating", "numeric"), or a tuple of those.

    >>> clew.array_api.isdtype(clew.uint16, ("real floating", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: kind must be one of {', '.join(KINDS)}; got {kind!r}")
        return dtype in KINDS[kind]
    if not isinstance(kind, clew.dtype):
        raise TypeError(f"isdtype: kind must be a dtype, a str or a tuple; got {kind!r}")
    return dtype is kind


def result_type(*arrays_and_dtypes: Tensor | clew.dtype | Number) -> clew.dtype:
    """The dtype that an operation on the arguments has.

    Args:
        arrays_and_dtypes: arrays, dtypes and numbers, at least one of the first two.

    >>> clew.array_api.result_type(clew.int8, clew.ones(2, dtype=clew.int32), 1.0)
    clew.float32
    """
    dtypes = [a.dtype if isinstance(a, Tensor) else a for a in arrays_and_dtypes]
    known = [d for d in dtypes if isinstance(d, clew.dtype)]
    if not known:
        raise ValueError("result_type: at least one argument must be an array or a dtype")
    plain = clew.empty((), dtype=common_dtype(known))
    for d in dtypes:
        if isinstance(d, (bool, int, float, complex)):
            known.append(as_array(type(d)(1), plain).dtype)
        elif not isinstance(d, clew.dtype):
            raise TypeError(f"result_type: expected an array, a dtype or a number; got {d!r}")
    return common_dtype(known)


@dataclass(frozen=True)
class finfo_object:
    """The limits of a floating point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: clew.dtype


@dataclass(frozen=True)
class iinfo_object:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: clew.dtype


def finfo(type: clew.dtype | Tensor, /) -> finfo_object:
    """The limits of a floating point dtype; of a complex one, those of its parts.

    Args:
        type: the dtype, or an array of it.

    >>> clew.array_api.finfo(clew.float32).bits
    32
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    got = clew.finfo(dtype)
    return finfo_object(got.bits, got.eps, got.max, got.min, got.smallest_normal, dtype.to_real())


def iinfo(type: clew.dtype | Tensor, /) -> iinfo_object:
    """The limits of an integer dtype.

    Args:
        type: the dtype, or an array of it.

    >>> clew.array_api.iinfo(clew.int8).max
    127
    """
    dtype = type.dtype if isinstance(type, Tensor) else type
    got = clew.iinfo(dtype)
    return iinfo_object(got.bits, got.max, got.min, dtype)


class Info:
    """What the namespace can do and has: its devices, dtypes and defaults."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing, data-dependent shapes and the largest number of dims."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> clew.device:
        """Where arrays are made unless told otherwise."""
        return clew.device(str(clew.get_default_device()))

    def default_dtypes(self, *, device: Any = None) -> dict[str, clew.dtype]:
        """The dtypes that arrays get unless told otherwise."""
        real = clew.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": clew.int64,
            "indexing": clew.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, clew.dtype]:
        """The dtypes of the standard, of one kind (or kinds) or all, by name."""
        all_of_them = {name: getattr(clew, name) for name in _NAMES}
        if kind is None:
            return all_of_them
        return {name: d for name, d in all_of_them.items() if isdtype(d, kind)}

    def devices(self) -> list[clew.device]:
        """The devices that hold values."""
        return [clew.device("cpu")]


def __array_namespace_info__() -> Info:
    """What the namespace can do and has.

    >>> clew.array_api.__array_namespace_info__().default_dtypes()["integral"]
    clew.int64
    """
    return Info()


__all__ = [
    "__array_namespace_info__",
    "astype",
    "can_cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]
