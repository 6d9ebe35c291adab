"""Helpers that copies of PyTorch's transformer layers call."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """(sz, sz): 0 on and below the diagonal, -inf above."""
    full = clew.full((sz, sz), float("-inf"), dtype=dtype, device=device)
    return full.triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The length of an input, (N, T, features) with batch_first; of one without batch, its first
    size.
    """
    if src.is_nested:
        return None
    return int(src.shape[1 if batch_first and src.dim() != 2 else 0])


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether attention is causal: as said, else where the mask is the causal one.

    Args:
        mask: additive, (T, T).
        is_causal: what the caller says; None to look at the mask.
        size: T; the mask's last size but one if None.
    """
    if is_causal is not None or mask is None:
        return is_causal is True
    side = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(side, mask.device, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())
