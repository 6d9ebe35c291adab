"""Adadelta: steps whose length follows the running size of earlier steps."""

from __future__ import annotations

from typing import Any

from clew import _C, Tensor

from ._rule import (
    _ADDED_OPTIONS,
    ParamsT,
    _add_,
    _average_square_,
    _check,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
)

__all__ = ["Adadelta"]


def _adadelta(
    param: Tensor,
    grad: Tensor,
    square_avg: Tensor,
    acc_delta: Tensor,
    *,
    lr: Any,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """The update rule."""
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if param.is_complex():
        param, grad, square_avg, acc_delta = _real(param, grad, square_avg, acc_delta)
    _average_square_(square_avg, grad, rho)
    std = square_avg.add(eps).sqrt_()
    delta = acc_delta.add(eps).sqrt()
    if delta.requires_grad or std.requires_grad:  # sqrt keeps its result for backward
        delta = delta / std * grad
    else:
        delta.div_(std).mul_(grad)
    _average_square_(acc_delta, delta, rho)
    _add_(param, delta, -lr)


class Adadelta(_PerParameter):
    """Adadelta: w = w - lr * d, with d = g * sqrt(u + eps) / sqrt(v + eps).

    v = rho * v + (1 - rho) * g**2 and u = rho * u + (1 - rho) * d**2.

    g is the gradient plus weight_decay * w; d takes the u of the step before.

    Source: Zeiler, ADADELTA: an adaptive learning rate method (2012), algorithm 1.

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        rho: decay of both averages.
        eps: added under the roots.
        weight_decay: strength of the L2 penalty.
        foreach: accepted; it chooses an implementation, and clew has one.
        capturable: not for this device; True raises.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Adadelta([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_zeros = ("square_avg", "acc_delta")
    _clew_added_options = _ADDED_OPTIONS

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr("Adadelta", lr)
        _check("Adadelta", 0.0 <= rho <= 1.0, "rho must be in [0, 1]", rho)
        _check_nonnegative("Adadelta", eps=eps, weight_decay=weight_decay)
        _check_modes(
            "Adadelta", foreach=foreach, capturable=capturable, differentiable=differentiable
        )
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        return _C._fused_adadelta(
            params,
            self.state,
            group["lr"],
            group["rho"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        _adadelta(
            param,
            grad,
            state["square_avg"],
            state["acc_delta"],
            lr=_number(group["lr"]),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
