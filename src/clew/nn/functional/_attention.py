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
        raise AssertionError(
            f"multi_head_attention_forward: only bool and floating types of {mask_name} are "
            f"supported"
        )
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
            f"multi_head_attention_forward: query should be unbatched 2D or batched 3D tensor "
            f"but received {dims}-D query tensor"
        )
    batched = dims == 3
    word = "batched" if batched else "unbatched"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"multi_head_attention_forward: For {word} ({dims}-D) `query`, expected `key` and "
            f"`value` to be {dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"multi_head_attention_forward: For {word} ({dims}-D) `query`, expected "
            f"`key_padding_mask` to be `None` or "
            f"{dims - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"multi_head_attention_forward: For {word} ({dims}-D) `query`, expected "
                f"`attn_mask` to be `None`, 2-D or 3-D but "
                f"found {attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            want = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != want:
                raise AssertionError(
                    f"multi_head_attention_forward: Expected `attn_mask` shape to be {want} but "
                    f"got {tuple(attn_mask.shape)}"
                )
    return batched


def _check_sizes(
    query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, weights_apart: bool
) -> None:
    """Raises if the last dims do not fit the weights, or keys are not as many as values."""
    embed = query.shape[-1]
    if embed != embed_dim:
        raise AssertionError(
            f"multi_head_attention_forward: was expecting embedding dimension of {embed_dim}, but "
            f"got {embed}"
        )
    if embed // num_heads * num_heads != embed:
        raise AssertionError(
            f"multi_head_attention_forward: embed_dim {embed} not divisible by num_heads "
            f"{num_heads}"
        )
    if weights_apart:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"multi_head_attention_forward: key's sequence and batch dims {key.shape[:2]} do "
                f"not match value's "
                f"{value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(
            f"multi_head_attention_forward: key shape {key.shape} does not match value shape "
            f"{value.shape}"
        )


