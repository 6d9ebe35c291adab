"""Attention over ragged batches: each row attends to its own elements, none to padding."""

from __future__ import annotations

from typing import Any

import clew
from clew._C import Tensor
from clew.nested._tensor import Rows, is_ragged, need_same_rows, ragged

__all__ = ["RULES", "attend"]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: Rows,
    key_rows: Rows,
    *,
    attn_mask: Any = None,
    is_causal: bool = False,
    **options: Any,
) -> Tensor:
    """Attention of heads over rows that lie one behind the other.

    Args:
        query: (elements, heads, width).
        key: (elements of the keys' rows, heads, width).
        value: (elements of the keys' rows, heads, width of values).
        rows: the queries'.
        key_rows: the keys', as many.
        attn_mask: None, or a matrix for the longest rows, of which each row takes the beginning.
        is_causal: whether elements attend to none behind them.
        options: further ones, as for `scaled_dot_product_attention`.

    Returns:
        (elements, heads, width of values).
    """
    fn = clew.nn.functional.scaled_dot_product_attention
    if is_causal:  # what the mask says, too
        attn_mask = None
    if attn_mask is not None and (
        attn_mask.dim() != 2
        or attn_mask.shape[0] < rows.longest
        or attn_mask.shape[1] < key_rows.longest
    ):
        raise RuntimeError(
            "attention: a mask for ragged tensors must be a matrix for the longest rows, at least "
            f"{rows.longest} x {key_rows.longest}; got shape {list(attn_mask.shape)}"
        )

    # Heads in front, in views; one call for each row.
    def cut(t: Tensor, counts: list[int]) -> Any:
        return t.transpose(0, 1).unsqueeze(0).split(counts, 2)

    def mask(n: int, m: int) -> Any:
        return None if attn_mask is None else attn_mask[:n, :m]

    made = [
        fn(q, k, v, mask(n, m), is_causal=is_causal, **options).squeeze(0).transpose(0, 1)
        for q, k, v, n, m in zip(
            cut(query, rows.counts),
            cut(key, key_rows.counts),
            cut(value, key_rows.counts),
            rows.counts,
            key_rows.counts,
        )
    ]
    if not made:
        return query.new_zeros((0, query.shape[1], value.shape[2]))
    return clew.cat(made)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    name = "scaled_dot_product_attention"
    if not all(map(is_ragged, (query, key, value))):
        raise RuntimeError(
            f"{name}: query, key and value must all be ragged, or none of them; make a ragged "
            "tensor of a dense one with clew.nested.as_nested_tensor"
        )
    if attn_mask is not None and is_causal:
        raise RuntimeError(f"{name}: attn_mask and is_causal=True cannot both be given")
    q, k, v = (x.packed() for x in (query, key, value))
    if all(len(x._sizes()) > 3 and x._at == 1 for x in (q, k, v)):  # the ragged dim is a batch's
        need_same_rows(name, (q, k, v))
        made = clew.nn.functional.scaled_dot_product_attention(
            q._elements,
            k._elements,
            v._elements,
            attn_mask,
            dropout_p,
            is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
        )
        return ragged(q._rows, made, 1)
    if any(len(x._sizes()) != 4 or x._at != 2 for x in (q, k, v)):
        raise RuntimeError(
            f"{name}: ragged tensors must be (batch, heads, ragged length, width); got "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}; make them so with "
            ".unflatten(-1, (heads, width)).transpose(1, 2)"
        )
    if len(q._rows.counts) != len(k._rows.counts) or not k._rows.is_like(v._rows):
        raise RuntimeError(
            f"{name}: query, key and value must have the same number of rows, and those of key and "
            f"value the same lengths; got {list(query.shape)}, {list(key.shape)} and "
            f"{list(value.shape)}"
        )
    made = attend(
        q._elements.transpose(0, 1),
        k._elements.transpose(0, 1),
        v._elements.transpose(0, 1),
        q._rows,
        k._rows,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )
    return ragged(q._rows, made.transpose(0, 1), 2)


RULES: dict[str, Any] = {"scaled_dot_product_attention": scaled_dot_product_attention}
