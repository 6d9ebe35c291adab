"""dtypes and their numeric limits, layouts and memory formats."""

from __future__ import annotations

import builtins
from typing import Any

from clew import _C
from clew._C import (
    bfloat16,
    bool,
    complex32,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

float = float32
double = float64
half = float16
short = int16
int = int32
long = int64
chalf = complex32
cfloat = complex64
cdouble = complex128

ALL = (
    bool,
    uint8,
    uint16,
    uint32,
    uint64,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)

# Kept and converted; elementwise operations compute in a wider type and round the result.
STORED = (
    float8_e4m3fn,
    float8_e5m2,
    float8_e4m3fnuz,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    complex32,
)

# The older names of storages and of types of tensors: FloatStorage, FloatTensor.
_OLDER = {
    float32: "Float",
    float64: "Double",
    float16: "Half",
    bfloat16: "BFloat16",
    uint8: "Byte",
    int8: "Char",
    int16: "Short",
    int32: "Int",
    int64: "Long",
    bool: "Bool",
    complex64: "ComplexFloat",
    complex128: "ComplexDouble",
}
STORAGE_NAMES = {dtype: f"{name}Storage" for dtype, name in _OLDER.items()}
STORAGE_DTYPES = {name: dtype for dtype, name in STORAGE_NAMES.items()}
# The other dtypes have such names of tensors alone.
_NEWER = {
    uint16: "UInt16",
    uint32: "UInt32",
    uint64: "UInt64",
    float8_e4m3fn: "Float8_e4m3fn",
    float8_e5m2: "Float8_e5m2",
    float8_e4m3fnuz: "Float8_e4m3fnuz",
    float8_e5m2fnuz: "Float8_e5m2fnuz",
    float8_e8m0fnu: "Float8_e8m0fnu",
    complex32: "ComplexHalf",
}
TENSOR_NAMES = {dtype: f"{name}Tensor" for dtype, name in {**_OLDER, **_NEWER}.items()}
TENSOR_DTYPES = {name: dtype for dtype, name in TENSOR_NAMES.items()}

# The methods of tensors and of storages that convert.
CASTS = {
    "float": float32,
    "double": float64,
    "half": float16,
    "bfloat16": bfloat16,
    "int": int32,
    "long": int64,
    "short": int16,
    "char": int8,
    "byte": uint8,
    "bool": bool,
}

# What comes before names in texts: "torch" under `clew run`, whose programs compare them.
home = "clew"
_own_texts: dict[str, Any] = {}


def speak_of(name: builtins.str) -> None:
    """Begins the texts of dtypes, sizes, layouts and types with a name.

    Args:
        name: "clew" or "torch".
    """
    global home
    home = name
    kinds: tuple[Any, ...] = (dtype, _C.Size)
    for kind in kinds:
        own = _own_texts.setdefault(kind.__name__, kind.__repr__)
        kind.__repr__ = own if name == "clew" else _renamed(own)


def _renamed(own: Any) -> Any:
    def __repr__(self: Any) -> builtins.str:
        text: builtins.str = own(self)
        return home + text[len("clew") :]

    return __repr__


class _Named:
    """An object that is shown, and pickled, by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"{home}.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Named):
    """How a tensor's elements lie in memory, such as `clew.strided`.

    >>> isinstance(clew.ones(1).layout, clew.layout)
    True
    """


class memory_format(_Named):
    """The order of a tensor's dims in memory, such as `clew.channels_last`.

    >>> isinstance(clew.channels_last, clew.memory_format)
    True
    """


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# bits, explicit mantissa bits, smallest normal exponent, largest exponent
_FLOATS = {
    float16: (16, 10, -14, 15),
    bfloat16: (16, 7, -126, 127),
    float32: (32, 23, -126, 127),
    float64: (64, 52, -1022, 1023),
}


# eps, the largest and the smallest normal number.
_EIGHT_BITS = {
    float8_e4m3fn: (2.0**-3, 448.0, 2.0**-6),
    float8_e4m3fnuz: (2.0**-3, 240.0, 2.0**-7),
    float8_e5m2: (2.0**-2, 57344.0, 2.0**-14),
    float8_e5m2fnuz: (2.0**-3, 57344.0, 2.0**-15),
    float8_e8m0fnu: (1.0, 2.0**127, 2.0**-127),
}

# What Python's own types of numbers stand for.
PYTHON_TYPES: dict[Any, dtype] = {
    builtins.float: float64,
    builtins.complex: complex128,
    builtins.int: int64,
    builtins.bool: bool,
}


class _Limits:
    """The limits of a dtype, made when they are first asked for; they cannot be changed."""

    bits: builtins.int
    dtype: str
    _known: dict[Any, Any]  # by dtype

    def __init_subclass__(cls) -> None:
        cls._known = {}

    @classmethod
    def _of(cls, type: Any) -> Any:
        d = type
        if not isinstance(d, _C.dtype):
            if isinstance(type, builtins.type):
                d = PYTHON_TYPES.get(type)
            if not isinstance(d, _C.dtype):
                raise TypeError(f"{cls.__name__}: type must be a clew.dtype; got {type!r}")
        known = cls._known.get(d)
        if known is None:
            limits = cls._limits_of(d)
            known = cls._known[d] = object.__new__(cls)
            vars(known).update(limits)
        return known

    @staticmethod
    def _limits_of(d: _C.dtype) -> dict[str, Any]:
        raise NotImplementedError

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (getattr(_C, self.dtype),)


class finfo(_Limits):
    """The limits of a floating point dtype.

    >>> clew.finfo(clew.float32).eps
    1.1920928955078125e-07
    """

    resolution: builtins.float
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    tiny: builtins.float
    smallest_normal: builtins.float

    def __new__(cls, type: _C.dtype | builtins.type | None = None) -> finfo:
        return cls._of(_C.get_default_dtype() if type is None else type)

    @staticmethod
    def _limits_of(d: _C.dtype) -> dict[str, Any]:
        if d in _EIGHT_BITS:
            eps, most, tiny = _EIGHT_BITS[d]
            low = -most if d.is_signed else tiny
            name, bits, resolution = d.name, 8, 1.0
        else:
            real = d.to_real()
            if real not in _FLOATS:
                raise TypeError(
                    f"finfo: {d} is not a floating point dtype; use clew.iinfo for integers"
                )
            bits, mantissa, lowest, highest = _FLOATS[real]
            name, eps, tiny = real.name, 2.0**-mantissa, 2.0**lowest
            most = (2.0 - eps) * 2.0**highest
            low = -most
            resolution = 10.0 ** -{10: 3, 7: 2, 23: 6, 52: 15}[mantissa]
        return {
            "dtype": name,
            "bits": bits,
            "resolution": resolution,
            "eps": eps,
            "max": most,
            "min": low,
            "tiny": tiny,
            "smallest_normal": tiny,
        }

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype.

    >>> clew.iinfo(clew.int8).max
    127
    """

    min: builtins.int
    max: builtins.int

    def __new__(cls, type: _C.dtype | builtins.type) -> iinfo:
        return cls._of(type)

    @staticmethod
    def _limits_of(d: _C.dtype) -> dict[str, Any]:
        if d.is_floating_point or d.is_complex or d is bool:
            raise TypeError(f"iinfo: {d} is not an integer dtype; use clew.finfo for floats")
        bits = 8 * d.itemsize
        return {
            "dtype": d.name,
            "bits": bits,
            "min": -(2 ** (bits - 1)) if d.is_signed else 0,
            "max": 2 ** (bits - d.is_signed) - 1,
        }

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
