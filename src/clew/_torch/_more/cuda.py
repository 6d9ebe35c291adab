"""What needs a CUDA device raises."""

from __future__ import annotations

from clew._torch._more._raising import raising

_NAMES = "_sleep caching_allocator_alloc cudart current_blas_handle"
globals().update(raising("cuda", _NAMES, AssertionError, "there is no CUDA device"))
