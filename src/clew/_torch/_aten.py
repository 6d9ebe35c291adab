"""Operations that PyTorch has below its public functions, by their names there.

Each takes what PyTorch's takes and gives what it gives, written with clew's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew import Tensor
from clew.nn import functional as F

__all__ = ["FUNCTIONS", "SELU"]

_REDUCTIONS = ("none", "mean", "sum")


def _unsafe_view(self: Tensor, size: Sequence[int]) -> Tensor:
    return self.reshape(tuple(size))


def _softmax(self: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return self.softmax(dim)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return self.log_softmax(dim)


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    kept = target != ignore_index
    own = clew.ones_like(target, dtype=self.dtype) if weight is None else weight[target * kept]
    loss = F.nll_loss(
        self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction]
    )
    return loss, (own * kept).sum()


def _loss(name: str, extra: tuple[str, ...] = ()) -> Callable[..., Tensor]:
    """A loss whose last arguments are the number of its reduction and `extra`."""

    def loss(self: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        given = dict(zip(("reduction", *extra), args), **kwargs)
        reduction = _REDUCTIONS[given.pop("reduction", 1)]
        out: Tensor = getattr(F, name)(self, target, reduction=reduction, **given)
        return out

    return loss


def _cross_entropy_with_logits(
    self: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Tensor:
    return F.binary_cross_entropy_with_logits(
        self, target, weight, pos_weight=pos_weight, reduction=_REDUCTIONS[reduction]
    )


def _cross_entropy(self: Tensor, target: Tensor, weight: Any = None, reduction: int = 1) -> Tensor:
    return F.binary_cross_entropy(self, target, weight, reduction=_REDUCTIONS[reduction])


def _pooling(name: str) -> Callable[..., Any]:
    def pool(self: Tensor, kernel_size: Any, *args: Any, **kwargs: Any) -> Any:
        if args and args[0] == []:
            args = (None, *args[1:])
        return getattr(F, name)(self, kernel_size, *args, **kwargs)

    return pool


def _with_indices(name: str) -> Callable[..., Any]:
    pool = _pooling(name)
    return lambda *args, **kwargs: pool(*args, **kwargs, return_indices=True)


def _flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    out = F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.detach() @ key.detach().transpose(-2, -1) * factor
    if is_causal:
        scores = scores + clew.full(scores.shape[-2:], float("-inf")).triu(1)
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, float("-inf"))
            if attn_mask.dtype == clew.bool
            else scores + attn_mask
        )
    return out, scores.logsumexp(-1)


def _native_batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return out, input.new_zeros(0), input.new_zeros(0)
    dims = [d for d in range(len(input.shape)) if d != 1]
    var, mean = clew.var_mean(input.detach(), dims, correction=0)
    return out, mean, (var + eps).rsqrt()


def _reflection(self: Tensor, padding: Sequence[int]) -> Tensor:
    return F.pad(self, list(padding), mode="reflect")


def _replication(self: Tensor, padding: Sequence[int]) -> Tensor:
    return F.pad(self, list(padding), mode="replicate")


def _constant_pad(self: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    return F.pad(self, list(pad), value=value)


def _prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return clew.where(self >= 0, self, self * weight)


def _log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    return F.logsigmoid(self), (-self.detach().abs()).exp()


def _vector_norm(
    self: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    return clew.linalg.vector_norm(self, ord, dim, keepdim, dtype=dtype)


# The slope at the left and the scale of selu(), which the dispatcher shows as an elu().
SELU = (1.6732632423543772, 1.0507009873554805)


def _elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    if (alpha, scale, input_scale) == (*SELU, 1):
        return F.selu(self)
    if input_scale == 1:
        made = F.elu(self, alpha)
    else:  # of what is not positive
        made = clew.where(self > 0, self, F.elu(self.clamp(max=0) * input_scale, alpha))
    return made if scale == 1 else made * scale


def _elu_(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    if (alpha, scale, input_scale) == (*SELU, 1):
        return F.selu(self, inplace=True)
    if input_scale != 1:
        return self.copy_(_elu(self, alpha, scale, input_scale))
    made = F.elu(self, alpha, inplace=True)
    return made if scale == 1 else made.mul_(scale)


def _embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    return F.embedding(
        indices,
        weight,
        None if padding_idx < 0 else padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )


def _same(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(F, name)(*args, **kwargs)


def _inplace(name: str) -> Callable[..., Any]:
    return lambda *args: getattr(F, name)(*args, inplace=True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_adaptive_avg_pool2d": _same("adaptive_avg_pool2d"),
    "_adaptive_avg_pool3d": _same("adaptive_avg_pool3d"),
    "_local_scalar_dense": lambda self: self.item(),
    "_log_softmax": _log_softmax,
    "_prelu_kernel": _prelu_kernel,
    "_scaled_dot_product_flash_attention_for_cpu": _flash_attention_for_cpu,
    "_softmax": _softmax,
    "_unsafe_view": _unsafe_view,
    "adaptive_max_pool2d": lambda self, size: F.adaptive_max_pool2d(self, size, True),
    "adaptive_max_pool3d": lambda self, size: F.adaptive_max_pool3d(self, size, True),
    "avg_pool2d": _pooling("avg_pool2d"),
    "avg_pool3d": _pooling("avg_pool3d"),
    "binary_cross_entropy": _cross_entropy,
    "binary_cross_entropy_with_logits": _cross_entropy_with_logits,
    "clone": lambda self, memory_format=None: self.clone(
        memory_format=memory_format or clew.preserve_format
    ),
    "constant_pad_nd": _constant_pad,
    "embedding": _embedding,
    "elu": _elu,
    "elu_": _elu_,
    "huber_loss": _loss("huber_loss", ("delta",)),
    "lift_fresh": lambda self: self,
    "linalg_vector_norm": _vector_norm,
    "log_sigmoid_forward": _log_sigmoid_forward,
    "max_pool2d_with_indices": _with_indices("max_pool2d"),
    "max_pool3d_with_indices": _with_indices("max_pool3d"),
    "mse_loss": _loss("mse_loss"),
    "native_batch_norm": _native_batch_norm,
    "nll_loss_forward": nll_loss_forward,
    "reflection_pad1d": _reflection,
    "reflection_pad2d": _reflection,
    "reflection_pad3d": _reflection,
    "replication_pad1d": _replication,
    "replication_pad2d": _replication,
    "replication_pad3d": _replication,
    "smooth_l1_loss": _loss("smooth_l1_loss", ("beta",)),
}
FUNCTIONS |= {name: _same(name) for name in "gelu glu softplus".split()}
for _name in "leaky_relu silu hardswish hardsigmoid mish hardtanh".split():
    FUNCTIONS |= {_name: _same(_name), _name + "_": _inplace(_name)}
