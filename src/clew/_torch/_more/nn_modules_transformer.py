"""Helpers that copies of PyTorch's transformer layers call."""

from __future__ import annotations

from clew import Tensor
from clew.nn.modules.transformer import _causal_mask, _is_causal, _length

_generate_square_subsequent_mask = _causal_mask


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The length of an input, (N, T, features) with batch_first; of one without batch, its first
    size.
    """
    return None if src.is_nested else _length(src, batch_first)


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether attention is causal: as said, else where the mask is the causal one.

    Args:
        mask: additive, (T, T).
        is_causal: what the caller says; None to look at the mask.
        size: T; the mask's last size but one if None.
    """
    if size is None and mask is not None:
        size = mask.shape[-2]
    return _is_causal(mask, is_causal, size)
