"""Transformer layers, encoder, decoder and the whole model."""

from __future__ import annotations

import copy
from typing import Any

import clew

from .. import functional as F
from ..functional._attention import canonical_mask
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm
from .utils import check_layers

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    full = clew.full((size, size), float("-inf"), device=device, dtype=dtype)
    return clew.triu(full, diagonal=1)


def _get_clones(module: Any, n: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"Transformer: the layer must be a Module; got {type(module).__name__}")
    check_layers("Transformer", n)
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: Any) -> Any:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(
        f"Transformer: activation should be relu/gelu, not {activation}; a function may be "
        f"given, too"
    )


def _is_causal(mask: Any, is_causal: bool | None, size: int | None) -> bool:
    """Whether a mask is the causal one, if that was not said."""
    if is_causal is not None:
        return is_causal
    if mask is None or size is None:
        return False
    causal = _causal_mask(size, mask.device, None if mask.dtype == clew.bool else mask.dtype)
    if tuple(mask.shape) != tuple(causal.shape):
        return False
    if mask.dtype == clew.bool:
        causal = causal < 0
    return bool((mask == causal).all())


def _length(x: Any, batch_first: bool) -> int | None:
    if x.dim() == 2:
        return int(x.shape[0])
    return int(x.shape[1 if batch_first else 0])


