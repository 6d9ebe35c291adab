"""ASGD: gradient descent that also keeps the average of its parameters."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor

from ._rule import (
    _ADDED_OPTIONS,
    ParamsT,
    _add_,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
    _step_tensor,
)

__all__ = ["ASGD"]


def _asgd(
    param: Tensor,
    grad: Tensor,
    ax: Tensor,
    mu: Tensor,
    eta: Tensor,
    step: float,
    *,
    lr: Any,
    lambd: float,
    alpha: float,
    t0: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """The update rule; `ax` is the average, `eta` and `mu` the lengths of this step's two moves."""
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if param.is_complex():
        param, grad, ax = _real(param, grad, ax)
    rate = _number(eta)
    if isinstance(rate, Tensor):
        param.copy_(param.clone() * (1 - lambd * rate))
        _add_(param, grad, -rate)
    else:
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
    if mu.item() != 1:
        ax.add_(param.sub(ax).mul_(mu.item()))
    else:
        ax.copy_(param)
    eta.copy_(clew.as_tensor(lr / (1 + lambd * lr * step) ** alpha))
    mu.fill_(1 / max(1, step - t0))


class ASGD(_PerParameter):
    """Averaged gradient descent: w = (1 - lambd * eta) * w - eta * g; the average is kept as `ax`.

    eta = lr / (1 + lambd * lr * t)**alpha, and averaging starts at step t0.

    t counts the steps before this one, so the first eta is lr. The average is ax = ax + (w - ax) *
    mu with mu = 1 / max(1, t - t0). g is the gradient plus weight_decay * w.

    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: first step length, a number or a tensor with one element.
        lambd: how fast parameters shrink and steps get shorter.
        alpha: power of the decrease of eta.
        t0: step at which averaging starts.
        weight_decay: strength of the L2 penalty.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.
        capturable: not for this device; True raises.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.ASGD([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_added_options = _ADDED_OPTIONS

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr("ASGD", lr)
        _check_nonnegative("ASGD", weight_decay=weight_decay)
        _check_modes("ASGD", foreach=foreach, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for values in self.state.values():
            for key in ("eta", "mu"):
                if key in values and not isinstance(values[key], Tensor):
                    values[key] = _step_tensor(values[key])

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        state["step"] = _step_tensor()
        state["eta"] = clew.as_tensor(group["lr"], dtype=state["step"].dtype).detach().clone()
        state["mu"] = _step_tensor(1.0)
        state["ax"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        _asgd(
            param,
            grad,
            state["ax"],
            state["mu"],
            state["eta"],
            step.item(),
            lr=_number(group["lr"]),
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
