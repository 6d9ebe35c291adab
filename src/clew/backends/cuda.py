"""CUDA: not part of clew."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

# How a device would multiply; programs set these before asking whether there is one.
matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)


def is_built() -> bool:
    """Whether clew was built with CUDA: no.

    Example:
        >>> clew.backends.cuda.is_built()
        False
    """
    return False
