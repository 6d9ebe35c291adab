"""clew: a deep-learning library with PyTorch's API, whose graph is recorded as the program runs.

>>> import clew
>>> x = clew.tensor(2.0, requires_grad=True)
>>> y = x**2 + 3 * x + 1
>>> y.backward()
>>> x.grad
tensor(7.)
"""

from __future__ import annotations

from math import e, inf, nan, pi

from clew import _C
from clew._base.dtypes import (
    bfloat16,
    bool,
    cdouble,
    cfloat,
    chalf,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    double,
    finfo,
    float,
    float16,
    float32,
    float64,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    preserve_format,
    short,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from clew._C import (
    OutOfMemoryError,
    Size,
    Tensor,
    device,
    dtype,
    empty_cache,
    get_default_dtype,
    get_num_threads,
    is_grad_enabled,
    is_inference_mode_enabled,
    reset_peak_memory_stats,
    set_num_threads,
)

__version__ = "0.1.0"
newaxis = None
__array_api_version__ = "2024.12"

from clew import _namespace

# Every public op under its own name; dotted ones (nn.functional.gelu) belong to their modules, and
# nonzero() is written in Python around the op.
globals().update(
    {
        name: f
        for name, f in _C.functions.items()
        if "." not in name and name not in _namespace._LAZY_NAMES
    }
)

from clew._ops import installer as _installer

_installer.fill(globals())

from clew import autograd, random
from clew._base import provenance as _provenance
from clew.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__getattr__ = _namespace.module_getattr(__name__, globals())
__dir__ = _namespace.top_dir(globals())

if not _C._has_onednn():
    from clew._base.lapack import load as _load_lapack

    _load_lapack()

from clew._tensor.sending import await_multiprocessing as _await_multiprocessing

_await_multiprocessing()
