"""Losses, as composites of differentiable operations."""

from __future__ import annotations

import math
import warnings
from typing import Any

import clew
from clew._base.arguments import need_bools, need_tensors
from clew._base.autocast import autocasting, fit, float32
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import logsigmoid, private, xlogy

_binary_cross_entropy = private("_binary_cross_entropy")
_binary_cross_entropy_with_logits = private("_binary_cross_entropy_with_logits")


OLD_MEAN = "elementwise_mean"  # as PyTorch 0.4.1 called "mean"


def legacy_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The meaning of the old arguments size_average and reduce.

    Args:
        size_average: False means "sum".
        reduce: False means "none".
        reduction: the answer when both are None.

    Returns:
        "none", "mean" or "sum".
    """
    if size_average is None and reduce is None:
        if reduction != OLD_MEAN:
            return reduction
        warnings.warn(
            f"reduction='{OLD_MEAN}' is deprecated; use reduction='mean' instead",
            stacklevel=user_level(),
        )
        return "mean"
    for name, value in (("size_average", size_average), ("reduce", reduce)):
        if isinstance(value, clew.Tensor) and value.numel() != 1:
            raise RuntimeError(
                f"a loss's {name} must be a bool or None; got a tensor of shape "
                f"{list(value.shape)}. A module is made first and then called: "
                "nn.MSELoss()(input, target)"
            )
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce are deprecated; use reduction='{found}' instead",
        stacklevel=user_level(),
    )
    return found


def bad_reduction(reduction: Any) -> ValueError:
    """The error for a reduction that is none of the three."""
    return ValueError(
        f"{reduction} is not a valid value for reduction; it must be 'none', 'mean' or 'sum'"
    )


def reduced(loss: Any, reduction: str) -> clew.Tensor:
    """A loss of elements as its mean, its sum or itself.

    Args:
        loss: the elements.
        reduction: "none", "mean" or "sum".

    Returns:
        a tensor.
    """
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise bad_reduction(reduction)


def check_floating(name: str, **tensors: Any) -> None:
    """Raises for the first of a loss's tensors that is not floating point."""
    for what, t in tensors.items():
        try:
            fits = t.is_floating_point()
        except AttributeError:
            need_tensors(name, **tensors)
            raise
        if not fits:
            raise RuntimeError(
                f"{name}: {what} must be floating point; got {t.dtype}. Convert it with .float()"
            )


