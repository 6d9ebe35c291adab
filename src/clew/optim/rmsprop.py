"""RMSprop: steps scaled by a running mean square of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import clew
from clew import _C, Tensor

from ._rule import (
    ParamsT,
    _add_,
    _addcdiv_,
    _average_,
    _average_square_,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
)

__all__ = ["RMSprop"]


def _rmsprop(
    param: Tensor,
    grad: Tensor,
    square_avg: Tensor,
    grad_avg: Tensor | None,
    buf: Tensor | None,
    *,
    lr: Any,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    maximize: bool,
) -> None:
    """The update rule; `grad_avg` when centered, `buf` with momentum."""
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if param.is_complex():
        param, grad, square_avg, grad_avg, buf = _real(param, grad, square_avg, grad_avg, buf)
    _average_square_(square_avg, grad, alpha)
    variance = square_avg
    if grad_avg is not None:
        _average_(grad_avg, grad, alpha)
        variance = square_avg.addcmul(grad_avg, grad_avg, value=-1)
    root = variance.sqrt()
    # sqrt keeps its result for backward
    denom = root.add(eps) if root.requires_grad else root.add_(eps)
    if buf is not None:
        buf.mul_(momentum).addcdiv_(grad, denom)
        _add_(param, buf, -lr)
    else:
        _addcdiv_(param, grad, denom, -lr)


class RMSprop(_PerParameter):
    """RMSprop: w = w - lr * g / (sqrt(v) + eps), with v = alpha * v + (1 - alpha) * g**2.

    With `momentum` b = momentum * b + g / (sqrt(v) + eps) and w = w - lr * b. With `centered` the
    root is of v - a**2, where a = alpha * a + (1 - alpha) * g. g is the gradient plus
    weight_decay * w.

    Source: Tieleman and Hinton, Lecture 6.5: rmsprop, Neural Networks for Machine Learning (2012);
    centered: Graves, Generating sequences with recurrent neural networks (2013).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        alpha: decay of v.
        eps: added to the denominator.
        weight_decay: strength of the L2 penalty.
        momentum: how much of the previous scaled step is kept.
        centered: subtract the squared mean gradient from v.
        capturable: not for this device; True raises.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.RMSprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> round(w.item(), 4)
        0.0
    """

    _clew_zeros = ("square_avg",)
    _clew_added_options: ClassVar[dict[str, Any]] = {
        "momentum": 0,
        "centered": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr("RMSprop", lr)
        _check_nonnegative(
            "RMSprop", eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        _check_modes(
            "RMSprop", foreach=foreach, capturable=capturable, differentiable=differentiable
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        super()._clew_init_state(group, param, state)
        if group["momentum"] > 0:
            state["momentum_buffer"] = clew.zeros_like(param, requires_grad=False)
        if group["centered"]:
            state["grad_avg"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        return _C._fused_rmsprop(
            params,
            self.state,
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["centered"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        _rmsprop(
            param,
            grad,
            state["square_avg"],
            state["grad_avg"] if group["centered"] else None,
            state["momentum_buffer"] if group["momentum"] > 0 else None,
            lr=_number(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            maximize=group["maximize"],
        )
