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
        conv: the convolution.
        bn: the batch norm after it.
        transpose: the convolution is a transposed one.

    Returns:
        a new convolution.
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

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias or None.
        bn_rm: running mean.
        bn_rv: running variance.
        bn_eps: eps.
        bn_w: the batch norm's weight or None.
        bn_b: its bias or None.
        transpose: outputs are the weight's dim 1.

    Returns:
        (weight, bias) as Parameters.
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
        linear: the layer.
        bn: the batch norm after it.

    Returns:
        a new layer.
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

    Args:
        linear_w: the layer's weight.
        linear_b: its bias or None.
        bn_rm: running mean.
        bn_rv: running variance.
        bn_eps: eps.
        bn_w: the batch norm's weight.
        bn_b: its bias.

    Returns:
        (weight, bias) as Parameters.
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
