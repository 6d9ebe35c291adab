"""SparseAdam: Adam that leaves alone the rows a batch did not touch."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import clew
from clew import Tensor

from ._rule import ParamsT, _check_betas, _check_lr, _check_nonnegative, _number, _PerParameter

__all__ = ["SparseAdam"]


class SparseAdam(_PerParameter):
    """Adam whose moments and parameters change only in rows with a gradient.

    A row is a slice of the first dimension, such as the vector of one word in an embedding.
    A sparse gradient, such as that of `nn.Embedding(sparse=True)`, names these rows. In a dense
    gradient, which PyTorch refuses, they are the rows with an element that is not zero.

    In these rows the update is Adam's: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 -
    beta2) * g**2, and w = w - lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps).

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), section 2.

    Args:
        params: tensors of any shape, floating point; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the two moments.
        eps: added to the denominator.
        maximize: climb instead of descending.

    Example:
        >>> w = clew.ones(2, 1, requires_grad=True)
        >>> opt = clew.optim.SparseAdam([w], lr=0.1)
        >>> w[0].sum().backward()
        >>> opt.step()
        >>> w.detach().flatten()
        tensor([0.9000, 1.0000])
    """

    _clew_takes_sparse: ClassVar[bool] = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_lr("SparseAdam", lr)
        if not lr > 0:
            raise ValueError(f"SparseAdam: lr must be greater than 0; got {lr}")
        _check_betas("SparseAdam", betas)
        _check_nonnegative("SparseAdam", eps=eps)
        if not eps > 0:
            raise ValueError(f"SparseAdam: eps must be greater than 0; got {eps}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

        for group in self.param_groups:
            for i, param in enumerate(group["params"]):
                if param.is_complex():
                    raise ValueError(
                        f"SparseAdam: complex parameters are not supported; parameter {i} is "
                        f"{param.dtype}"
                    )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for values in self.state.values():  # a plain number here, as in PyTorch
            if isinstance(values.get("step"), Tensor):
                values["step"] = int(values["step"].item())

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = 0
        state["exp_avg"] = clew.zeros_like(param, requires_grad=False)
        state["exp_avg_sq"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        state["step"] += 1
        step = state["step"]
        beta1, beta2 = (_number(b) for b in group["betas"])
        if grad.is_sparse:
            from clew.sparse._table import places_of

            rows, g = places_of("SparseAdam", grad)
        else:
            rows = _touched(grad)
            g = grad[rows]
        if g.shape[0] == 0:
            return
        g = -g if group["maximize"] else g
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        first = exp_avg[rows].lerp_(g, 1 - beta1)
        second = exp_avg_sq[rows].lerp_(g * g, 1 - beta2)
        exp_avg[rows] = first
        exp_avg_sq[rows] = second
        scale = _number(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        param[rows] = param[rows].addcdiv_(first, second.sqrt_().add_(group["eps"]), value=-scale)


def _touched(grad: Tensor) -> Tensor:
    """The indices of rows with an element that is not zero; of a scalar, a mask of it."""
    if grad.ndim == 0:
        return grad != 0
    used = grad != 0
    return used.flatten(1).any(1).nonzero().flatten() if grad.ndim > 1 else used.nonzero().flatten()
