"""multi_head_attention_forward: the projections, masks and products of MultiheadAttention."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import dropout, linear, pad, scaled_dot_product_attention


def canonical_mask(
    mask: Any, mask_name: str, other_type: Any, other_name: str, target_type: Any
) -> Any:
    """A boolean mask as a summand: -inf where it is True; a float mask as it is.

    Args:
        mask: the mask or None.
        mask_name: for messages.
        other_type: dtype of the mask it will be used with.
        other_name: for messages.
        target_type: the summand's dtype.

    Returns:
        a floating point mask or None.
    """
    if mask is None:
        return None
    if mask.dtype != clew.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if other_type is not None and mask.dtype != other_type:
        import warnings

        warnings.warn(
            f"{mask_name} and {other_name} have different dtypes; use the same for both",
            stacklevel=user_level(),
        )
    if mask.dtype == clew.bool:
        return clew.zeros(mask.shape, dtype=target_type).masked_fill(mask, -math.inf)
    return mask


def _check_shapes(
    query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int
) -> bool:
    """Whether the input is batched; raises if the shapes do not go together."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
        )
    batched = dims == 3
    word = "batched" if batched else "unbatched"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or "
            f"{dims - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {word} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
                f"found {attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            want = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != want:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {want} but got {tuple(attn_mask.shape)}"
                )
    return batched


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Queries, keys and values by their parts of one weight; one product for keys and values that
    are of the same tensor."""
    if key is value:
        embed = query.shape[-1]
        w_q, w_kv = weight.split([embed, 2 * embed])
        b_q, b_kv = (None, None) if bias is None else bias.split([embed, 2 * embed])
        q = linear(query, w_q, b_q)
        return q, *linear(key, w_kv, b_kv).chunk(2, -1)
    weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    given = zip((query, key, value), weights, biases, strict=True)
    return [linear(x, w, b) for x, w, b in given]


def _for_all_heads(mask: Any, length: int, sources: int, heads: int) -> Any:
    """An attn_mask with a dim for heads, of whatever batch; raises for another shape."""
    dims = mask.dim()
    want = (length, sources) if dims == 2 else (heads, length, sources)
    if tuple(mask.shape) != want:
        raise RuntimeError(
            f"The shape of the {dims}D attn_mask is {mask.shape}, but should be {want}."
        )
    return mask.unsqueeze(0) if dims == 2 else mask


def _of_each_head(padding: Any, batch: int, sources: int, num_heads: int) -> Any:
    """A key_padding_mask as an attn_mask; raises for another shape."""
    if tuple(padding.shape) != (batch, sources):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(batch, sources)}, but got "
            f"{tuple(padding.shape)}"
        )
    return (
        padding.reshape(batch, 1, 1, sources)
        .expand(batch, num_heads, 1, sources)
        .reshape(batch * num_heads, 1, sources)
    )


@asks_classes
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[clew.Tensor, clew.Tensor | None]:
    """Attention of several heads, as MultiheadAttention computes it.

    softmax(q k^T / sqrt(E / heads)) v for each head, heads joined and projected: Vaswani and
    others, Attention is all you need, 2017, section 3.2.2.

    Args:
        query: (L, N, E) or (L, E).
        key: (S, N, Ek) or (S, Ek).
        value: (S, N, Ev) or (S, Ev).
        embed_dim_to_check: E.
        num_heads: how many heads share E.
        in_proj_weight: (3E, E), or None with use_separate_proj_weight.
        in_proj_bias: (3E) or None.
        bias_k: one more key, (1, 1, E), or None.
        bias_v: one more value, (1, 1, E), or None.
        add_zero_attn: one more key and value of zeros.
        dropout_p: dropped part of the attention weights.
        out_proj_weight: (E, E).
        out_proj_bias: (E) or None.
        training: apply dropout.
        key_padding_mask: (N, S) or (S), bool or float: True or -inf hides a key.
        need_weights: return the attention weights.
        attn_mask: (L, S) or (N * heads, L, S), bool or float: True hides, or a summand.
        use_separate_proj_weight: use the three following weights.
        q_proj_weight: (E, E).
        k_proj_weight: (E, Ek).
        v_proj_weight: (E, Ev).
        static_k: projected keys to use, (N * heads, S, E / heads).
        static_v: projected values to use.
        average_attn_weights: return the mean over heads.
        is_causal: attn_mask is the causal one; may be used instead of it.

    Returns:
        (output, weights or None): (L, N, E) and (N, L, S), or (N, heads, L, S) without averaging;
        without N where query is unbatched.

    Example:
        >>> x, eye = clew.ones(3, 1, 2), clew.eye(2)
        >>> y, weights = clew.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 2, 1, clew.cat([eye] * 3), None, None, None, False, 0.0, eye, None)
        >>> list(y.shape), list(weights.shape)
        ([3, 1, 2], [1, 3, 3])
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed = query.shape
    sources = key.shape[0]
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    head = embed // num_heads
    if head * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")

    key_padding_mask = canonical_mask(
        key_padding_mask,
        "key_padding_mask",
        None if attn_mask is None else attn_mask.dtype,
        "attn_mask",
        query.dtype,
    )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        if key_padding_mask is not None:
            is_causal = False

    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q = linear(query, q_proj_weight, biases[0])
        k = linear(key, k_proj_weight, biases[1])
        v = linear(value, v_proj_weight, biases[2])
    elif query is key and key is value:  # one product for all
        q, k, v = linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _for_all_heads(attn_mask, length, sources, batch * num_heads)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = clew.cat([k, bias_k.expand(1, batch, embed)])
        v = clew.cat([v, bias_v.expand(1, batch, embed)])
        if attn_mask is not None:
            attn_mask = pad(attn_mask, (0, 1))
        if key_padding_mask is not None:
            key_padding_mask = pad(key_padding_mask, (0, 1))

    def heads(x: Any) -> Any:
        return x.reshape(x.shape[0], batch * num_heads, head).transpose(0, 1)

    q = heads(q)
    for static, what in ((static_k, "static_k"), (static_v, "static_v")):
        if static is not None and (static.shape[0], static.shape[2]) != (batch * num_heads, head):
            raise AssertionError(
                f"{what} must be ({batch * num_heads}, *, {head}); got {tuple(static.shape)}"
            )
    k = heads(k) if static_k is None else static_k
    v = heads(v) if static_v is None else static_v
    if add_zero_attn:
        zero = clew.zeros(batch * num_heads, 1, head, dtype=k.dtype)
        k = clew.cat([k, zero], 1)
        v = clew.cat([v, zero], 1)
        if attn_mask is not None:
            attn_mask = pad(attn_mask, (0, 1))
        if key_padding_mask is not None:
            key_padding_mask = pad(key_padding_mask, (0, 1))
    sources = k.shape[1]
    if key_padding_mask is not None:
        hidden = _of_each_head(key_padding_mask, batch, sources, num_heads)
        attn_mask = hidden if attn_mask is None else attn_mask + hidden
    if not training:
        dropout_p = 0.0

    if need_weights:
        scores = clew.bmm(q * math.sqrt(1.0 / head), k.transpose(1, 2))
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = clew.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = dropout(weights, dropout_p)
        out = clew.bmm(weights, v).transpose(0, 1).reshape(length * batch, embed)
        out = linear(out, out_proj_weight, out_proj_bias).unflatten(0, (length, batch))
        weights = weights.reshape(batch, num_heads, length, sources)
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(1), weights.squeeze(0)
        return out, weights
    if attn_mask is not None:
        if attn_mask.shape[0] == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.unflatten(0, (batch, num_heads))
    out = scaled_dot_product_attention(
        q.reshape(batch, num_heads, length, head),
        k.reshape(batch, num_heads, sources, head),
        v.reshape(batch, num_heads, sources, head),
        attn_mask,
        dropout_p,
        is_causal and attn_mask is None,
    )
    out = out.permute(2, 0, 1, 3).reshape(length * batch, embed)
    out = linear(out, out_proj_weight, out_proj_bias).unflatten(0, (length, batch))
    return (out if batched else out.squeeze(1)), None
