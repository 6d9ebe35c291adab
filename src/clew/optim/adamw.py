"""Adam with weight decay apart from the gradient."""

from __future__ import annotations

from typing import Any

from clew import Tensor

from .adam import Adam
from .optimizer import ParamsT

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay: w = (1 - lr * weight_decay) * w before Adam's step.

    Then w = w - lr * m / (sqrt(v) + eps), with the moments of `Adam`, in which weight_decay has no
    part.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2.

    Args:
        params: tensors of any shape, floating point or complex; (name, tensor) pairs; or dicts with
            `params` and options of that group.
        lr: step length, a number or a tensor with one element.
        betas: decay of the two moments.
        eps: added to the denominator.
        weight_decay: how fast parameters shrink.
        amsgrad: use the largest second moment so far.
        maximize: climb instead of descending.
        foreach, fused: accepted; they choose an implementation, and clew has one.
        capturable: not for this device; True raises.
        differentiable: record the step itself, so that backward goes through it.

    Example:
        >>> w = clew.tensor([1.0], requires_grad=True)
        >>> opt = clew.optim.AdamW([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w.detach()
        tensor([0.8990])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # checkpoints older than the option
            group["decoupled_weight_decay"] = True
