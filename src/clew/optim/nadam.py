"""NAdam: Adam that looks ahead along its momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import clew
from clew import _C, Tensor

from ._rule import (
    _ADDED_OPTIONS,
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
    _step_tensor,
)

__all__ = ["NAdam"]


def _nadam(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    mu_product: Tensor,
    step: float,
    *,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
) -> None:
    """The update rule; `step` counts from 1, `mu_product` is the product of the momenta so far."""
    grad = _downhill(param, grad, lr, weight_decay, maximize, decoupled)
    if param.is_complex():
        param, grad, exp_avg, exp_avg_sq = _real(param, grad, exp_avg, exp_avg_sq)
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    mu_product *= mu
    product = mu_product if mu_product.requires_grad else mu_product.item()
    _average_(exp_avg, grad, beta1)
    _average_square_(exp_avg_sq, grad, beta2)
    root = exp_avg_sq.div(1 - beta2**step).sqrt()
    denom = root.add(eps) if root.requires_grad else root.add_(eps)
    _addcdiv_(param, grad, denom, -lr * (1 - mu) / (1 - product))
    _addcdiv_(param, exp_avg, denom, -lr * mu_next / (1 - product * mu_next))


class NAdam(_PerParameter):
    """Adam with Nesterov momentum.

    w = w - lr * (mu' * m / (1 - M * mu') + (1 - mu) * g / (1 - M)) / (sqrt(v) + eps) with
    mu = beta1 * (1 - 0.96**(t * momentum_decay) / 2), mu' the same for t + 1, and M the product
    of all mu so far; m and v as in Adam.

    Source: Dozat, Incorporating Nesterov momentum into Adam (2016).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the two moments.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty.
        momentum_decay: how fast mu approaches beta1.
        decoupled_weight_decay: shrink the parameter instead of adding to the gradient.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.
        capturable: not for this device; True raises.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.NAdam([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_added_options: ClassVar[dict[str, Any]] = {
        **_ADDED_OPTIONS,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr("NAdam", lr)
        _check_betas("NAdam", betas)
        _check_nonnegative(
            "NAdam", eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        _check_modes("NAdam", foreach=foreach, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for values in self.state.values():
            product = values.get("mu_product")
            if product is not None and not isinstance(product, Tensor):
                values["mu_product"] = _step_tensor(product)
            elif product is not None and product.dtype in (clew.float16, clew.bfloat16):
                # load_state_dict gave it the parameter's dtype, too coarse for a product.
                values["mu_product"] = product.float()

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = _step_tensor()
        state["mu_product"] = _step_tensor(1.0)
        state["exp_avg"] = clew.zeros_like(param, requires_grad=False)
        state["exp_avg_sq"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        beta1, beta2 = group["betas"]
        return _C._fused_nadam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["momentum_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        beta1, beta2 = group["betas"]
        _nadam(
            param,
            grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["mu_product"],
            step.item(),
            lr=_number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
