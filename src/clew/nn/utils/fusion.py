"""Batch norms folded into the layer before them."""

from __future__ import annotations

import copy
from typing import Any

import clew

from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """One convolution that does what a convolution and a batch norm do in evaluation mode.

    Args:
        conv: the convolution, in evaluation mode.
        bn: the batch norm after it, in evaluation mode.
        transpose: the convolution is a transposed one.

    Returns:
        a new convolution; conv is not changed.

    Raises:
        AssertionError: if one of the two is in training mode.

    Example:
        >>> conv, bn = clew.nn.Conv2d(3, 4, 1).eval(), clew.nn.BatchNorm2d(4).eval()
        >>> x = clew.ones(1, 3, 2, 2)
        >>> fused = clew.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> bool(clew.allclose(fused(x), bn(conv(x)), atol=1e-6))
        True
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Weight and bias of a convolution with a batch norm folded in.

    weight * f and (bias - mean) * f + bn_b, with f = bn_w / sqrt(variance + eps).

    Args:
        conv_w: the convolution's weight, (C_out, C_in, ...).
        conv_b: its bias, (C_out), or None.
        bn_rm: the running mean, (C_out).
        bn_rv: the running variance, (C_out).
        bn_eps: what is added to the variance.
        bn_w: the batch norm's weight, (C_out), or None for ones.
        bn_b: its bias, (C_out), or None for zeros.
        transpose: outputs are the weight's dim 1.

    Returns:
        (weight, bias) as Parameters, of conv_w's shape and (C_out).

    Example:
        >>> one, w = clew.ones(1), clew.full((1, 1, 1), 3.0)
        >>> weight, bias = clew.nn.utils.fuse_conv_bn_weights(w, None, one, 4 * one, 0.0, one, one)
        >>> weight.item(), bias.item()
        (1.5, 0.5)
    """
    if conv_b is None:
        conv_b = clew.zeros_like(bn_rm)
    if bn_w is None:
        bn_w = clew.ones_like(bn_rm)
    if bn_b is None:
        bn_b = clew.zeros_like(bn_rm)
    with clew.no_grad():
        factor = bn_w / (bn_rv + bn_eps).sqrt()
        shape = [1] * conv_w.dim()
        shape[1 if transpose else 0] = -1
        weight = (conv_w * factor.reshape(shape)).to(conv_w.dtype)
        bias = ((conv_b - bn_rm) * factor + bn_b).to(conv_b.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """One linear layer that does what a linear layer and a batch norm do in evaluation mode.

    Args:
        linear: the layer, in evaluation mode.
        bn: the batch norm after it, in evaluation mode.

    Returns:
        a new layer; linear is not changed.

    Raises:
        AssertionError: if one of the two is in training mode, or their features differ.

    Example:
        >>> linear, bn = clew.nn.Linear(3, 4).eval(), clew.nn.BatchNorm1d(4).eval()
        >>> fused = clew.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> x = clew.ones(2, 3)
        >>> bool(clew.allclose(fused(x), bn(linear(x)), atol=1e-6))
        True
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of a linear layer with a batch norm folded in.

    As fuse_conv_bn_weights.

    Args:
        linear_w: the layer's weight, (out, in).
        linear_b: its bias, (out), or None.
        bn_rm: the running mean, (out).
        bn_rv: the running variance, (out).
        bn_eps: what is added to the variance.
        bn_w: the batch norm's weight, (out), or None for ones.
        bn_b: its bias, (out), or None for zeros.

    Returns:
        (weight, bias) as Parameters, (out, in) and (out).

    Example:
        >>> one, w = clew.ones(1), clew.full((1, 1), 3.0)
        >>> fuse = clew.nn.utils.fuse_linear_bn_weights
        >>> weight, bias = fuse(w, None, one, 4 * one, 0.0, one, one)
        >>> weight.item(), bias.item()
        (1.5, 0.5)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
