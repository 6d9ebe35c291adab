"""Which of PyTorch's kernels may run. There is one of each here, which always may."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

_allowed = dict.fromkeys(("cudnn", "flash", "math", "mem_efficient"), True)


class SDPAParams(NamedTuple):
    """A call of scaled_dot_product_attention."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def is_flash_attention_available() -> bool:
    """Whether a device has this kernel: no."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a call could run in this kernel of a device: no."""
    return False


can_use_cudnn_attention = can_use_efficient_attention = can_use_flash_attention


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` was told last."""
    return _allowed["flash"]


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` was told last."""
    return _allowed["math"]


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` was told last."""
    return _allowed["mem_efficient"]


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` was told last."""
    return _allowed["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keeps the choice; there is no such kernel."""
    _allowed["flash"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Keeps the choice; attention runs in the one kernel that there is."""
    _allowed["math"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keeps the choice; there is no such kernel."""
    _allowed["mem_efficient"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keeps the choice; there is no such kernel."""
    _allowed["cudnn"] = bool(enabled)


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Choices for a block, in the older form of `nn.attention.sdpa_kernel`."""
    before = dict(_allowed)
    _allowed.update(
        flash=enable_flash,
        math=enable_math,
        mem_efficient=enable_mem_efficient,
        cudnn=enable_cudnn,
    )
    try:
        yield
    finally:
        _allowed.update(before)


_reductions = [True]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Keeps the choice; attention of small floats is computed in float32."""
    _reductions[0] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` was told last."""
    return _reductions[0]


def is_ck_sdpa_available() -> bool:
    """Whether a device has this kernel: no."""
    return False


class _LinalgBackend(enum.Enum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(enum.Enum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(enum.Enum):
    Default = 0
    AOTriton = 1
    Ck = 2


def _preferred(name: str, kinds: Any, backend: Any) -> Any:
    """The default, which alone may be chosen: other libraries need a device."""
    if isinstance(backend, str):
        known = {kind.name.lower(): kind for kind in kinds}
        if backend not in known:
            raise RuntimeError(f"{name}: choose from {', '.join(known)}; got {backend!r}")
        backend = known[backend]
    if backend not in (None, kinds.Default):
        raise RuntimeError(f"{name}: {backend.name} needs a CUDA device, and there is none")
    return kinds.Default


def preferred_linalg_library(backend: Any = None) -> Any:
    """The library for factorizations on a device: the default.

    Args:
        backend: "default", or None to ask.
    """
    return _preferred("preferred_linalg_library", _LinalgBackend, backend)


def preferred_blas_library(backend: Any = None) -> Any:
    """The library for products on a device: the default.

    Args:
        backend: "default", or None to ask.
    """
    return _preferred("preferred_blas_library", _BlasBackend, backend)


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """The library for attention on a device: the default.

    Args:
        backend: "default", or None to ask.
    """
    return _preferred("preferred_rocm_fa_library", _ROCmFABackend, backend)
