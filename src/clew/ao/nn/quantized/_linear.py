"""A linear map with weights of fewer bits, whose inputs are rounded when it is called."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor, nn
from clew._base import dtypes as _dtypes

__all__ = ["Linear"]


def _steps(low: float, high: float) -> tuple[float, int]:
    """The size of a step and the number of zero, for 128 steps between two values and 0.

    Products of 8 bits are summed in 16 by the instructions that PyTorch uses; 7 bits of the input
    keep them from overflowing, and so it does.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    step = (high - low) / 127
    if step == 0.0:
        return 1.0, 0
    zero = round(min(max(-low / step, 0.0), 127.0))
    return step, zero


def _whole(x: Tensor, step: float) -> Tensor:
    """Elements in whole steps; PyTorch multiplies by what one step is the inverse of."""
    inverse = 1 / clew.tensor(step, dtype=clew.float32)
    return (x * inverse).round()


class Linear(nn.Module):
    """A linear map with weights of 8 bits, whose input is rounded to 7 bits at each call; or with
    weights of 16 bits.

    Args:
        in_features: size of the input.
        out_features: size of the output.
        bias_: whether there is a bias.
        dtype: qint8 or float16.

    Shapes:
        input: (..., in_features).
        returns: (..., out_features); no gradients flow to the input.

    Example:
        >>> from clew.ao.nn.quantized.dynamic import Linear
        >>> plain = nn.Linear(2, 1)
        >>> rounded = Linear.from_float(plain)
        >>> x = clew.tensor([[1.0, -1.0]])
        >>> clew.allclose(rounded(x), plain(x), atol=0.05)
        True
    """

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        if dtype not in (None, clew.qint8, clew.float16):
            raise NotImplementedError(f"Linear: dtype must be qint8 or float16; got {dtype}")
        self.in_features, self.out_features = in_features, out_features
        self.version = 4
        self._halved = dtype is clew.float16
        kind = clew.float16 if self._halved else clew.int8
        self.register_buffer("_weight", clew.zeros(out_features, in_features, dtype=kind))
        self.register_buffer("_scale", clew.ones(()))
        self.register_buffer("_bias", clew.zeros(out_features) if bias_ else None)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def weight(self) -> Tensor:
        """The weights as integers; `scale()` is the size of their steps."""
        return self._weight

    def scale(self) -> float:
        """The size of the weights' steps."""
        return float(self._scale.item())

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._bias

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, "
        if self._halved:
            return f"{text}dtype={clew.float16}"
        return f"{text}dtype={clew.qint8}, qscheme={_dtypes.home}.per_tensor_affine"

    def forward(self, x: Tensor) -> Tensor:
        if self._halved:
            return nn.functional.linear(x.detach(), self._weight.to(x.dtype), self._bias)
        low, high = (float(v.item()) for v in (x.detach().min(), x.detach().max()))
        step, zero = _steps(low, high)
        rounded = _whole(x.detach(), step).add_(zero).clamp_(0, 127).sub_(zero)
        # Sums of integers below 2**24 are exact in float32; longer ones are taken in float64.
        kind = clew.float32 if self.in_features * 127 * 128 < 2**24 else clew.float64
        total = rounded.to(kind) @ self._weight.to(kind).t()
        out = (total * (step * self.scale())).to(clew.float32)
        return out if self._bias is None else out + self._bias

    @classmethod
    def from_float(
        cls, mod: Any, use_precomputed_fake_quant: bool = False, dtype: Any = None
    ) -> Linear:
        """The map of a Linear, with its weights rounded.

        Args:
            mod: the Linear.
            use_precomputed_fake_quant: accepted.
            dtype: qint8 or float16; qint8 if None.
        """
        return cls.of_parts(mod.weight, mod.bias, dtype)

    @classmethod
    def of_parts(cls, weight: Tensor, bias: Tensor | None, dtype: Any = None) -> Linear:
        """The map of a weight and a bias, with the weight rounded.

        Args:
            weight: (outputs, inputs).
            bias: (outputs), or None.
            dtype: qint8 or float16; qint8 if None.
        """
        outputs, inputs = (int(n) for n in weight.shape)
        made = cls(inputs, outputs, bias is not None, dtype)
        weight = weight.detach().float()
        if made._halved:
            made._weight = weight.half()
        else:
            most = max(float(weight.abs().max().item()), 0.0)
            scale = most / 127.5 or 1.0
            made._scale = clew.tensor(scale)
            made._weight = _whole(weight, scale).clamp(-128, 127).to(clew.int8)
        if bias is not None:
            made._bias = bias.detach().float().clone()
        return made
