"""Losses of the distance between two tensors, element by element."""

from __future__ import annotations

import math
import warnings
from typing import Any

import clew
from clew._base.arguments import need_number, need_tensors
from clew._base.autocast import autocasting, fit, float32
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import private
from ._loss import bad_reduction, check_floating, legacy_reduction, reduced

_distance = private("_distance")
_mse_loss = private("_mse_loss")
_smooth_l1_loss = private("_smooth_l1_loss")
_huber_loss = private("_huber_loss")


def _broadcast(name: str, input: Any, target: Any) -> tuple[Any, Any]:
    """Input and target in one shape, with a warning, for it is likely a mistake."""
    try:
        x, y = clew.broadcast_tensors(input, target)
    except RuntimeError:
        raise RuntimeError(
            f"{name}: input and target must have one shape; got {input.dtype.name}"
            f"{list(input.shape)} and {target.dtype.name}{list(target.shape)}"
        ) from None
    warnings.warn(
        f"{name}: the target has shape {tuple(target.shape)} and the input "
        f"{tuple(input.shape)}; they are broadcast, which is likely not what is meant",
        stacklevel=user_level(),
    )
    return x, y


def _fitted(name: str, input: Any, target: Any, weight: Any) -> tuple[Any, Any]:
    """Input and target in one shape, once they and the weight are checked."""
    try:
        if weight is not None and weight.shape != input.shape:
            raise ValueError(
                f"{name}: weight must have input's shape, {tuple(input.shape)}; got "
                f"{tuple(weight.shape)}. Weights and input must have the same size."
            )
        return (input, target) if target.shape == input.shape else _broadcast(name, input, target)
    except AttributeError:
        given = {"weight": weight} if weight is not None else {}
        need_tensors(name, input=input, target=target, **given)
        raise


def _weighted(loss: Any, weight: Any, reduction: str) -> Any:
    if weight is None:
        return reduced(loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def _edge(value: Any, what: str) -> float:
    """The place where a square turns into a line, as a float."""
    if isinstance(value, clew.Tensor):
        function, _, name = what.partition(": ")
        value = need_number(function, name, value)
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} must be a float or int; got {type(value).__name__}")
    return float(value)


def _distance_loss(
    name: str, total: Any, input: Any, target: Any, curve: Any, weight: Any, reduction: str
) -> Any:
    """The loss that `curve` (edge, half, line; see _distance) makes of the distance.

    Args:
        name: the loss's.
        total: the operation for sum and mean.
        input: predictions.
        target: what they should be.
        curve: its arguments.
        weight: a factor for each element, or None.
        reduction: "none", "mean" or "sum".
    """
    fits = input.dtype == target.dtype and input.shape == target.shape
    try:
        fits = fits and input.is_floating_point()
    except AttributeError:
        need_tensors(name, input=input, target=target)
        raise
    if weight is None and reduction != "none" and fits:
        if reduction not in ("mean", "sum"):
            raise bad_reduction(reduction)
        return total(input, target, *curve, reduction == "mean")
    need_tensors(name, input=input, target=target)
    if not any(t.is_floating_point() or t.is_complex() for t in (input, target)):
        raise RuntimeError(
            f"{name}: input or target must be floating point; got {input.dtype} and {target.dtype}"
        )
    if input.is_complex() or target.is_complex():
        input = (input - target).abs()
        target = clew.zeros((), dtype=input.dtype)
    return _weighted(_distance(input, target, *curve), weight, reduction)


