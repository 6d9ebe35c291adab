"""Rprop: step lengths that grow while the sign of the gradient stays."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor

from ._rule import (
    _ADDED_OPTIONS,
    ParamsT,
    _check,
    _check_lr,
    _check_modes,
    _PerParameter,
    _real,
    _step_tensor,
)

__all__ = ["Rprop"]


def _rprop(
    param: Tensor,
    grad: Tensor,
    prev: Tensor,
    step_size: Tensor,
    *,
    etaminus: float,
    etaplus: float,
    smallest: float,
    largest: float,
    maximize: bool,
) -> None:
    """The update rule; an element whose gradient changed its sign rests for one step."""
    if maximize:
        grad = -grad
    if param.is_complex():
        param, grad, prev, step_size = _real(param, grad, prev, step_size)
    agreement = grad * prev
    turned = agreement < 0
    factor = clew.ones_like(grad)
    factor.masked_fill_(agreement > 0, etaplus).masked_fill_(turned, etaminus)
    step_size.mul_(factor).clamp_(smallest, largest)
    grad = grad.masked_fill(turned, 0)
    param.addcmul_(grad.sign(), step_size, value=-1)
    prev.copy_(grad)


class Rprop(_PerParameter):
    """Resilient backpropagation: w = w - sign(g) * s, each element with its own step length s.

    s is multiplied with etas[1] while the sign of g stays and with etas[0] when it changes.

    s starts at lr and stays within step_sizes. An element whose sign changed rests for one step.

    Source: Riedmiller and Braun, A direct adaptive method for faster backpropagation learning: the
    RPROP algorithm (1993).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: first step length.
        etas: factors of decrease and increase.
        step_sizes: smallest and largest step length.
        capturable: not for this device; True raises.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Rprop([w])
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr("Rprop", lr)
        _check(
            "Rprop",
            0.0 < etas[0] < 1.0 < etas[1],
            "etas must satisfy 0 < etas[0] < 1 < etas[1]",
            etas,
        )
        _check_modes("Rprop", foreach=foreach, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        lr = float(group["lr"])
        state["step"] = _step_tensor()
        state["prev"] = clew.zeros_like(param, requires_grad=False)
        state["step_size"] = clew.full_like(
            param, complex(lr, lr) if param.is_complex() else lr, requires_grad=False
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        etaminus, etaplus = group["etas"]
        smallest, largest = group["step_sizes"]
        _rprop(
            param,
            grad,
            state["prev"],
            state["step_size"],
            etaminus=etaminus,
            etaplus=etaplus,
            smallest=smallest,
            largest=largest,
            maximize=group["maximize"],
        )
