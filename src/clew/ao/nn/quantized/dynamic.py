"""Modules with weights of 8 bits, whose inputs are rounded to 8 bits when they are called."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor, nn

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


class Linear(nn.Module):
    """A linear map with weights of 8 bits; the input is rounded to 7 bits at each call.

    Args:
        in_features: size of the input.
        out_features: size of the output.
        bias_: whether there is a bias.
        dtype: qint8 or float16.
    """

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.version = 4
        self.register_buffer("_weight", clew.zeros(out_features, in_features, dtype=clew.int8))
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
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={clew.qint8}, qscheme=per_tensor_affine"
        )

    def forward(self, x: Tensor) -> Tensor:
        low, high = (float(v.item()) for v in (x.detach().min(), x.detach().max()))
        step, zero = _steps(low, high)
        rounded = (x.detach() / step).round().add_(zero).clamp_(0, 127).sub_(zero)
        # Sums of integers below 2**24 are exact in float32; longer ones are taken in float64.
        kind = clew.float32 if self.in_features * 127 * 128 < 2**24 else clew.float64
        total = rounded.to(kind) @ self._weight.to(kind).t()
        out = (total * (step * self.scale())).to(clew.float32)
        return out if self._bias is None else out + self._bias

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The map of a Linear, with its weights rounded.

        Args:
            mod: the Linear.
            use_precomputed_fake_quant: accepted.
        """
        made = cls(mod.in_features, mod.out_features, mod.bias is not None)
        weight = mod.weight.detach().float()
        most = max(float(weight.abs().max().item()), 0.0)
        scale = most / 127.5 or 1.0
        made._scale = clew.tensor(scale)
        made._weight = (weight / scale).round().clamp(-128, 127).to(clew.int8)
        if mod.bias is not None:
            made._bias = mod.bias.detach().float().clone()
        return made
