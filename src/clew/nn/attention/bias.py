"""Causal masks for queries and keys of different lengths."""

from __future__ import annotations

import enum
from typing import Any

import clew

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the score matrix the diagonal starts from."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(clew.Tensor):
    """A causal mask that knows its kind; of bool, True where a key is seen.

    Args:
        variant: a CausalVariant.
        seq_len_q: queries.
        seq_len_kv: keys.

    Example:
        >>> from clew.nn.attention.bias import CausalBias, CausalVariant
        >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3).tolist()
        [[True, True, False], [True, True, True]]
    """

    __torch_function__ = clew._C._disabled_torch_function_impl

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: variant must be a CausalVariant; got {variant!r}")
        whole = clew.ones(seq_len_q, seq_len_kv, dtype=clew.bool)
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask: Any = whole.tril(shift).as_subclass(cls)
        mask.variant = variant
        mask.seq_len_q = seq_len_q
        mask.seq_len_kv = seq_len_kv
        return mask

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        pass


def causal_upper_left(*size: int) -> CausalBias:
    """A mask that lets query i see keys 0 to i.

    Args:
        size: queries and keys.

    Returns:
        (queries, keys) of bool.

    >>> clew.nn.attention.bias.causal_upper_left(2, 3).shape
    clew.Size([2, 3])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size: int) -> CausalBias:
    """A mask that lets the last query see all keys, and each earlier one a key less.

    Args:
        size: queries and keys.

    Returns:
        (queries, keys) of bool.

    >>> clew.nn.attention.bias.causal_lower_right(2, 3).shape
    clew.Size([2, 3])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))


def _two(size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise RuntimeError(f"a causal mask has 2 dims; got {len(size)}")
    return size