class TransformerEncoderLayer(Module):
    """Self-attention and a two-layer network, each with a residual connection and a norm.

    x = norm1(x + attention(x)), x = norm2(x + W2 activation(W1 x + b1) + b2), Vaswani et al. 2017,
    arXiv:1706.03762, section 3.1; with norm_first x + attention(norm1(x)) and so on (Xiong et al.
    2020, arXiv:2002.04745).

    Args:
        d_model: width E.
        nhead: heads of the attention; must divide d_model.
        dim_feedforward: inner width of the network.
        dropout: probability of a zero in training, after each part and within it.
        activation: "relu", "gelu" or a function, of the network's inner layer.
        layer_norm_eps: eps of the norms.
        batch_first: (N, T, E) instead of (T, N, E).
        norm_first: norms before attention and network instead of after.
        bias: biases of all layers.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        src: (S, N, E), (N, S, E) with batch_first, or (S, E); E = d_model.
        src_mask: (S, S) or (N * nhead, S, S); True keeps a key out, a float is added to the scores.
        src_key_padding_mask: (N, S) or (S); likewise.
        returns: src's shape.

    Raises:
        RuntimeError: for another name of an activation.

    Example:
        >>> layer = clew.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> tuple(layer(clew.ones(1, 4, 8)).shape)
        (1, 4, 8)
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kw: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **kw
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kw)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kw)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)
        # 1 and 2 as in PyTorch, whose fast path asks for it.
        self.activation_relu_or_gelu = {F.relu: 1, F.gelu: 2}.get(self.activation, 0)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        src_key_padding_mask = canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            None,
            "src_mask",
            src.dtype,
        )
        src_mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Any, mask: Any, padding: Any, is_causal: bool = False) -> Any:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention over a memory and a two-layer network.

    Each has a residual connection and a norm after it, or before it with norm_first. Vaswani et al.
    2017, arXiv:1706.03762, section 3.1.

    Args:
        d_model: width E.
        nhead: heads of the attentions; must divide d_model.
        dim_feedforward: inner width of the network.
        dropout: probability of a zero in training, after each part and within it.
        activation: "relu", "gelu" or a function, of the network's inner layer.
        layer_norm_eps: eps of the norms.
        batch_first: (N, T, E) instead of (T, N, E).
        norm_first: norms before attentions and network instead of after.
        bias: biases of all layers.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        tgt: (T, N, E), (N, T, E) with batch_first, or (T, E); E = d_model.
        memory: (S, N, E), (N, S, E) with batch_first, or (S, E).
        tgt_mask: (T, T) or (N * nhead, T, T); True keeps a key out, a float is added to the scores.
        memory_mask: (T, S) or (N * nhead, T, S); likewise.
        tgt_key_padding_mask: (N, T) or (T); likewise.
        memory_key_padding_mask: (N, S) or (S); likewise.
        returns: tgt's shape.

    Raises:
        RuntimeError: for another name of an activation.

    Example:
        >>> layer = clew.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        >>> layer(clew.ones(1, 4, 8), clew.ones(1, 6, 8)).shape
        clew.Size([1, 4, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kw: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **kw
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **kw
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kw)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kw)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Any, mask: Any, padding: Any, is_causal: bool = False) -> Any:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(x)

    def _mha_block(self, x: Any, mem: Any, mask: Any, padding: Any, is_causal: bool = False) -> Any:
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of encoder layers, each a copy of one.

    Vaswani et al. 2017, arXiv:1706.03762, section 3.1.

    Args:
        encoder_layer: the layer, copied num_layers times.
        num_layers: how many.
        norm: a norm of the output, or None.
        enable_nested_tensor: zeros at padded places in evaluation, as below.
        mask_check: only where each row's padding lies at its end.

    Where PyTorch drops padding, the layers' results at padded places are zeros here, too, also
    those of a row that is nothing but padding: in evaluation with batch_first, for a
    src_key_padding_mask without a mask, while no gradient is recorded and autocast is off, if the
    layers are TransformerEncoderLayers with biases, norms last, relu or gelu and an even number of
    heads.

    Shapes:
        src: as the layer takes it: (S, N, E), or (N, S, E) with its batch_first, or (S, E).
        mask: (S, S) or (N * nhead, S, S); True keeps a key out, a float is added to the scores.
        src_key_padding_mask: (N, S) or (S); likewise.
        returns: src's shape.

    Raises:
        TypeError: for an encoder_layer that is no Module.

    Example:
        >>> layer = clew.nn.TransformerEncoderLayer(8, 2, 16)
        >>> clew.nn.TransformerEncoder(layer, 2)(clew.ones(4, 1, 8)).shape
        clew.Size([4, 1, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _drops_padding(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        src_key_padding_mask = canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            None,
            "mask",
            src.dtype,
        )
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        if mask is not None and is_causal is None:
            attn = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
            size = _length(src, getattr(attn, "batch_first", False))
            is_causal = _is_causal(mask, is_causal, size)
        out = src
        for layer in self.layers:
            out = layer(
                out,
                src_mask=mask,
                is_causal=bool(is_causal),
                src_key_padding_mask=src_key_padding_mask,
            )
        if src_key_padding_mask is not None and self._fills_padding(src, mask):
            padded = src_key_padding_mask != 0
            if self.mask_check:  # else nothing is filled; no value is asked for
                padded = padded & ~(padded[:, :-1] & ~padded[:, 1:]).any()
            out = out.masked_fill(padded.unsqueeze(-1), 0.0)
        return out if self.norm is None else self.norm(out)

    def _fills_padding(self, src: Any, mask: Any) -> bool:
        if not getattr(self, "use_nested_tensor", False) or mask is not None or src.is_nested:
            return False
        first = self.layers[0]
        if first.training or src.dim() != 3 or clew.is_autocast_enabled():
            return False
        return not (clew.is_grad_enabled() and any(t.requires_grad for t in _read(first, src)))


def _drops_padding(layer: Any) -> bool:
    """Whether PyTorch's encoder of such layers drops padding in evaluation."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn._qkv_same_embed_dim
        and layer.self_attn.in_proj_bias is not None
        and bool(layer.activation_relu_or_gelu)
        and layer.norm1.eps == layer.norm2.eps
        and layer.self_attn.num_heads % 2 == 0
    )


def _read(layer: Any, src: Any) -> list[Any]:
    attn = layer.self_attn
    parts = (attn.out_proj, layer.norm1, layer.norm2, layer.linear1, layer.linear2)
    own = [attn.in_proj_weight, attn.in_proj_bias, *(t for m in parts for t in (m.weight, m.bias))]
    return [src, *(t for t in own if t is not None)]


