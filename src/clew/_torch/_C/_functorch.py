"""Questions about tensors inside function transforms."""

from __future__ import annotations

from typing import Any

from clew import _C, Tensor


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


def _add_batch_dim(tensor: Tensor, dim: int, level: int) -> Tensor:
    """A tensor as a sample of the vmap of a level, counted from 1."""
    return _C._add_level(tensor, dim, level - 1)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """A sample of the vmap of a level as the tensor of all samples."""
    return _C._remove_level(tensor, level - 1).movedim(0, out_dim)
