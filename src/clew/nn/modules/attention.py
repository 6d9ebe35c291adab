"""MultiheadAttention: attention with several heads, as a module."""

from __future__ import annotations

from typing import Any

import clew
from clew._base.arguments import need_tensors

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads, each in its own part of the width.

    Each head is softmax(q k^T / sqrt(head_dim)) v with projections q, k, v of query, key and value
    and head_dim = embed_dim / num_heads; the heads side by side are projected once more. Vaswani et
    al. 2017, arXiv:1706.03762, section 3.2.2.

    Args:
        embed_dim: width E of queries and outputs.
        num_heads: how many heads share it; must divide it.
        dropout: probability with which a weight is zeroed in training.
        bias: whether the projections have biases.
        add_bias_kv: one learned key and value more at the end of the sequence.
        add_zero_attn: one key and value of zeros more.
        kdim: width of keys, embed_dim by default.
        vdim: width of values, embed_dim by default.
        batch_first: (N, T, E) instead of (T, N, E), for inputs and output.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        query: (T, N, E), (N, T, E) with batch_first, or (T, E).
        key: (S, N, kdim), (N, S, kdim) with batch_first, or (S, kdim).
        value: (S, N, vdim), (N, S, vdim) with batch_first, or (S, vdim).
        key_padding_mask: (N, S) or (S); True keeps a key out, a float is added to the scores.
        attn_mask: (T, S) or (N * num_heads, T, S); likewise.
        returns: query's shape, and the weights: (N, T, S) or (T, S); (N, num_heads, T, S) or
            (num_heads, T, S) with average_attn_weights=False; None with need_weights=False. S
            counts the keys of add_bias_kv and add_zero_attn, too.

    Raises:
        AssertionError: for an embed_dim that num_heads does not divide.
        ValueError: for an embed_dim or num_heads that is not positive.

    Example:
        >>> attend = clew.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = clew.ones(1, 5, 8)
        >>> out, weights = attend(x, x, x)
        >>> tuple(out.shape), tuple(weights.shape)
        ((1, 5, 8), (1, 5, 5))
    """

    __constants__ = ["batch_first"]

    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    bias_k: Any
    bias_v: Any
    out_proj: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                "MultiheadAttention: embed_dim must be divisible by num_heads; got "
                f"embed_dim={embed_dim} and num_heads={num_heads}"
            )

        def fresh(*size: int) -> Parameter:
            return Parameter(clew.empty(size, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = fresh(3 * embed_dim, embed_dim)
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = fresh(embed_dim, embed_dim)
            self.k_proj_weight = fresh(embed_dim, self.kdim)
            self.v_proj_weight = fresh(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = fresh(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        if add_bias_kv:
            self.bias_k = fresh(1, 1, embed_dim)
            self.bias_v = fresh(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        try:
            ragged = query.is_nested or key.is_nested or value.is_nested
        except AttributeError:
            need_tensors("MultiheadAttention", query=query, key=key, value=value)
            raise
        if ragged:
            from clew.nested._modules import attention_of

            return attention_of(
                self, query, key, value, key_padding_mask, need_weights, attn_mask, is_causal
            )
        swap = self.batch_first and query.dim() == 3
        if swap:
            # One transposed tensor for several uses keeps the projections together.
            same_kv, same_qk = key is value, query is key
            query = query.transpose(1, 0)
            key = query if same_qk else key.transpose(1, 0)
            value = key if same_kv else value.transpose(1, 0)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if swap else out), weights

    def merge_masks(self, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, Any]:
        """The two masks as one, and its kind: 0 attention, 1 padding, 2 both.

        Args:
            attn_mask: (L, L) or (N * heads, L, L) or None.
            key_padding_mask: (N, L) or None.
            query: (N, L, E).

        Returns:
            (mask or None, kind or None).
        """
        kind = None
        merged = None
        if key_padding_mask is not None:
            kind = 1
            merged = key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch, -1, length, length)
            else:
                merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            if key_padding_mask is not None:
                hidden = key_padding_mask.view(batch, 1, 1, length).expand(
                    -1, self.num_heads, -1, -1
                )
                merged = merged + hidden
        return merged, kind
