"""Losses of class scores: nll_loss, cross_entropy, and cross_entropy of a linear layer."""

from __future__ import annotations

from typing import Any

import clew
from clew._base.arguments import need_number, need_tensors
from clew._base.autocast import autocasting, float32
from clew._base.overriding import asks_classes

from ._core import linear, private
from ._loss import OLD_MEAN, bad_reduction, legacy_reduction, reduced

_nll_loss = private("_nll_loss")
_cross_entropy = private("_cross_entropy")


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
        as_values = name == "cross_entropy" and target.shape == input.shape
        one_dim = input.dim() == 1 and target.dim() == 1 and not as_values
        raise (ValueError if one_dim or target.dim() == 0 else RuntimeError)(
            f"{name}: target must have shape {want}, input's without the class dim; "
            f"got {tuple(target.shape)}"
        )
    classes = input.shape[at]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"{name}: weight must be of shape ({classes},), one for each class; "
            f"got {tuple(weight.shape)}"
        )


def _is_one_in_a_vector(input: Any, target: Any) -> bool:
    """Whether the class of a single sample is given as a vector, which PyTorch takes, too."""
    both = isinstance(input, clew.Tensor) and isinstance(target, clew.Tensor)
    return both and input.dim() == 1 and tuple(target.shape) == (1,)


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
        if _is_one_in_a_vector(input, target):
            target = target.reshape(())
            return _nll_loss(input, target, weight, ignore_index, reduction)[0]
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
        if _is_one_in_a_vector(input, target):
            target = target.reshape(())
            return _of_indices(input, target, weight, ignore_index, reduction, smoothing)
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
    plain = plain and reduction != OLD_MEAN
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
    label_smoothing = need_number("cross_entropy", "label_smoothing", label_smoothing)
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
        if label_smoothing > 0.0 and classes:
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
    return (1 - label_smoothing) * nll + (label_smoothing / max(classes, 1)) * smooth


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
