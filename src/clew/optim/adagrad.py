"""Adagrad: steps scaled by the sum of squared gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import clew
from clew import _C, Tensor

from ._rule import (
    ParamsT,
    _addcdiv_,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
    _real,
    _step_tensor,
)

__all__ = ["Adagrad"]


def _adagrad(
    param: Tensor,
    grad: Tensor,
    total: Tensor,
    step: float,
    *,
    lr: Any,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """The update rule; `step` counts from 1."""
    if grad.is_sparse:
        if weight_decay != 0:
            raise RuntimeError(
                "Adagrad: weight_decay option is not compatible with sparse gradients"
            )
        grad = grad.coalesce()
        places = tuple(grad.indices().unbind(0))
        values = -grad.values() if maximize else grad.values()
        sums = total[places] + values * values
        total[places] = sums
        step_length = lr / (1 + (step - 1) * lr_decay)
        param.index_put_(places, values / (sums.sqrt() + eps) * -step_length, accumulate=True)
        return
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if param.is_complex():
        param, grad, total = _real(param, grad, total)
    total.addcmul_(grad, grad, value=1)
    root = total.sqrt()
    denom = root.add(eps) if root.requires_grad else root.add_(eps)
    _addcdiv_(param, grad, denom, -(lr / (1 + (step - 1) * lr_decay)))


class Adagrad(_PerParameter):
    """Adagrad: w = w - lr * g / (sqrt(s) + eps), with s the sum of g**2 over all steps.

    g is the gradient plus weight_decay * w.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and
    stochastic optimization (2011).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        lr_decay: step t uses lr / (1 + (t - 1) * lr_decay).
        weight_decay: strength of the L2 penalty.
        initial_accumulator_value: where s starts.
        eps: added to the denominator.
        foreach, fused: accepted; they choose an implementation, and clew has one.
        maximize: climb instead of descending.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _clew_takes_sparse: ClassVar[bool] = True
    _clew_unscales: ClassVar[bool] = True
    _clew_added_options: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr("Adagrad", lr)
        _check_nonnegative(
            "Adagrad",
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        _check_modes("Adagrad", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                self._clew_init_state(group, param, self.state[param])

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        start: Any = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        state["step"] = _step_tensor()
        state["sum"] = clew.full_like(param, start, requires_grad=False)

    def share_memory(self) -> None:
        """Moves the state to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        return _C._fused_adagrad(
            params,
            self.state,
            group["lr"],
            group["lr_decay"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        _adagrad(
            param,
            grad,
            state["sum"],
            step.item(),
            lr=_number(group["lr"]),
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