def _summands(
    attn_mask: Any, key_padding_mask: Any, dtype: Any, is_causal: bool, need_weights: bool
) -> tuple[Any, Any, bool]:
    """Both masks as summands or None, and whether the first is the causal one and not needed."""
    key_padding_mask = canonical_mask(
        key_padding_mask,
        "key_padding_mask",
        None if attn_mask is None else attn_mask.dtype,
        "attn_mask",
        dtype,
    )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", dtype)
    return attn_mask, key_padding_mask, is_causal and key_padding_mask is None


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Queries, keys and values by one weight, or a list of three; one product for inputs that are
    of the same tensor."""
    if not isinstance(weight, list):
        if query is key and key is value:
            return linear(query, weight, bias).chunk(3, -1)
        if key is value:
            embed = query.shape[-1]
            w_q, w_kv = weight.split([embed, 2 * embed])
            b_q, b_kv = (None, None) if bias is None else bias.split([embed, 2 * embed])
            q = linear(query, w_q, b_q)
            return q, *linear(key, w_kv, b_kv).chunk(2, -1)
        weight = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    given = zip((query, key, value), weight, biases, strict=True)
    return [linear(x, w, b) for x, w, b in given]


def _in_heads(x: Any, static: Any, what: str, batch_heads: int, head: int) -> Any:
    """Projected keys or values with their heads apart, or those that were given so."""
    if static is None:
        return x.reshape(x.shape[0], batch_heads, head).transpose(0, 1)
    if (static.shape[0], static.shape[2]) != (batch_heads, head):
        raise AssertionError(
            f"multi_head_attention_forward: {what} must be ({batch_heads}, *, {head}); got "
            f"{tuple(static.shape)}"
        )
    return static


def _for_one_more(mask: Any) -> Any:
    """A mask with a column of zeros for one more key, which it thus leaves visible."""
    return None if mask is None else pad(mask, (0, 1))


def _for_all_heads(mask: Any, length: int, sources: int, heads: int) -> Any:
    """An attn_mask with a dim for heads, of whatever batch; raises for another shape."""
    dims = mask.dim()
    want = (length, sources) if dims == 2 else (heads, length, sources)
    if tuple(mask.shape) != want:
        raise RuntimeError(
            f"multi_head_attention_forward: The shape of the {dims}D attn_mask is {mask.shape}, "
            f"but should be {want}."
        )
    return mask.unsqueeze(0) if dims == 2 else mask


def _of_each_head(padding: Any, batch: int, sources: int, num_heads: int) -> Any:
    """A key_padding_mask as an attn_mask; raises for another shape."""
    if tuple(padding.shape) != (batch, sources):
        raise AssertionError(
            "multi_head_attention_forward: expecting key_padding_mask shape of "
            f"{(batch, sources)}, but got {tuple(padding.shape)}"
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
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "multi_head_attention_forward: Need attn_mask if specifying the is_causal hint."
        )
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    length, batch, embed = query.shape
    head = embed // num_heads
    attn_mask, key_padding_mask, is_causal = _summands(
        attn_mask, key_padding_mask, query.dtype, is_causal, need_weights
    )

    weight = in_proj_weight
    if use_separate_proj_weight:
        weight = [q_proj_weight, k_proj_weight, v_proj_weight]
    q, k, v = _projected(query, key, value, weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _for_all_heads(attn_mask, length, key.shape[0], batch * num_heads)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(
                "multi_head_attention_forward: bias cannot be added to static key or value."
            )
        k = clew.cat([k, bias_k.expand(1, batch, embed)])
        v = clew.cat([v, bias_v.expand(1, batch, embed)])
        attn_mask, key_padding_mask = _for_one_more(attn_mask), _for_one_more(key_padding_mask)
    q = _in_heads(q, None, "", batch * num_heads, head)
    k = _in_heads(k, static_k, "static_k", batch * num_heads, head)
    v = _in_heads(v, static_v, "static_v", batch * num_heads, head)
    if add_zero_attn:
        zero = clew.zeros(batch * num_heads, 1, head, dtype=k.dtype)
        k = clew.cat([k, zero], 1)
        v = clew.cat([v, zero], 1)
        attn_mask, key_padding_mask = _for_one_more(attn_mask), _for_one_more(key_padding_mask)
    if key_padding_mask is not None:
        hidden = _of_each_head(key_padding_mask, batch, k.shape[1], num_heads)
        attn_mask = hidden if attn_mask is None else attn_mask + hidden

    dropped = dropout_p if training else 0.0
    if need_weights:
        out, weights = _with_weights(q, k, v, attn_mask, dropped)
    else:
        q, k, v = (x.reshape(batch, num_heads, x.shape[1], head) for x in (q, k, v))
        out, weights = _alone(q, k, v, attn_mask, dropped, is_causal), None
    out = linear(out.reshape(length * batch, embed), out_proj_weight, out_proj_bias)
    out = out.unflatten(0, (length, batch))
    if weights is not None:
        weights = weights.reshape(batch, num_heads, length, k.shape[1])
        if average_attn_weights:
            weights = weights.mean(1)
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def _with_weights(q: Any, k: Any, v: Any, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    """What attention gives, the sequence's dim first, and its weights; (N * heads, L, E / heads)
    each."""
    scores = clew.bmm(q * math.sqrt(1.0 / q.shape[-1]), k.transpose(1, 2))
    if mask is not None:
        scores = scores + mask
    weights = clew.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return clew.bmm(weights, v).transpose(0, 1), weights


def _alone(q: Any, k: Any, v: Any, mask: Any, dropout_p: float, is_causal: bool) -> Any:
    """What attention gives, the sequence's dim first; q, k and v are (N, heads, L, E / heads)."""
    if mask is not None:
        one_for_all = mask.shape[0] == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if one_for_all else mask.unflatten(0, q.shape[:2])
    causal = is_causal and mask is None
    return scaled_dot_product_attention(q, k, v, mask, dropout_p, causal).permute(2, 0, 1, 3)
