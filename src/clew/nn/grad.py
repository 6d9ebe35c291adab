"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew


def _both(conv: Any, input: Any, weight: Any, grad_output: Any, which: int, *args: Any) -> Any:
    with clew.enable_grad():
        wanted = [input.detach(), weight.detach()]
        wanted[which].requires_grad_()
        out = conv(wanted[0], wanted[1], None, *args)
        if out.shape != grad_output.shape:
            raise ValueError(
                f"grad_output must have the convolution's shape {tuple(out.shape)}; "
                f"got {tuple(grad_output.shape)}"
            )
        return clew.autograd.grad(out, wanted[which], grad_output)[0]


def _input(n: int) -> Callable[..., clew.Tensor]:
    conv = (clew.conv1d, clew.conv2d, clew.conv3d)[n - 1]

    def conv_input(
        input_size: Any,
        weight: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        zero = clew.zeros(input_size, dtype=weight.dtype)
        return _both(conv, zero, weight, grad_output, 0, stride, padding, dilation, groups)

    conv_input.__name__ = f"conv{n}d_input"
    conv_input.__doc__ = f"""The gradient of conv{n}d with respect to its input.

    Args:
        input_size: the input's shape.
        weight: the convolution's weight.
        grad_output: the gradient of its result.
        stride: step between two positions of the kernel.
        padding: zeros added on both sides.
        dilation: step between two elements of the kernel.
        groups: number of blocks that the channels are divided into.

    >>> ones = clew.ones({", ".join(["1"] * (n + 2))})
    >>> clew.nn.grad.conv{n}d_input(ones.shape, 2 * ones, ones).sum()
    tensor(2.)
    """
    return conv_input


def _weight(n: int) -> Callable[..., clew.Tensor]:
    conv = (clew.conv1d, clew.conv2d, clew.conv3d)[n - 1]

    def conv_weight(
        input: Any,
        weight_size: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        zero = clew.zeros(weight_size, dtype=input.dtype)
        return _both(conv, input, zero, grad_output, 1, stride, padding, dilation, groups)

    conv_weight.__name__ = f"conv{n}d_weight"
    conv_weight.__doc__ = f"""The gradient of conv{n}d with respect to its weight.

    Args:
        input: the convolution's input.
        weight_size: the weight's shape.
        grad_output: the gradient of its result.
        stride: step between two positions of the kernel.
        padding: zeros added on both sides.
        dilation: step between two elements of the kernel.
        groups: number of blocks that the channels are divided into.

    >>> ones = clew.ones({", ".join(["1"] * (n + 2))})
    >>> clew.nn.grad.conv{n}d_weight(3 * ones, ones.shape, ones).sum()
    tensor(3.)
    """
    return conv_weight


conv1d_input = _input(1)
conv2d_input = _input(2)
conv3d_input = _input(3)
conv1d_weight = _weight(1)
conv2d_weight = _weight(2)
conv3d_weight = _weight(3)