class TransformerDecoder(Module):
    """A stack of decoder layers, each a copy of one.

    Vaswani et al. 2017, arXiv:1706.03762, section 3.1.

    Args:
        decoder_layer: the layer, copied num_layers times.
        num_layers: how many.
        norm: a norm of the output, or None.

    Shapes:
        tgt: as the layer takes it: (T, N, E), or (N, T, E) with its batch_first, or (T, E).
        memory: (S, N, E), (N, S, E) or (S, E) likewise.
        tgt_mask: (T, T) or (N * nhead, T, T); True keeps a key out, a float is added to the scores.
        memory_mask: (T, S) or (N * nhead, T, S); likewise.
        tgt_key_padding_mask: (N, T) or (T); likewise.
        memory_key_padding_mask: (N, S) or (S); likewise.
        returns: tgt's shape.

    Raises:
        TypeError: for a decoder_layer that is no Module.

    Example:
        >>> layer = clew.nn.TransformerDecoderLayer(8, 2, 16)
        >>> clew.nn.TransformerDecoder(layer, 2)(clew.ones(4, 1, 8), clew.ones(6, 1, 8)).shape
        clew.Size([4, 1, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        if tgt_mask is not None and tgt_is_causal is None:
            attn = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
            size = _length(tgt, getattr(attn, "batch_first", False))
            tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, size)
        out = tgt
        for layer in self.layers:
            out = layer(
                out,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """Encoder and decoder: the decoder reads tgt and what the encoder makes of src.

    Vaswani et al. 2017, arXiv:1706.03762, section 3. Embeddings and positions are the caller's.

    Args:
        d_model: width E.
        nhead: heads of the attentions; must divide d_model.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: inner width of the networks.
        dropout: probability of a zero in training, after each part and within it.
        activation: "relu", "gelu" or a function, of the networks' inner layers.
        custom_encoder: a module to use as encoder instead.
        custom_decoder: a module to use as decoder instead.
        layer_norm_eps: eps of the norms.
        batch_first: (N, T, E) instead of (T, N, E).
        norm_first: norms before attentions and networks instead of after.
        bias: biases of all layers.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        src: (S, N, E), (N, S, E) with batch_first, or (S, E); E = d_model.
        tgt: (T, N, E), (N, T, E) with batch_first, or (T, E); E = d_model.
        src_mask: (S, S) or (N * nhead, S, S); True keeps a key out, a float is added to the scores.
        tgt_mask: (T, T) or (N * nhead, T, T); likewise.
        memory_mask: (T, S) or (N * nhead, T, S); likewise.
        src_key_padding_mask, memory_key_padding_mask: (N, S) or (S); likewise.
        tgt_key_padding_mask: (N, T) or (T); likewise.
        returns: tgt's shape.

    Raises:
        RuntimeError: in forward, for widths other than d_model or batches that differ.

    Example:
        >>> model = clew.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        >>> mask = clew.nn.Transformer.generate_square_subsequent_mask(4)
        >>> model(clew.ones(1, 6, 8), clew.ones(1, 4, 8), tgt_mask=mask).shape
        clew.Size([1, 4, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kw: dict[str, Any] = {"device": device, "dtype": dtype}
        common = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer: Any = TransformerEncoderLayer(*common, **kw)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*common, **kw)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kw)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and tgt.dim() == 3 and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise RuntimeError(
                "Transformer: the batch number of src and tgt must be equal; "
                f"got {src.shape[batch_dim]} and {tgt.shape[batch_dim]}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                "Transformer: the feature number of src and tgt must be equal to d_model, "
                f"{self.d_model}; got {src.shape[-1]} and {tgt.shape[-1]}"
            )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """The causal mask: -inf above the diagonal, zero elsewhere.

        Args:
            sz: its size.
            device: where it lives.
            dtype: what it holds.

        Returns:
            (sz, sz).
        """
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        from ..init import xavier_uniform_

        for param in self.parameters():
            if param.dim() > 1:
                xavier_uniform_(param)
