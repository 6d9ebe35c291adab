"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from clew import _C, Tensor

from ._rule import (
    ParamsT,
    _add_,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _downhill,
    _number,
    _PerParameter,
)

__all__ = ["SGD"]


def _sgd(
    param: Tensor,
    grad: Tensor,
    buf: Tensor | None,
    *,
    lr: Any,
    momentum: float,
    dampening: float,
    weight_decay: Any,
    nesterov: bool,
    maximize: bool,
) -> Tensor | None:
    """The update rule; returns the momentum buffer."""
    if grad.is_sparse:
        if isinstance(weight_decay, Tensor) or weight_decay != 0:
            raise RuntimeError(
                "SGD: weight_decay is not offered with sparse gradients; set it to 0, or use "
                "SparseAdam or Adagrad"
            )
        if maximize:
            grad = -grad
        if momentum != 0:
            buf = _with_momentum(grad, buf, momentum, dampening)
            grad = grad + buf * momentum if nesterov else buf
        _add_rows_(param, grad, -lr)
        return buf
    grad = _downhill(param, grad, lr, weight_decay, maximize)
    if momentum != 0:
        buf = _with_momentum(grad, buf, momentum, dampening)
        grad = grad.add(buf, alpha=momentum) if nesterov else buf
    _add_(param, grad, -lr)
    return buf


def _with_momentum(grad: Tensor, buf: Tensor | None, momentum: float, dampening: float) -> Tensor:
    """The direction so far, with the gradient in it; a sparse one has the rows of all gradients."""
    if buf is None:
        return grad.clone()
    return buf.mul_(momentum).add_(grad, alpha=1 - dampening)


def _add_rows_(param: Tensor, grad: Any, factor: Any) -> None:
    """A step in the rows that a sparse direction has."""
    grad = grad.coalesce()
    values = grad.values() * _number(factor)
    param.index_put_(tuple(grad.indices().unbind(0)), values, accumulate=True)


class SGD(_PerParameter):
    """Stochastic gradient descent, with momentum if asked for.

    With g the gradient plus weight_decay * w:
    b = momentum * b + (1 - dampening) * g (the first b is g), and w = w - lr * b,
    or w = w - lr * (g + momentum * b) with `nesterov`.

    Source: Robbins and Monro, A stochastic approximation method (1951); momentum: Sutskever,
    Martens, Dahl and Hinton, On the importance of initialization and momentum in deep learning
    (2013).

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        momentum: how much of the previous direction is kept.
        dampening: how much less of the gradient enters the direction.
        weight_decay: strength of the L2 penalty.
        nesterov: look ahead along the direction; needs momentum and no dampening.
        maximize: climb instead of descending.
        foreach: accepted; it chooses an implementation of PyTorch's.
        fused: False: tensor operations instead of one pass over memory.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.detach()
        tensor([0.8000])
    """

    _clew_takes_sparse: ClassVar[bool] = True
    _clew_unscales: ClassVar[bool] = True
    _clew_added_options: ClassVar[dict[str, Any]] = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr("SGD", lr)
        _check_nonnegative("SGD", momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: nesterov needs momentum > 0 and dampening == 0; "
                f"got momentum={momentum}, dampening={dampening}"
            )
        _check_modes("SGD", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _clew_keeps_state(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"] != 0)

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        return _C._fused_sgd(
            params,
            self.state if group["momentum"] != 0 else None,
            group["lr"],
            group["momentum"],
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
            group["maximize"],
        )

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        buf = _sgd(
            param,
            grad,
            state.get("momentum_buffer"),
            lr=_number(group["lr"]),
            momentum=group["momentum"],
            dampening=group["dampening"],
            weight_decay=_number(group["weight_decay"]),
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        if buf is not None:
            state["momentum_buffer"] = buf
