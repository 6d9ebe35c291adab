"""The Array API standard 2024.12: its functions, dtypes and constants over clew's tensors.

Code that is written against the standard gets this namespace from any tensor and runs on clew;
what it computes is recorded for gradients as ever.

>>> def centre(x):
...     xp = x.__array_namespace__()
...     return x - xp.mean(x, axis=0, keepdims=True)
>>> centre(clew.tensor([[1.0], [3.0]]))
tensor([[-1.],
        [ 1.]])

Where PyTorch's functions of the same names take other arguments or promote dtypes otherwise, the
standard's way is followed here: reductions take ``axis`` and ``keepdims``, ``sum`` of uint8 is a
uint64, an array of no dims promotes like any other.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from clew import (
    bool,
    complex64,
    complex128,
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

from . import _creation, _dtypes, _elementwise, _manipulation, _searching, _statistics, fft, linalg
from ._creation import *  # noqa: F403
from ._dtypes import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._manipulation import *  # noqa: F403
from ._searching import *  # noqa: F403
from ._statistics import *  # noqa: F403
from .linalg import matmul, tensordot, vecdot

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [
    "__array_api_version__",
    "bool",
    "complex64",
    "complex128",
    "e",
    "fft",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "matmul",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "vecdot",
]
for _part in (_creation, _dtypes, _elementwise, _manipulation, _searching, _statistics):
    __all__ += _part.__all__