@asks_classes
def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Cross entropy of probabilities with targets in [0, 1].

    -(target * log(input) + (1 - target) * log(1 - input)); each logarithm is at least -100.

    Args:
        input: probabilities in [0, 1], of any shape, floating point.
        target: the same shape and dtype.
        weight: a factor that broadcasts to target's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Raises:
        RuntimeError: if an element of input or target is not between 0 and 1.

    Example:
        >>> p, y = clew.tensor([0.5, 0.25]), clew.tensor([1., 0.])
        >>> loss = clew.nn.functional.binary_cross_entropy(p, y, reduction="none")
        >>> [round(x, 4) for x in loss.tolist()]
        [0.6931, 0.2877]
    """
    if autocasting():
        input, target, weight = float32(input, target, weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_floating("binary_cross_entropy", input=input, target=target)
    if target.shape != input.shape:
        raise ValueError(
            f"binary_cross_entropy: input and target must have the same shape; got "
            f"{tuple(input.shape)} and {tuple(target.shape)}"
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"binary_cross_entropy: target must have input's dtype, {input.dtype}; got "
            f"{target.dtype}"
        )
    if input.numel() and input.device.type != "meta":
        for name, given in (("input", input), ("target", target)):
            plain = given.detach()
            if clew._C._vmap_depth() and (levels := clew._C._levels(plain)):
                plain = clew._C._show_levels(plain, levels)
            # NaN fails too.
            if not (plain.min().item() >= 0 and plain.max().item() <= 1):
                raise RuntimeError(
                    f"binary_cross_entropy: all elements of {name} should be between 0 and 1"
                )
    loss = _binary_cross_entropy(input, target)
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


@asks_classes
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> clew.Tensor:
    """Cross entropy of sigmoid(input) with targets in [0, 1], without overflow.

    -(pos_weight * target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input))).

    Args:
        input: scores of any shape, floating point.
        target: the same shape.
        weight: a factor that broadcasts to target's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".
        pos_weight: a factor for the positive part, for each class; broadcasts with target.

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> score, y = clew.tensor([0., 200.]), clew.tensor([1., 0.])
        >>> loss = clew.nn.functional.binary_cross_entropy_with_logits(score, y, reduction="none")
        >>> [round(x, 4) for x in loss.tolist()]
        [0.6931, 200.0]
    """
    plain = size_average is reduce is weight is pos_weight is None
    if plain and reduction == "mean" and fit(input, target):
        return _binary_cross_entropy_with_logits(input, target).mean()
    if autocasting():
        input, target, weight, pos_weight = float32(input, target, weight, pos_weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_floating("binary_cross_entropy_with_logits", input=input, target=target)
    if target.shape != input.shape:
        raise ValueError(
            "binary_cross_entropy_with_logits: "
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    if pos_weight is None:
        loss = _binary_cross_entropy_with_logits(input, target)
    else:
        # Each half by itself, so that nothing cancels where the score is sure of the target.
        loss = (target - 1) * logsigmoid(-input) - pos_weight * target * logsigmoid(input)
    if weight is not None:
        loss = loss * weight
    # PyTorch computes in place of 1 - target.
    return reduced(loss.to(target.dtype), reduction)


@asks_classes
def kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> clew.Tensor:
    """Kullback-Leibler divergence, pointwise: target * (log(target) - input).

    Args:
        input: log-probabilities of any shape, floating point.
        target: probabilities, or their logarithms; broadcasts with input.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" (over elements), "batchmean" (the mathematical one) or "sum".
        log_target: target holds logarithms.

    Returns:
        the loss: a 0-d tensor, or the common shape with reduction "none".

    Example:
        >>> p = clew.tensor([[0.5, 0.5]])
        >>> q = clew.tensor([[0.25, 0.75]])
        >>> round(clew.nn.functional.kl_div(q.log(), p, reduction="batchmean").item(), 4)
        0.1438
    """
    if log_target is not False:
        need_bools("kl_div", log_target=log_target)
    if autocasting():
        input, target = float32(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_floating("kl_div", input=input, target=target)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.dim() else loss.sum()
    if reduction == "mean":
        warnings.warn(
            "kl_div: reduction='mean' divides by the number of elements; the divergence is "
            "reduction='batchmean'",
            stacklevel=user_level(),
        )
    return reduced(loss, reduction)


@asks_classes
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Negative log-likelihood of counts under a Poisson distribution.

    exp(input) - target * input of logarithms; input - target * log(input + eps) otherwise; without
    the constant log(target!).

    Args:
        input: the expected count, or its logarithm; any shape.
        target: the counts; broadcasts with input.
        log_input: input is the logarithm.
        full: add Stirling's approximation of the constant, where target is above 1.
        size_average: old; see reduction.
        eps: keeps the logarithm finite.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or the common shape with reduction "none".

    Example:
        >>> log_rate, count = clew.tensor([0., 0.]), clew.tensor([0., 3.])
        >>> clew.nn.functional.poisson_nll_loss(log_rate, count, reduction="none").tolist()
        [1.0, 1.0]
    """
    need_bools("poisson_nll_loss", log_input=log_input, full=full)
    if autocasting():
        input, target = float32(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise bad_reduction(reduction)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        few = target <= 1
        many = clew.where(few, 1.0, target)  # no logarithm of 0: nan_watch would tell of it
        stirling = many * many.log() - many + 0.5 * (2 * math.pi * many).log()
        loss = loss + clew.where(few, 0.0, stirling).to(loss.dtype)
    return reduced(loss, reduction)


@asks_classes
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> clew.Tensor:
    """Negative log-likelihood under normal distributions with given variances.

    (log(max(var, eps)) + (input - target)^2 / max(var, eps)) / 2.

    Args:
        input: the means, of any shape.
        target: the samples; broadcasts with input.
        var: the variances: a number, input's shape, or with the last dim 1 or left out.
        full: add the constant term, log(2 pi) / 2.
        eps: least variance.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Raises:
        ValueError: if a variance is negative or var's shape does not fit.

    Example:
        >>> mean, seen = clew.tensor([0., 0.]), clew.tensor([0., 2.])
        >>> clew.nn.functional.gaussian_nll_loss(mean, seen, 1.0, reduction="none").tolist()
        [0.0, 2.0]
    """
    if not isinstance(var, clew.Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry/entries; got {var}")
        var = var * clew.ones_like(input)  # a fraction beside integers, too
    elif bool((var < 0).any()):
        raise ValueError(
            f"gaussian_nll_loss: var has negative entry/entries; the least is {var.min().item()}"
        )
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            if not _broadcasts(var, input):
                raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    with clew.no_grad():
        lift = clew.clamp(var, min=eps) - var
    var = var + lift
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def _broadcasts(small: Any, big: Any) -> bool:
    a, b = tuple(small.shape), tuple(big.shape)
    return len(a) <= len(b) and all(
        x in (1, y) for x, y in zip(reversed(a), reversed(b), strict=False)
    )
