"""Losses, as composites of differentiable operations."""

from __future__ import annotations

import math
import warnings
from typing import Any

import clew
from clew._base.arguments import need_tensors
from clew._base.autocast import autocasting, float32
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import linear, logsigmoid, private, xlogy

_nll_loss = private("_nll_loss")
_cross_entropy = private("_cross_entropy")
_binary_cross_entropy = private("_binary_cross_entropy")
_binary_cross_entropy_with_logits = private("_binary_cross_entropy_with_logits")


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
        return reduction
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


def _check_nll(name: str, input: Any, target: Any, weight: Any, reduction: str) -> None:
    need_tensors(name, input=input, target=target)
    if reduction not in ("none", "mean", "sum"):
        raise bad_reduction(reduction)
    if input.dim() < 1:
        raise ValueError(f"{name}: input must have 1 or more dims; got {input.dim()}")
    at = 0 if input.dim() == 1 else 1
    want = tuple(input.shape[:at]) + tuple(input.shape[at + 1 :])
    if tuple(target.shape) != want:
        if input.dim() > 1 and target.dim() > 0 and target.shape[0] != input.shape[0]:
            raise ValueError(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                f"({target.shape[0]}). {name}: input has shape {list(input.shape)}, target "
                f"{list(target.shape)}"
            )
        raise RuntimeError(
            f"{name}: target must have shape {want}, input's without the class dim; "
            f"got {tuple(target.shape)}"
        )
    classes = input.shape[at]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"{name}: weight must be of shape ({classes},), one for each class; "
            f"got {tuple(weight.shape)}"
        )


