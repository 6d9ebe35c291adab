"""Functions of nn.functional that are native operations, and thin wrappers of such."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import clew
from clew import _C
from clew._base.arguments import need_bools
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

_table = _C.functions


def native(name: str) -> Any:
    """The native function of a public name, from nn.functional's namespace or the top one.

    Args:
        name: the name without its namespace.

    Returns:
        the function; one that raises NotImplementedError where the core has none.
    """
    found = _table.get("nn.functional." + name) or _table.get(name) or _table.get("special." + name)
    if found is None:

        def found(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"nn.functional.{name}: this build has no such operation")

        found.__name__ = name
    return found


def private(name: str) -> Any:
    """A native function that is not public.

    Args:
        name: its name, with the underscore.

    Returns:
        the function, or None.
    """
    return getattr(_C.ops, name, None)


# Activations.
relu = native("relu")
relu6 = native("relu6")
elu = native("elu")
selu = native("selu")
celu = native("celu")
leaky_relu = native("leaky_relu")
prelu = native("prelu")
gelu = native("gelu")
silu = native("silu")
mish = native("mish")
hardswish = native("hardswish")
hardsigmoid = native("hardsigmoid")
_hardtanh = native("hardtanh")
hardshrink = native("hardshrink")
logsigmoid = native("logsigmoid")
softplus = native("softplus")
softshrink = native("softshrink")
softsign = native("softsign")
tanhshrink = native("tanhshrink")
threshold = native("threshold")
sigmoid = native("sigmoid")
tanh = native("tanh")
relu_ = native("relu_")
elu_ = native("elu_")
selu_ = native("selu_")
celu_ = native("celu_")
leaky_relu_ = native("leaky_relu_")
hardtanh_ = native("hardtanh_")
threshold_ = native("threshold_")

# Products and convolutions.
linear = native("linear")
bilinear = native("bilinear")
glu = native("glu")
conv1d = native("conv1d")
conv2d = native("conv2d")
conv3d = native("conv3d")
conv_transpose1d = native("conv_transpose1d")
conv_transpose2d = native("conv_transpose2d")
conv_transpose3d = native("conv_transpose3d")
unfold = native("unfold")
fold = native("fold")
scaled_dot_product_attention = native("scaled_dot_product_attention")

# Pooling without indices.
avg_pool1d = native("avg_pool1d")
avg_pool2d = native("avg_pool2d")
avg_pool3d = native("avg_pool3d")

# Normalisation.
layer_norm = native("layer_norm")
group_norm = native("group_norm")
batch_norm = native("batch_norm")
rms_norm = native("rms_norm")

# Random.
dropout = native("dropout")
dropout1d = native("dropout1d")
dropout2d = native("dropout2d")
dropout3d = native("dropout3d")
alpha_dropout = native("alpha_dropout")
feature_alpha_dropout = native("feature_alpha_dropout")

one_hot = native("one_hot")
pad = native("pad")

vector_norm = native("linalg.vector_norm")
xlogy = native("xlogy")

_softmax = native("softmax")
_log_softmax = native("log_softmax")


def _implicit_dim(name: str, input: Any) -> int:
    warnings.warn(
        f"{name}: the choice of a dim when none is given is deprecated; give dim",
        stacklevel=user_level(),
    )
    return 0 if input.dim() in (0, 1, 3) else 1


@asks_classes
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> clew.Tensor:
    """Cuts every element off at two limits: min(max(x, min_val), max_val).

    Args:
        input: (*), any shape, a real dtype.
        min_val: the lower limit.
        max_val: the upper limit.
        inplace: write the result into input.

    Returns:
        a tensor of input's shape.

    Example:
        >>> clew.nn.functional.hardtanh(clew.tensor([-2.0, 0.5])).tolist()
        [-1.0, 0.5]
    """
    if min_val > max_val:
        raise ValueError(
            f"hardtanh: min_val cannot be greater than max_val; got {min_val} and {max_val}"
        )
    return _hardtanh(input, min_val, max_val, inplace)


@asks_classes
def softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> clew.Tensor:
    """The softmax along a dim: exp(x) / sum(exp(x)).

    Args:
        input: the scores, of any shape.
        dim: the dim that sums to one.
        _stacklevel: not used.
        dtype: compute in this dtype.

    Returns:
        probabilities, of input's shape.

    Example:
        >>> clew.nn.functional.softmax(clew.zeros(2), dim=0).tolist()
        [0.5, 0.5]
    """
    if dim is None:
        dim = _implicit_dim("softmax", input)
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


@asks_classes
def softmin(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> clew.Tensor:
    """The softmax of the negated input: exp(-x) / sum(exp(-x)).

    Args:
        input: the scores, of any shape.
        dim: the dim that sums to one.
        _stacklevel: not used.
        dtype: compute in this dtype.

    Returns:
        probabilities, of input's shape.

    Example:
        >>> clew.nn.functional.softmin(clew.tensor([0., 200.]), dim=0).tolist()
        [1.0, 0.0]
    """
    if dim is None:
        dim = _implicit_dim("softmin", input)
    return _softmax(-input, dim) if dtype is None else _softmax(-input, dim, dtype=dtype)


@asks_classes
def log_softmax(
    input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> clew.Tensor:
    """Logarithm of softmax, without overflow.

    x - log(sum(exp(x))) along dim.

    Args:
        input: the scores, of any shape.
        dim: the dim whose exponentials sum to one.
        _stacklevel: not used.
        dtype: compute in this dtype.

    Returns:
        log-probabilities, of input's shape.

    Example:
        >>> y = clew.nn.functional.log_softmax(clew.zeros(2), dim=0)
        >>> [round(x, 4) for x in y.tolist()]
        [-0.6931, -0.6931]
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input)
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