@asks_classes
def mse_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> clew.Tensor:
    """Squared difference: (input - target)^2.

    Args:
        input: predictions, of any shape.
        target: what they should be, of input's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".
        weight: a factor for each element, of input's shape; "mean" divides by their sum.

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> clew.nn.functional.mse_loss(clew.tensor([1., 2.]), clew.tensor([1., 4.])).item()
        2.0
    """
    if reduction == "mean" and size_average is reduce is weight is None and fit(input, target):
        return _mse_loss(input, target, math.inf, 1.0, 0.0, True)
    if autocasting():
        input, target, weight = float32(input, target, weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _fitted("mse_loss", input, target, weight)
    return _distance_loss(
        "mse_loss", _mse_loss, input, target, (math.inf, 1.0, 0.0), weight, reduction
    )


@asks_classes
def l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> clew.Tensor:
    """Absolute difference: |input - target|.

    Args:
        input: predictions, of any shape.
        target: what they should be, of input's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".
        weight: a factor for each element, of input's shape; "mean" divides by their sum.

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> clew.nn.functional.l1_loss(clew.tensor([1., 2.]), clew.tensor([1., 4.])).item()
        1.0
    """
    if reduction == "mean" and size_average is reduce is weight is None and fit(input, target):
        return (input - target).abs().mean()
    if autocasting():
        input, target, weight = float32(input, target, weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = _fitted("l1_loss", input, target, weight)
    return _weighted((input - target).abs(), weight, reduction)


@asks_classes
def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> clew.Tensor:
    """Squared difference near zero, absolute difference beyond beta.

    d^2 / (2 beta) where d = |input - target| is below beta, d - beta / 2 elsewhere. Of Fast R-CNN
    (Girshick, 2015, section 2.3), with beta 1.

    Args:
        input: predictions, of any shape.
        target: what they should be, of input's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".
        beta: where the square ends; 0 gives l1_loss.

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> x, y = clew.tensor([0., 0.]), clew.tensor([0.5, 3.])
        >>> clew.nn.functional.smooth_l1_loss(x, y, reduction="none").tolist()
        [0.125, 2.5]
    """
    if reduction == "mean" and size_average is reduce is None and beta == 1 and fit(input, target):
        return _smooth_l1_loss(input, target, 1.0, 0.5, 1.0, True)
    if autocasting():
        input, target = float32(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    beta = _edge(beta, "smooth_l1_loss: beta")
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative; got {beta}")
    input, target = _fitted("smooth_l1_loss", input, target, None)
    # Of a square this short nothing is left, and its factor would overflow.
    if beta < (1e-307 if clew.float64 in (input.dtype, target.dtype) else 1e-37):
        return reduced((input - target).abs(), reduction)
    curve = (beta, 0.5 / beta, 1.0)
    return _distance_loss("smooth_l1_loss", _smooth_l1_loss, input, target, curve, None, reduction)


@asks_classes
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> clew.Tensor:
    """Half the squared difference near zero, linear beyond delta.

    d^2 / 2 where d = |input - target| is at most delta, delta * (d - delta / 2) elsewhere (Huber,
    Robust estimation of a location parameter, 1964).

    Args:
        input: predictions, of any shape, floating point.
        target: what they should be, of input's shape.
        reduction: "none", "mean" or "sum".
        delta: where the square ends, above 0.
        weight: a factor for each element, of input's shape; "mean" divides by their number, as
            PyTorch's does.

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> x, y = clew.tensor([0., 0.]), clew.tensor([1., 4.])
        >>> clew.nn.functional.huber_loss(x, y, delta=2.0, reduction="none").tolist()
        [0.5, 6.0]
    """
    if autocasting():
        input, target, weight = float32(input, target, weight)
    delta = _edge(delta, "huber_loss: delta")
    if not delta > 0:
        raise RuntimeError(f"huber_loss: delta must be greater than 0; got {delta}")
    input, target = _fitted("huber_loss", input, target, weight)
    need_tensors("huber_loss", input=input)
    if not input.is_complex():
        check_floating("huber_loss", input=input)
    curve = (delta, 0.5, delta)
    if weight is None:
        loss = _distance_loss("huber_loss", _huber_loss, input, target, curve, None, reduction)
    else:
        each = _distance_loss("huber_loss", _huber_loss, input, target, curve, None, "none")
        loss = reduced(each * weight, reduction)
    return loss if input.is_complex() or target.is_complex() else loss.to(input.dtype)
