"""Rounding to the values that integers of few bits would hold, as training for them does."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew.autograd import Function


class FakeQuantize(Function):
    """The gradient flows where the value is in range."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int
    ) -> Tensor:
        places = (x * (1 / scale)).round() + zero_point
        ctx.save_for_backward((places >= low) & (places <= high))
        return ((places.clamp(low, high) - zero_point) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (inside,) = ctx.saved_tensors
        return grads[0] * inside, None, None, None, None


def _check(name: str, x: Tensor, zero_point: Tensor, low: int, high: int) -> None:
    if not x.is_floating_point():
        raise RuntimeError(f"{name}: input must be floating point; got {x.dtype}")
    if low > high:
        raise RuntimeError(
            f"{name}: `quant_min` should be less than or equal to `quant_max`; got {low} and {high}"
        )
    if bool((zero_point < low).any()) or bool((zero_point > high).any()):
        raise RuntimeError(
            f"{name}: `zero_point` must be between `quant_min` and `quant_max`; got {zero_point}"
        )


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The input rounded to multiples of the scale, within a range.

    Args:
        input: any shape.
        scale: the step, a number or a tensor of one.
        zero_point: the integer that stands for 0.
        quant_min, quant_max: the range of the integers.
    """
    step = clew.as_tensor(scale, dtype=input.dtype).detach()
    zero = clew.as_tensor(zero_point).detach()
    _check("fake_quantize_per_tensor_affine", input, zero, quant_min, quant_max)
    made: Tensor = FakeQuantize.apply(input, step, zero, quant_min, quant_max)
    return made


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """The same with a scale and a zero point for each place along an axis.

    Args:
        input: any shape.
        scale, zero_point: (channels).
        axis: the channels' dim.
        quant_min, quant_max: the range of the integers.
    """
    name = "fake_quantize_per_channel_affine"
    count = int(input.shape[axis])
    if tuple(scale.shape) != (count,) or tuple(zero_point.shape) != (count,):
        raise RuntimeError(
            f"{name}: scale and zero_point must have {count} elements; got shapes "
            f"{list(scale.shape)} and {list(zero_point.shape)}"
        )
    shape = [1] * input.dim()
    shape[axis] = count
    _check(name, input, zero_point, quant_min, quant_max)
    step, zero = scale.detach().reshape(shape), zero_point.detach().reshape(shape)
    made: Tensor = FakeQuantize.apply(input, step, zero, quant_min, quant_max)
    return made
