"""What the update rules share: checks of options, arithmetic in place, the loop over parameters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import clew
from clew import Tensor

from .optimizer import Optimizer, ParamsT

__all__ = ["ParamsT"]


def _check(name: str, ok: bool, what: str, value: Any) -> None:
    if not ok:
        raise ValueError(f"{name}: {what}; got {value}")


def _check_real(name: str, what: str, value: Any) -> None:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {what} must be a number; got {value!r}")


def _check_nonnegative(name: str, **values: Any) -> None:
    for key, value in values.items():
        _check_real(name, key, value)
        if not 0.0 <= value:
            raise ValueError(f"{name}: {key} must not be negative; got {value}")


def _check_lr(name: str, lr: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError(
                f"{name}: a tensor lr needs capturable=True or foreach=False; got foreach=True"
            )
        if lr.numel() != 1:
            raise ValueError(f"{name}: a tensor lr must have one element; got {list(lr.shape)}")
    _check_real(name, "lr", lr)
    if not 0.0 <= lr:
        raise ValueError(f"{name}: lr must not be negative; got {lr}")


def _check_betas(name: str, betas: Any, foreach: bool | None = None) -> None:
    if len({isinstance(beta, Tensor) for beta in betas}) > 1:
        raise ValueError(f"{name}: betas must be all numbers or all tensors; got {betas}")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor) and foreach:
            raise ValueError(
                f"{name}: betas[{i}] as a tensor needs foreach=False; got foreach=True"
            )
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"{name}: betas[{i}] must have one element; got {list(beta.shape)}")
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"{name}: betas[{i}] must be in [0, 1); got {beta}")


def _check_modes(
    name: str,
    *,
    foreach: bool | None = None,
    fused: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
) -> None:
    """`foreach` and `fused` choose an implementation, never the numbers: clew has one a rule."""
    if fused and foreach:
        raise RuntimeError(f"{name}: fused and foreach cannot both be True")
    if fused and differentiable:
        raise RuntimeError(f"{name}: a fused step is not differentiable")
    if foreach and differentiable:
        raise NotImplementedError(f"{name}: a foreach step is not differentiable")
    if capturable:
        raise AssertionError(
            f"{name}: capturable=True is about recording CUDA graphs; clew's device is 'cpu'"
        )


def _number(value: Any) -> Any:
    """A hyperparameter as a Python number; a tensor that needs a gradient stays a tensor."""
    if isinstance(value, Tensor) and not value.requires_grad:
        return value.item()
    return value


def _real(*tensors: Tensor | None) -> list[Any]:
    """Complex tensors as real ones with a last dimension of two, sharing memory."""
    return [clew.view_as_real(t) if t is not None and t.is_complex() else t for t in tensors]


def _step_tensor(value: float = 0.0) -> Tensor:
    """The count of steps, kept as PyTorch keeps it so that checkpoints can be exchanged."""
    dtype = clew.float64 if clew.get_default_dtype() == clew.float64 else clew.float32
    return clew.tensor(value, dtype=dtype)


# In-place arithmetic with hyperparameters that may be tensors needing a gradient. What such a
# tensor is multiplied with is saved for backward, so it must not be the memory written to.


def _add_(out: Tensor, other: Tensor, alpha: Any) -> None:
    if isinstance(alpha, Tensor):
        out.add_(other * alpha)
    else:
        out.add_(other, alpha=alpha)


def _addcdiv_(out: Tensor, a: Tensor, b: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        out.add_(a / b * value)
    else:
        out.addcdiv_(a, b, value=value)


def _shrink_(param: Tensor, lr: Any, weight_decay: Any) -> None:
    """Decoupled weight decay: param *= 1 - lr * weight_decay."""
    if isinstance(lr, Tensor) or isinstance(weight_decay, Tensor):
        param.copy_(param.clone() * (1 - lr * weight_decay))
    else:
        param.mul_(1 - lr * weight_decay)


def _decayed(grad: Tensor, param: Tensor, weight_decay: Any) -> Tensor:
    """The gradient of the loss with weight_decay / 2 * |param|^2 added to it."""
    if isinstance(weight_decay, Tensor):
        return grad + param.clone() * weight_decay
    return grad.add(param, alpha=weight_decay)


def _downhill(
    param: Tensor,
    grad: Tensor,
    lr: Any,
    weight_decay: Any,
    maximize: bool,
    decoupled: bool = False,
) -> Tensor:
    """The gradient that a step goes against: turned round to maximize, with the weight decay, which
    shrinks the parameter instead where it is decoupled."""
    if maximize:
        grad = -grad
    if isinstance(weight_decay, Tensor) or weight_decay != 0:
        if decoupled:
            _shrink_(param, lr, weight_decay)
        else:
            grad = _decayed(grad, param, weight_decay)
    return grad


def _average_(avg: Tensor, value: Tensor, beta: Any) -> None:
    """avg = beta * avg + (1 - beta) * value"""
    if isinstance(beta, Tensor):
        avg.copy_(avg.clone().lerp(value, (1 - beta).to(avg.dtype)))
    else:
        avg.lerp_(value, 1 - beta)


def _average_square_(avg: Tensor, value: Tensor, beta: Any) -> None:
    """avg = beta * avg + (1 - beta) * value**2"""
    if isinstance(beta, Tensor):
        avg.copy_(avg.clone() * beta + value * value * (1 - beta))
    else:
        avg.mul_(beta).addcmul_(value, value, value=1 - beta)


def _sqrt(value: Any) -> Any:
    return value.sqrt() if isinstance(value, Tensor) else math.sqrt(value)


# Options of most rules that checkpoints of older versions may lack.
_ADDED_OPTIONS = {
    "foreach": None,
    "maximize": False,
    "differentiable": False,
    "capturable": False,
}


class _PerParameter(Optimizer):
    """An optimizer whose update treats every parameter by itself.

    A subclass gives `_clew_update(group, param, grad, state)` and what it keeps: the names of what
    begins as zeros, beside the count of steps, in `_clew_zeros`, or all in
    `_clew_init_state(group, param, state)`; a program's own subclass must not meet these names.
    `_clew_added_options` are the options that checkpoints of older versions may lack.
    """

    _clew_added_options: ClassVar[dict[str, Any]] = {}
    _clew_zeros: ClassVar[tuple[str, ...]] = ()
    _clew_takes_sparse: ClassVar[bool] = False  # sparse gradients
    _clew_unscales: ClassVar[bool] = False  # reads what scalers of gradients set for fused steps

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for key, value in self._clew_added_options.items():
                group.setdefault(key, value)
        for values in self.state.values():
            step = values.get("step") if isinstance(values, dict) else None
            if step is not None and not isinstance(step, Tensor):
                values["step"] = _step_tensor(float(step))

    def _clew_keeps_state(self, group: dict[str, Any]) -> bool:
        return True

    def _clew_init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Fills the empty state of a parameter that has its first gradient."""
        if self._clew_zeros:
            state["step"] = _step_tensor()
        for name in self._clew_zeros:
            state[name] = clew.zeros_like(param, requires_grad=False)

    def _clew_begin_state(
        self, group: dict[str, Any], param: Tensor, state: dict[str, Any]
    ) -> None:
        """The same, as a whole or not at all: there may be no memory for a part of it."""
        try:
            self._clew_init_state(group, param, state)
        except BaseException:
            state.clear()
            raise

    def _clew_update(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]
    ) -> None:
        raise NotImplementedError

    def _clew_update_all(self, group: dict[str, Any], params: list[Tensor]) -> list[int] | None:
        """Updates what one pass over memory can of the parameters that have a gradient; gives the
        numbers of the others, None if there are none. A parameter without its state is left.
        """
        return [i for i, param in enumerate(params) if param.grad is not None]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes every parameter that has a gradient, once.

        Args:
            closure: evaluates the model again and returns the loss.

        Returns:
            What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with clew.enable_grad():
                loss = closure()
        scaled = "grad_scale" in self.__dict__ or "found_inf" in self.__dict__
        if scaled and self._clew_unscales and not self._clew_unscale():
            return loss
        differentiable = bool(self.defaults.get("differentiable"))
        for group in self.param_groups:
            if group.get("capturable"):
                _check_modes(type(self).__name__, capturable=True)
            params = group["params"]
            if differentiable or group.get("fused") is False:
                self._clew_step_each(group, params, differentiable)
                continue
            left = self._clew_update_all(group, params)
            if left is not None:
                self._clew_step_left(group, [params[i] for i in left])
        return loss

    def _clew_unscale(self) -> bool:
        """Divides the gradients by `grad_scale`; False where `found_inf` is set: no step is made.

        A scaler of gradients sets these attributes for a fused step, which unscales by itself.
        """
        scale, found_inf = self.__dict__.get("grad_scale"), self.__dict__.get("found_inf")
        if scale is None and found_inf is None:
            return True
        if not all(group.get("fused") for group in self.param_groups):
            raise AssertionError(
                f"{type(self).__name__}: grad_scale and found_inf are for fused steps; got "
                "fused=False or None; make the optimizer with fused=True or unscale the gradients"
            )
        if found_inf is not None and bool(found_inf):
            return False
        if scale is not None:
            with clew.no_grad():
                for group in self.param_groups:
                    for param in group["params"]:
                        if param.grad is not None:
                            param.grad.div_(scale)
        return True

    def _clew_step_left(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """What the pass over memory left: at the first step, because there were no states."""
        made = False
        for param in params if self._clew_keeps_state(group) else ():
            state = self.state[param]
            if not state:
                self._clew_begin_state(group, param, state)
                made = True
        if made:
            left = self._clew_update_all(group, params)
            params = [] if left is None else [params[i] for i in left]
        self._clew_step_each(group, self._clew_step_parts(group, params), False)

    def _clew_step_parts(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        """Updates the parameters that are cut over processes by this process's part; returns the
        others.

        The part is enough, because these update rules treat every element by itself.
        """
        if type(self)._clew_update_all is _PerParameter._clew_update_all:
            return params
        keeps = self._clew_keeps_state(group)
        parts: dict[Any, dict[str, Any]] = {}
        owners, others = [], []
        for param in params:
            take = getattr(type(param), "_part_to_step", None)
            found = take(param, self.state[param] if keeps else {}) if take is not None else None
            if found is None:
                others.append(param)
            else:
                parts[found[0]] = found[1]
                owners.append(param)
        if not parts:
            return params
        whole = self.state
        self.state = defaultdict(dict, parts)
        try:
            left = self._clew_update_all(group, list(parts))
        finally:
            self.state = whole
        return others + [owners[i] for i in left or ()]

    def _clew_step_each(
        self, group: dict[str, Any], params: list[Tensor], differentiable: bool
    ) -> None:
        """Updates parameters with tensor operations."""
        keeps_state = self._clew_keeps_state(group)
        with clew.set_grad_enabled(differentiable):
            for param in params:
                grad = param.grad
                if grad is None:
                    continue
                if grad.is_sparse and not self._clew_takes_sparse:
                    raise RuntimeError(
                        f"{type(self).__name__}: sparse gradients, as of an embedding with "
                        "sparse=True, are not offered; use SparseAdam, Adagrad or SGD, or an "
                        "embedding with sparse=False"
                    )
                state = self.state[param] if keeps_state else {}
                if not state:
                    if keeps_state:
                        self._clew_begin_state(group, param, state)
                elif differentiable:
                    # Earlier steps' graphs hold the old tensors: the updates write to copies.
                    for key, value in state.items():
                        if isinstance(value, Tensor) and key != "step":
                            state[key] = value.clone()
                self._clew_update(group, param, grad, state)
