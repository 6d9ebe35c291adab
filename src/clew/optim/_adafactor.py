"""Adafactor: second moments kept as a row and a column."""

from __future__ import annotations

from typing import Any, ClassVar

import clew
from clew import Tensor

from ._rule import (
    ParamsT,
    _check,
    _check_lr,
    _check_modes,
    _check_nonnegative,
    _number,
    _PerParameter,
    _step_tensor,
)

__all__ = ["Adafactor"]


def _adafactor(
    param: Tensor,
    grad: Tensor,
    row_var: Tensor | None,
    col_var: Tensor | None,
    variance: Tensor | None,
    step: float,
    *,
    lr: float,
    beta2_decay: float,
    eps1: float,
    eps2: float,
    d: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """The update rule; matrices have `row_var` and `col_var`, vectors and scalars `variance`."""
    if maximize:
        grad = -grad
    keep = step**beta2_decay
    rate = min(lr, 1 / step**0.5)
    alpha = max(eps2, param.norm(2).item() / param.numel() ** 0.5) * rate
    if weight_decay != 0:
        param.mul_(1 - lr * weight_decay)
    if row_var is not None and col_var is not None:
        row_var.lerp_(grad.square().mean(-1, keepdim=True), keep)
        col_var.lerp_(grad.square().mean(-2, keepdim=True), keep)
        estimate = row_var @ col_var
        estimate.div_(row_var.mean(-2, keepdim=True).clamp_(min=eps1))
    else:
        assert variance is not None
        variance.lerp_(grad.square(), keep)
        estimate = variance.clone()
    update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
    denom = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * d))
    param.add_(update, alpha=-alpha / denom)


class Adafactor(_PerParameter):
    """Adafactor: Adam's second moment of a matrix from its row and column means, in little memory.

    Of a gradient g of shape (..., n, k) at step t, with beta2 = 1 - t**beta2_decay:
    r = beta2 * r + (1 - beta2) * mean(g**2, -1), of shape (..., n, 1);
    c = beta2 * c + (1 - beta2) * mean(g**2, -2), of shape (..., 1, k);
    v = r @ c / max(mean(r, -2), eps[0]), and u = g / sqrt(max(v, eps[0]**2)).
    Tensors of fewer dimensions have v = beta2 * v + (1 - beta2) * g**2. Then, with rms the root
    mean square,
    w = (1 - lr * weight_decay) * w - a * u / max(1, rms(u) / d), where
    a = max(eps[1], rms(w)) * min(lr, 1 / sqrt(t)) of the w before.

    Source: Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost
    (2018), algorithms 4 and 5.

    Args:
        params: tensors of any shape, floating point; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: upper bound of the relative step length, a number or a tensor with one element.
        beta2_decay: the moments' decay at step t is 1 - t**beta2_decay.
        eps: smallest variance (None for the dtype's epsilon) and smallest parameter scale.
        d: largest root mean square of an update.
        weight_decay: how fast parameters shrink.
        foreach: accepted; it chooses an implementation, and clew has one.
        maximize: climb instead of descending.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.Adafactor([w])
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.item() < 1
        True
    """

    _clew_added_options: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_lr("Adafactor", lr)
        _check("Adafactor", beta2_decay <= 0.0, "beta2_decay must not be positive", beta2_decay)
        for i, value in enumerate(eps):
            ok = value is None or value >= 0
            _check("Adafactor", ok, f"eps[{i}] must not be negative", value)
        _check("Adafactor", d >= 1.0, "d must be at least 1", d)
        _check_nonnegative("Adafactor", weight_decay=weight_decay)
        _check_modes("Adafactor", foreach=foreach)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor: parameters must be real; got a complex one")
        state["step"] = _step_tensor()
        if param.dim() > 1:
            shape = list(param.shape)
            state["row_var"] = param.new_zeros([*shape[:-1], 1])
            state["col_var"] = param.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = clew.zeros_like(param, requires_grad=False)

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        step = state["step"]
        step += 1
        eps1, eps2 = group["eps"]
        _adafactor(
            param,
            grad,
            state.get("row_var"),
            state.get("col_var"),
            state.get("variance"),
            step.item(),
            lr=float(_number(group["lr"])),
            beta2_decay=group["beta2_decay"],
            eps1=clew.finfo(param.dtype).eps if eps1 is None else eps1,
            eps2=eps2,
            d=group["d"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
