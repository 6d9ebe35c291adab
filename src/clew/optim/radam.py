"""RAdam: Adam that waits until its second moment is reliable."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from clew import _C, Tensor

from ._rule import (
    _ADDED_OPTIONS,
    ParamsT,
    _add_,
    _average_,
    _average_square_,
    _check_betas,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
)

__all__ = ["RAdam"]


def _radam(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """The update rule; `step` counts from 1."""
    grad = _downhill(param, grad, lr, weight_decay, maximize, decoupled)
    if param.is_complex():
        param, grad, exp_avg, exp_avg_sq = _real(param, grad, exp_avg, exp_avg_sq)
    _average_(exp_avg, grad, beta1)
    _average_square_(exp_avg_sq, grad, beta2)
    bias2 = 1 - beta2**step
    direction = exp_avg / (1 - beta1**step)
    # The length of the average's memory: now, and after infinitely many steps.
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * beta2**step / bias2
    if rho > 5:
        rectified = math.sqrt(
            (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
        )
        root = exp_avg_sq.sqrt()
        denom = root.add(eps) if root.requires_grad else root.add_(eps)
        adaptive = math.sqrt(bias2) / denom
        _add_(param, direction * lr * adaptive * rectified, -1)
    else:
        _add_(param, direction * lr, -1)


class RAdam(_PerParameter):
    """Rectified Adam: plain momentum until the second moment has seen enough, then Adam.

    Adam's step is multiplied with sqrt((r-4)(r-2)R / ((R-4)(R-2)r)), where R = 2/(1-beta2) - 1 and
    r = R - 2 t beta2**t / (1 - beta2**t), once r > 5.

    That is w = w - lr * m / (1 - beta1**t) * factor * sqrt(1 - beta2**t) / (sqrt(v) + eps), and
    before it w = w - lr * m / (1 - beta1**t).

    Source: Liu et al., On the variance of the adaptive learning rate and beyond (2020), algorithm
    2.

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the two moments.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty.
        decoupled_weight_decay: shrink the parameter instead of adding to the gradient.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.
        capturable: not for this device; True raises.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.RAdam([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_zeros = ("exp_avg", "exp_avg_sq")
    _clew_added_options: ClassVar[dict[str, Any]] = {
        **_ADDED_OPTIONS,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr("RAdam", lr)
        _check_betas("RAdam", betas)
        _check_nonnegative("RAdam", eps=eps, weight_decay=weight_decay)
        _check_modes("RAdam", foreach=foreach, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        beta1, beta2 = group["betas"]
        return _C._fused_radam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        beta1, beta2 = group["betas"]
        _radam(
            param,
            grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            step.item(),
            lr=_number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
