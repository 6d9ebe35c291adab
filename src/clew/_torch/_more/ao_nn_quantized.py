"""FloatFunctional, and names of modules that would hold quantized weights."""

from __future__ import annotations

from typing import Any, NoReturn

import clew
from clew import Tensor, nn
from clew._torch.absent import _QUANTIZED, absent

for _name in """
BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
DeQuantize Dropout ELU Embedding EmbeddingBag FXFloatFunctional GroupNorm Hardswish InstanceNorm1d
InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MaxPool2d MultiheadAttention PReLU
QFunctional Quantize ReLU6 Sigmoid Softmax functional modules
""".split():
    globals()[_name] = absent("ao.nn.quantized", _name, _QUANTIZED)


class FloatFunctional(nn.Module):
    """Operations as methods, so that a module may stand behind each: `activation_post_process`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Any) -> NoReturn:
        """Raises: call one of the operations."""
        raise RuntimeError("FloatFunctional: call one of its operations, such as add")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of two tensors."""
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """The sum of a tensor and a number, which nothing looks at."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """The product of two tensors."""
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """The product of a tensor and a number, which nothing looks at."""
        return x * y

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors behind one another."""
        return self.activation_post_process(clew.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of two tensors where it is positive."""
        return self.activation_post_process(clew.relu(x + y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """The matrix product of two tensors."""
        return self.activation_post_process(clew.matmul(x, y))