@asks_classes
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Negative log-likelihood of the right class: minus the log-probability at target.

    "mean" divides by the sum of the factors that weight gives the targets.

    Args:
        input: log-probabilities, (N, C), (C) or (N, C, d1, ...), floating point.
        target: int64 class indices, input's shape without C.
        weight: (C), a factor for each class, of input's dtype.
        size_average: old; see reduction.
        ignore_index: a target that counts nothing.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or target's shape with reduction "none".

    Example:
        >>> logp = clew.tensor([[-1., -2.], [-3., -4.]])
        >>> clew.nn.functional.nll_loss(logp, clew.tensor([0, 1])).item()
        2.5
    """
    if autocasting():
        input, weight = float32(input, weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"nll_loss: weight must have input's dtype, {input.dtype}; got {weight.dtype}"
        )
    try:
        return _nll_loss(input, target, weight, ignore_index, reduction)[0]
    except Exception:
        # The native check speaks of shapes; say it as people know it where a usual mistake was
        # made.
        _check_nll("nll_loss", input, target, weight, reduction)
        raise


def _of_indices(
    input: Any, target: Any, weight: Any, ignore_index: int, reduction: str, smoothing: float
) -> Any:
    """cross_entropy of class indices."""
    try:
        return _cross_entropy(input, target, weight, ignore_index, reduction, smoothing)[0]
    except IndexError as e:
        raise IndexError(str(e).replace("nll_loss", "cross_entropy", 1)) from None
    except Exception:
        # As nll_loss: in words of the usual mistakes.
        need_tensors("cross_entropy", input=input, target=target)
        if target.shape == input.shape and input.dim() > 1 and not target.is_floating_point():
            raise RuntimeError(
                "cross_entropy: target with class probabilities must be floating point; got "
                f"{target.dtype}"
            ) from None
        _check_nll("cross_entropy", input, target, weight, reduction)
        raise


@asks_classes
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> clew.Tensor:
    """Negative log-likelihood of the target under the softmax of the input.

    Of class indices: -log_softmax(input)[target]; of probabilities: -sum(target *
    log_softmax(input)) over the classes.

    Args:
        input: scores, (N, C), (C) or (N, C, d1, ...), floating point.
        target: int64 class indices, input's shape without C; or probabilities of input's shape.
        weight: (C), a factor for each class.
        size_average: old; see reduction.
        ignore_index: an index that counts nothing.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".
        label_smoothing: how much of the target is spread evenly over the classes.

    Returns:
        the loss: a 0-d tensor, or input's shape without C with reduction "none".

    Example:
        >>> loss = clew.nn.functional.cross_entropy(clew.zeros(1, 4), clew.tensor([2]))
        >>> round(loss.item(), 4)
        1.3863
    """
    plain = weight is None and label_smoothing == 0.0 and size_average is None and reduce is None
    try:
        indices = input.is_floating_point() and not target.is_floating_point()
    except AttributeError:
        need_tensors("cross_entropy", input=input, target=target)
        raise
    if plain and indices and not autocasting():
        return _of_indices(input, target, None, ignore_index, reduction, 0.0)
    if autocasting():
        input, target, weight = float32(input, target, weight)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(
            f"cross_entropy: label_smoothing must be between 0.0 and 1.0; got {label_smoothing}"
        )
    at = 0 if input.dim() == 1 else 1
    if target.is_floating_point() and target.shape == input.shape:
        if ignore_index >= 0:
            raise RuntimeError(
                "cross_entropy: ignore_index is not supported for floating point target"
            )
        logp = clew.log_softmax(input, at)
        classes = input.shape[at]
        if label_smoothing > 0.0:
            target = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(logp * target)
        if weight is not None:
            shape = [1] * input.dim()
            shape[at] = classes
            loss = loss * weight.reshape(shape)
        if reduction == "none":
            return loss.sum(at)
        if reduction == "mean":
            return loss.sum() / (input.numel() / classes if classes else 0.0)
        return reduced(loss, reduction)
    if input.is_floating_point() and (weight is None or not weight.requires_grad):
        if weight is not None and weight.dtype is not input.dtype:
            raise RuntimeError(
                f"cross_entropy: weight must have input's dtype, {input.dtype}; got {weight.dtype}"
            )
        return _of_indices(input, target, weight, ignore_index, reduction, float(label_smoothing))
    logp = clew.log_softmax(input, at)
    nll = nll_loss(logp, target, weight, None, ignore_index, None, reduction)
    if label_smoothing == 0.0:
        return nll
    classes = input.shape[at]
    if weight is not None:
        shape = [1] * input.dim()
        shape[at] = classes
        smooth = -(logp * weight.reshape(shape)).sum(at)
    else:
        smooth = -logp.sum(at)
    kept = target != ignore_index
    smooth = clew.where(kept, smooth, 0.0)
    if reduction == "mean":
        if weight is not None:
            safe = clew.where(kept, target, 0)
            smooth = smooth.sum() / clew.where(kept, weight[safe], 0.0).sum()
        else:
            smooth = smooth.sum() / kept.sum()
    else:
        smooth = reduced(smooth, reduction)
    return (1 - label_smoothing) * nll + (label_smoothing / classes) * smooth


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
            raise ValueError("var has negative entry/entries")
        var = clew.full_like(input, var)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
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


@asks_classes
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> clew.Tensor:
    """cross_entropy of linear(input, linear_weight, linear_bias).

    Args:
        input: (N, in_features) or (in_features).
        linear_weight: (C, in_features), or (C, d1, ..., in_features).
        target: class indices, (N) or (N, d1, ...), or probabilities of the logits' shape.
        linear_bias: (C), or (C, d1, ...).
        weight: a factor for each class.
        reduction: "none", "mean" or "sum".
        ignore_index: an index that counts nothing; None is -100.
        label_smoothing: how much of the target is spread evenly over the classes.
        options: a LinearCrossEntropyOptions; the logits are made as a whole nevertheless.

    Returns:
        the loss: a 0-d tensor, or the logits' shape without C with reduction "none".

    Example:
        >>> x, weight = clew.ones(1, 3), clew.zeros(4, 3)
        >>> loss = clew.nn.functional.linear_cross_entropy(x, weight, clew.tensor([2]))
        >>> round(loss.item(), 4)
        1.3863
    """
    if options is not None and not hasattr(options, "chunking_method"):
        raise TypeError(
            "linear_cross_entropy: options must be a LinearCrossEntropyOptions or None; "
            f"got {type(options).__name__}"
        )
    if ignore_index is None:
        ignore_index = -100
    elif target.is_floating_point():
        raise RuntimeError("linear_cross_entropy: ignore_index needs a target of class indices")
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"linear_cross_entropy: input must have 1 or 2 dims; got {tuple(input.shape)}"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            "linear_cross_entropy: further dims of linear_weight need a batch, (N, in_features); "
            f"got input {tuple(input.shape)} and linear_weight {tuple(linear_weight.shape)}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.flatten(0, -2), bias)
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
