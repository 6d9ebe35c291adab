"""Custom functions, closures, reductions with named results, creation functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import clew
from clew import Tensor
from clew.autograd import Function
from clew.autograd.function import FunctionCtx


class Cube(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class Scale(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.factor, None


def closures() -> float:
    w = clew.zeros(3, requires_grad=True)
    target = clew.tensor([1.0, 2.0, 3.0])
    optimizer = clew.optim.LBFGS([w], max_iter=10)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = ((w - target) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    sgd = clew.optim.SGD([{"params": [w], "lr": 0.1}], lr=0.01, momentum=0.9)
    sgd.step(closure)
    return w.sum().item()


def named() -> tuple[Tensor, Tensor]:
    x = clew.randn(3, 4)
    best = x.max()
    values, indices = x.max(dim=1)
    low = x.min(dim=0, keepdim=True)
    top = clew.topk(x, 2)
    ordered, order = x.sort(dim=-1, descending=True)
    both = clew.maximum(values, low.values.sum())
    middle = x.median(dim=1).values
    split = x.split(2, dim=1)
    a, b = x.chunk(2)
    kept = top.values + top.indices
    mode = clew.mode(x).values
    q, r = clew.linalg.qr(x)
    u, s, vh = clew.linalg.svd(x)
    near: bool = clew.allclose(q @ r, x)
    return best + both.sum() + kept.sum() + middle.sum() + split[0].sum() + a.sum() + b.sum(), (
        order + indices.sum() + ordered + mode.sum() + u.sum() + s.sum() + vh.sum() + near
    )


def creation() -> list[Tensor]:
    numbers: npt.NDArray[np.float32] = np.zeros((2, 2), dtype=np.float32)
    made = [
        clew.tensor([[1, 2], [3, 4]], dtype=clew.float32, requires_grad=True),
        clew.zeros(2, 3),
        clew.zeros((2, 3), dtype=clew.int64),
        clew.ones([2], device="cpu"),
        clew.empty(2, 2),
        clew.full((2, 2), 7.0),
        clew.rand(2, 3, generator=clew.Generator()),
        clew.randint(0, 10, (2, 3)),
        clew.randint(10, (2,)),
        clew.arange(10),
        clew.arange(0, 1, 0.1, dtype=clew.float64),
        clew.linspace(0, 1, 5),
        clew.eye(3),
        clew.randperm(5),
        clew.zeros_like(clew.ones(2)),
        clew.from_numpy(numbers),
        clew.as_tensor(numbers),
        clew.cat([clew.ones(2), clew.zeros(2)]),
        clew.stack((clew.ones(2), clew.zeros(2)), dim=0),
        clew.where(clew.ones(2) > 0, clew.ones(2), 0.0),
        clew.einsum("ij,jk->ik", clew.ones(2, 3), clew.ones(3, 2)),
    ]
    x = made[0]
    array: npt.NDArray[Any] = x.detach().numpy()
    shape: tuple[int, ...] = tuple(x.shape)
    rows, cols = x.shape
    flat = x.reshape(-1).view(2, -1).permute(1, 0).contiguous().to(clew.float64).cpu()
    made.append(flat[:, None] * 2 + rows + cols + array.ndim + len(shape) + x.size(0) + x.dim())
    x.requires_grad_()
    with clew.inference_mode(), clew.autograd.detect_anomaly():
        made.append(x.sum())
    (g,) = clew.autograd.grad((x * x).sum(), x)
    made.append(g)
    y = Cube.apply(x)
    made.append(y)
    made.append(Scale.apply(x, 2.0))
    print(clew.get_default_device(), clew.get_default_dtype(), x.dtype is clew.float32)
    gradient: Tensor = clew.func.grad(square)(x)
    made.append(gradient)
    return made


def square(t: Tensor) -> Tensor:
    return (t * t).sum()


@clew.no_grad()
def frozen(x: Tensor) -> Tensor:
    return x * 2


if __name__ == "__main__":
    print(closures(), named()[0], len(creation()), frozen(clew.ones(2)))
