"""Muon: momentum whose update of a matrix is made orthogonal."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor

from ._rule import (
    ParamsT,
    _check,
    _check_lr,
    _check_nonnegative,
    _number,
    _PerParameter,
)

__all__ = ["Muon"]


def _orthogonal(
    update: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """The nearest matrix whose singular values are about 1, by Newton-Schulz iteration."""
    a, b, c = coefficients
    x = update.bfloat16()
    wide = x.size(0) <= x.size(1)
    if not wide:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = clew.addmm(x, clew.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T


def _muon(
    param: Tensor,
    grad: Tensor,
    buf: Tensor,
    *,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    coefficients: tuple[float, float, float],
    eps: float,
    ns_steps: int,
    adjust_lr_fn: str | None,
) -> None:
    """The update rule."""
    buf.lerp_(grad, 1 - momentum)
    update = grad.lerp(buf, momentum) if nesterov else buf
    update = _orthogonal(update, coefficients, ns_steps, eps)
    rows, columns = param.shape
    if adjust_lr_fn == "match_rms_adamw":
        rate = lr * 0.2 * max(rows, columns) ** 0.5
    else:
        rate = lr * max(1, rows / columns) ** 0.5
    # Of a tensor these are tensors too, rounded as its dtype says.
    param.mul_(1 - lr * weight_decay)
    param.add_(update, alpha=-_number(rate))


class Muon(_PerParameter):
    """Momentum descent for the matrices of hidden layers, with orthogonal updates.

    b = momentum * b + (1 - momentum) * g, and u = b, or (1 - momentum) * g + momentum * b with
    `nesterov`; w = (1 - lr * weight_decay) * w - factor * lr * orthogonal(u), where `adjust_lr_fn`
    gives the factor.

    orthogonal(u) brings all singular values near 1: X = u / max(norm(u), eps) in bfloat16, then
    ns_steps times A = X @ X.T and X = a * X + (b * A + c * A @ A) @ X, where (a, b, c) are the
    ns_coefficients.

    Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks (2024);
    match_rms_adamw: Liu et al., Muon is scalable for LLM training (2025).

    Args:
        params: two-dimensional tensors, (name, tensor) pairs, or dicts of groups of such.
        lr: step length.
        weight_decay: how fast parameters shrink.
        momentum: decay of the direction's average.
        nesterov: look ahead along the direction.
        ns_coefficients: the three coefficients of the Newton-Schulz polynomial.
        eps: smallest norm divided by.
        ns_steps: Newton-Schulz iterations, under 100.
        adjust_lr_fn: None or "original" for sqrt(max(1, rows / columns)), "match_rms_adamw" for
            0.2 * sqrt(max(rows, columns)) as the factor of lr.

    Example:
        >>> w = clew.ones(2, 2, requires_grad=True)
        >>> opt = clew.optim.Muon([w], lr=0.1)
        >>> w.sum().backward()
        >>> opt.step()
        >>> bool((w < 1).all())
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        _check_lr("Muon", lr)
        _check_nonnegative("Muon", momentum=momentum, weight_decay=weight_decay)
        _check(
            "Muon",
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            "adjust_lr_fn must be None, 'original' or 'match_rms_adamw'",
            adjust_lr_fn,
        )
        _check("Muon", len(ns_coefficients) == 3, "ns_coefficients must be three", ns_coefficients)
        _check("Muon", 0 <= ns_steps < 100, "ns_steps must be in [0, 100)", ns_steps)
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                _check("Muon", p.dim() == 2, "parameters must be matrices", list(p.shape))

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Muon: parameters must be real; got a complex one")
        state["momentum_buffer"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        _muon(
            param,
            grad,
            state["momentum_buffer"],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            nesterov=group["nesterov"],
            coefficients=group["ns_coefficients"],
            eps=group["eps"],
            ns_steps=group["ns_steps"],
            adjust_lr_fn=group["adjust_lr_fn"],
        )
