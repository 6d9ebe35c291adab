"""Adam: steps scaled by running moments of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import clew
from clew import _C, Tensor

from ._rule import (
    ParamsT,
    _addcdiv_,
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
    _sqrt,
)

__all__ = ["Adam"]


def _adam(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    step: float,
    *,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """The update rule of Adam and AdamW; `step` counts from 1."""
    grad = _downhill(param, grad, lr, weight_decay, maximize, decoupled)
    if param.is_complex():
        param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq = _real(
            param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq
        )
    _average_(exp_avg, grad, beta1)
    _average_square_(exp_avg_sq, grad, beta2)
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        # A recorded maximum keeps what it compared, which is written to now.
        before = max_exp_avg_sq.clone() if clew.is_grad_enabled() else max_exp_avg_sq
        max_exp_avg_sq.copy_(clew.maximum(before, exp_avg_sq))
        second = max_exp_avg_sq
    denom = (second.sqrt() / _sqrt(1 - beta2**step)).add_(eps)
    _addcdiv_(param, exp_avg, denom, -(lr / (1 - beta1**step)))


class Adam(_PerParameter):
    """Adam: w = w - lr * m / (sqrt(v) + eps), with m and v bias-corrected running moments.

    m = beta1 * m + (1 - beta1) * g and v = beta2 * v + (1 - beta2) * g**2.

    The corrected moments at step t are m / (1 - beta1**t) and v / (1 - beta2**t). g is the
    gradient plus weight_decay * w; with `amsgrad` the largest v so far takes v's place.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1; amsgrad:
    Reddi, Kale and Kumar, On the convergence of Adam and beyond (2018).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the two moments.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty.
        amsgrad: use the largest v so far.
        foreach: accepted; it chooses an implementation of PyTorch's.
        fused: False: tensor operations instead of one pass over memory.
        maximize: climb instead of descending.
        capturable: not for this device; True raises.
        differentiable: record the step itself, so that backward goes through it.
        decoupled_weight_decay: shrink the parameter instead of adding to the gradient (AdamW).

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _clew_zeros = ("exp_avg", "exp_avg_sq")
    _clew_unscales: ClassVar[bool] = True
    _clew_added_options: ClassVar[dict[str, Any]] = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = type(self).__name__
        _check_lr(name, lr, foreach, capturable)
        _check_nonnegative(name, eps=eps, weight_decay=weight_decay)
        _check_betas(name, betas, foreach)
        _check_modes(
            name,
            foreach=foreach,
            fused=fused,
            capturable=capturable,
            differentiable=differentiable,
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        super()._clew_init_state(group, param, state)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        beta1, beta2 = group["betas"]
        return _C._fused_adam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["amsgrad"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        beta1, beta2 = group["betas"]
        _adam(
            param,
            grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["max_exp_avg_sq"] if group["amsgrad"] else None,
            step.item(),
            lr=_number(group["lr"]),
            beta1=_number(beta1),
            beta2=_number(beta2),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
