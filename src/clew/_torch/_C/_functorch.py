"""Questions about tensors inside function transforms."""

from __future__ import annotations

from typing import Any

from clew import Tensor, _C


def is_batchedtensor(t: Any) -> bool:
    """Whether a tensor stands for a sample of a vmap."""
    return isinstance(t, Tensor) and bool(_C._levels(t))


def is_gradtrackingtensor(t: Any) -> bool:
    """False: grad() makes no tensors of another kind."""
    return False


is_functionaltensor = is_legacy_batchedtensor = is_gradtrackingtensor


def is_functorch_wrapped_tensor(t: Any) -> bool:
    """Whether a tensor stands for a sample of a vmap."""
    return is_batchedtensor(t)


def maybe_get_level(t: Any) -> int:
    """The innermost vmap that a tensor is a sample of; -1 of none."""
    levels = _C._levels(t)
    return levels.bit_length() if levels else -1


def get_unwrapped(t: Any) -> Any:
    """The tensor of all samples."""
    return _C._physical(t) if hasattr(_C, "_physical") else t
