"""Adamax: Adam with the largest recent gradient in place of the second moment."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C, Tensor

from ._rule import (
    _ADDED_OPTIONS,
    ParamsT,
    _addcdiv_,
    _average_,
    _check_betas,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
)

__all__ = ["Adamax"]


def _adamax(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_inf: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """The update rule; `step` counts from 1."""
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if param.is_complex():
        param, grad, exp_avg, exp_inf = _real(param, grad, exp_avg, exp_inf)
    _average_(exp_avg, grad, beta1)
    exp_inf.copy_(clew.maximum(exp_inf * beta2, grad.abs().add_(eps)))
    _addcdiv_(param, exp_avg, exp_inf, -(lr / (1 - beta1**step)))


class Adamax(_PerParameter):
    """Adamax: w = w - lr / (1 - beta1**t) * m / u, with u = max(beta2 * u, |g| + eps).

    m = beta1 * m + (1 - beta1) * g.

    g is the gradient plus weight_decay * w.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 2.

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of m and of u.
        eps: added to |g|.
        weight_decay: strength of the L2 penalty.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.
        capturable: not for this device; True raises.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Adamax([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_zeros = ("exp_avg", "exp_inf")
    _clew_added_options = _ADDED_OPTIONS

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr("Adamax", lr)
        _check_betas("Adamax", betas)
        _check_nonnegative("Adamax", eps=eps, weight_decay=weight_decay)
        _check_modes(
            "Adamax", foreach=foreach, capturable=capturable, differentiable=differentiable
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        beta1, beta2 = group["betas"]
        return _C._fused_adamax(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        beta1, beta2 = group["betas"]
        _adamax(
            param,
            grad,
            state["exp_avg"],
            state["exp_inf"],
            step.item(),
            lr=_number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
