"""Which of PyTorch's attention kernels may run. There is one here, which always may."""

from __future__ import annotations

import contextlib
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