@asks_classes
def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> clew.Tensor:
    """Leaky ReLU whose slope is drawn at random for each negative element while training.

    Xu and others, Empirical evaluation of rectified activations in convolutional network, 2015,
    section 2.4.

    Args:
        input: (*), any shape, floating point.
        lower: least slope.
        upper: greatest slope.
        training: draw slopes; otherwise their mean is used.
        inplace: overwrite the input.

    Returns:
        a tensor of input's shape.

    Example:
        >>> clew.nn.functional.rrelu(clew.tensor([-3., 2.]), 0.25, 0.75).tolist()
        [-1.5, 2.0]
    """
    need_bools("rrelu", training=training)
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise RuntimeError(f"rrelu: both bounds must be finite; got {lower} and {upper}")
    if lower > upper:
        raise RuntimeError(
            f"rrelu: lower bound must be less than or equal to the upper bound; got {lower} and "
            f"{upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    with clew.no_grad():
        low = input <= 0
        drawn = clew.empty(int(low.sum()), dtype=clew.float64).uniform_(lower, upper)
        slope = clew.ones_like(input, requires_grad=False).masked_scatter(
            low, drawn.to(input.dtype)
        )
    return input.mul_(slope) if inplace else input * slope


@asks_classes
def rrelu_(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> clew.Tensor:
    """rrelu in place.

    Args:
        input: (*), any shape, floating point.
        lower: least slope.
        upper: greatest slope.
        training: draw slopes; otherwise their mean is used.

    Returns:
        the input.

    Example:
        >>> x = clew.tensor([-3., 2.])
        >>> clew.nn.functional.rrelu_(x, 0.25, 0.75) is x
        True
    """
    return rrelu(input, lower, upper, training, True)


@asks_classes
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> clew.Tensor:
    """Samples from a relaxed categorical distribution.

    softmax((logits + g) / tau) with g = -log(-log(u)), u even in (0, 1): Jang, Gu and Poole,
    Categorical reparameterization with Gumbel-Softmax, 2017, section 2.

    Args:
        logits: unnormalised log-probabilities, (..., C).
        tau: temperature.
        hard: give one-hot samples with the gradient of the soft ones.
        eps: not used; deprecated.
        dim: the dim of the categories.

    Returns:
        samples of logits' shape that sum to one along dim.

    Example:
        >>> y = clew.nn.functional.gumbel_softmax(clew.zeros(2, 3), hard=True)
        >>> y.sum(-1).tolist()
        [1.0, 1.0]
    """
    if eps != 1e-10:
        warnings.warn(
            "gumbel_softmax: eps is deprecated and has no effect", stacklevel=user_level()
        )
    # In the order of the elements, whatever the logits' strides are: PyTorch's draws.
    fresh = clew.empty_like(logits, memory_format=clew.contiguous_format)
    noise = -fresh.exponential_().log()
    soft = _softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return clew.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


@asks_classes
def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> clew.Tensor:
    """Divides vectors by their p-norm: v / max(|v|, eps).

    Args:
        input: vectors along dim, of any shape.
        p: the norm's order.
        dim: a dim or several.
        eps: least norm that is divided by.
        out: where the result is written.

    Returns:
        vectors of length one, of input's shape.

    Example:
        >>> y = clew.nn.functional.normalize(clew.tensor([[3., 4.]]))
        >>> [round(x, 4) for x in y[0].tolist()]
        [0.6, 0.8]
    """
    norm = vector_norm(input, p, dim, True).clamp(min=eps)
    if out is None:
        return input / norm
    return clew.div(input, norm, out=out)


def verify_spatial_size(size: Sequence[int]) -> None:
    """Raises ValueError where instance normalisation would have one value a channel."""
    if math.prod(size[2:]) == 1:
        raise ValueError(
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{tuple(size)}"
        )


@asks_classes
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> clew.Tensor:
    """Normalises each channel of each sample by its own mean and variance.

    (x - mean) / sqrt(var + eps) * weight + bias: Ulyanov, Vedaldi and Lempitsky, Instance
    normalization, 2016.

    Args:
        input: (N, C, ...).
        running_mean: (C), updated in place if given.
        running_var: (C), updated in place if given.
        weight: (C), a factor for each channel.
        bias: (C), a summand for each channel.
        use_input_stats: False uses the running statistics.
        momentum: part of the new statistics in the running ones.
        eps: added to the variance.

    Returns:
        a tensor of input's shape.

    Example:
        >>> y = clew.nn.functional.instance_norm(clew.tensor([[[1., 3.]]]), eps=0.0)
        >>> y.tolist()
        [[[-1.0, 1.0]]]
    """
    need_bools("instance_norm", use_input_stats=use_input_stats)
    if use_input_stats:
        verify_spatial_size(input.shape)
    if (running_mean is None) is not (running_var is None):
        raise ValueError(
            "instance_norm: running_mean and running_var must either both be None or neither be "
            "None"
        )
    if not use_input_stats and running_mean is None:
        raise ValueError(
            "instance_norm: running_mean and running_var are needed with use_input_stats=False"
        )
    n, c = input.shape[0], input.shape[1]
    input = input.contiguous()  # and so is the result, as in PyTorch
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    flat = input.reshape(1, n * c, *input.shape[2:])
    means = running_mean.new_zeros(n * c) if running_mean is not None else None
    vars_ = running_var.new_zeros(n * c) if running_var is not None else None
    out = batch_norm(
        flat,
        means,
        vars_,
        weight.repeat(n) if weight is not None else None,
        bias.repeat(n) if bias is not None else None,
        True,
        1.0,
        eps,
    )
    # One write each: samples that run in turn must not read what others are about to write.
    with clew.no_grad():
        if means is not None and vars_ is not None:
            running_mean.lerp_(means.view(n, c).mean(0), momentum)
            running_var.lerp_(vars_.view(n, c).mean(0), momentum)
    return out.reshape(input.shape)


@asks_classes
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> clew.Tensor:
    """Divides by a power of the mean square over neighbouring channels.

    x / (k + alpha * mean(x^2))^beta: Krizhevsky, Sutskever and Hinton, ImageNet classification with
    deep convolutional neural networks, 2012, section 3.3, with the mean for the sum.

    Args:
        input: (N, C, ...), 3 or more dims.
        size: how many channels the mean is of.
        alpha: factor of the mean square.
        beta: the power.
        k: summand.

    Returns:
        a tensor of input's shape.

    Example:
        >>> x = clew.ones(1, 1, 2)
        >>> clew.nn.functional.local_response_norm(x, 1, alpha=3.0, beta=1.0).tolist()
        [[[0.25, 0.25]]]
    """
    dims = input.dim()
    if dims < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {dims} dimensions)")
    if input.numel() == 0:
        return input
    square = (input * input).reshape(input.shape[0], 1, input.shape[1], -1)
    square = pad(square, (0, 0, size // 2, (size - 1) // 2))
    mean = square.unfold(2, size, 1).sum(-1).reshape(input.shape) / size
    return input / (mean * alpha + k) ** beta


@asks_classes
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> clew.Tensor:
    """Convolution over time of a tensor (L, N, C): as conv1d, with the dims in that order.

    Args:
        input: (L, N, C).
        weight: (K, C, C_out), K the kernel's size.
        bias: (C_out).
        pad: zeros added at both ends.

    Returns:
        (L + 2 pad - K + 1, N, C_out).

    Example:
        >>> x, w = clew.ones(3, 1, 1), clew.ones(2, 1, 1)
        >>> clew.nn.functional.conv_tbc(x, w, clew.zeros(1)).flatten().tolist()
        [2.0, 2.0]
    """
    x = input.permute(1, 2, 0)
    return conv1d(x, weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


__all__ = [
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "celu",
    "celu_",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "feature_alpha_dropout",
    "fold",
    "gelu",
    "glu",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "mish",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "unfold",
]
