"""Losses of margins and pairs, and the distances they use."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._base.arguments import need_bools, need_tensors
from clew._base.autocast import in_float32
from clew._base.overriding import asks_classes

from ._core import logsigmoid, softplus, vector_norm
from ._loss import bad_reduction, check_floating, legacy_reduction
from ._loss import reduced as _reduced


def _check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise bad_reduction(reduction)


def _check_classes(name: str, target: Any, least: int, classes: int) -> None:
    # Under vmap gather refuses what is out of bounds.
    if target.numel() and not target.is_meta and not _C._vmap_depth():
        low, high = (x.item() for x in target.aminmax())
        if low < least or high >= classes:
            bad = low if low < least else high
            raise RuntimeError(
                f"{name}: target is out of range: must be from {least} to {classes - 1}; got {bad}"
            )


@asks_classes
@in_float32
def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """The input where the target is 1, max(0, margin - input) where it is -1.

    Args:
        input: distances, of any shape; the result has its dtype.
        target: 1 or -1, of input's shape.
        margin: wanted distance of unlike pairs.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> distance, like = clew.tensor([0.5, 0.25]), clew.tensor([1, -1])
        >>> clew.nn.functional.hinge_embedding_loss(distance, like, reduction="none").tolist()
        [0.5, 0.75]
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    need_tensors("hinge_embedding_loss", input=input, target=target)
    whole = not input.is_complex() and not input.is_floating_point()
    # As in PyTorch, the margin takes the input's dtype.
    far = clew.where(target != 1, ((int(margin) if whole else margin) - input).clamp(min=0), 0)
    near = clew.where(target != -1, input, 0)
    return _reduced(far + near, reduction)


@asks_classes
@in_float32
def soft_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Logistic loss of two classes: log(1 + exp(-target * input)).

    Args:
        input: scores, of any shape, floating point.
        target: 1 or -1, of input's shape.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or input's shape with reduction "none".

    Example:
        >>> loss = clew.nn.functional.soft_margin_loss(clew.zeros(2), clew.tensor([1, -1]))
        >>> round(loss.item(), 4)
        0.6931
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _reduced(softplus(-(target.to(input.dtype) * input)), reduction)


@asks_classes
@in_float32
def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Loss of a wrong order: max(0, -target * (input1 - input2) + margin).

    Args:
        input1: scores, (N) or ().
        input2: other scores, of the same shape.
        target: 1 if input1 should be greater, -1 if input2; as many dims.
        margin: wanted distance.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or input1's shape with reduction "none".

    Example:
        >>> a, b = clew.tensor([3., 1.]), clew.tensor([1., 2.])
        >>> clew.nn.functional.margin_ranking_loss(a, b, clew.ones(2), reduction="none").tolist()
        [0.0, 1.0]
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    need_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + float(margin)).clamp(min=0), reduction)


@asks_classes
@in_float32
def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """1 - cosine for pairs marked 1, max(0, cosine - margin) for pairs marked -1.

    Args:
        input1: (N, E) or (E), floating point.
        input2: the same shape.
        target: (N) or (), with 1 or -1.
        margin: the cosine that unlike pairs may have.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or target's shape with reduction "none".

    Example:
        >>> a, b = clew.tensor([[1., 0.], [1., 0.]]), clew.tensor([[0., 1.], [1., 0.]])
        >>> like = clew.tensor([1, -1])
        >>> clew.nn.functional.cosine_embedding_loss(a, b, like, reduction="none").tolist()
        [1.0, 1.0]
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    need_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes "
            f"{input1.size()} and {input2.size()}."
        )
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{input1.size()} and {input2.size()}."
        )
    tiny = 1e-12
    last = target.dim()
    product = (input1 * input2).sum(last)
    squares = ((input1 * input1).sum(last) + tiny) * ((input2 * input2).sum(last) + tiny)
    cosine = product / squares.sqrt()
    near = clew.where(target == 1, 1 - cosine, 0.0)
    far = clew.where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return _reduced(near + far, reduction)


@asks_classes
@in_float32
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """max(0, distance to the positive - distance to the negative + margin).

    With pairwise_distance of order p; see Balntas and others, Learning local feature descriptors
    with triplets and shallow convolutional neural networks, 2016, for swap.

    Args:
        anchor: (N, E) or (E), floating point.
        positive: something alike, of anchor's shape.
        negative: something unlike, of anchor's shape.
        margin: wanted difference of the distances, above 0.
        p: the norm's order.
        eps: added to differences.
        swap: use the negative's distance to the positive if that is smaller.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or (N) or () with reduction "none".

    Example:
        >>> a, p, n = clew.tensor([[0., 0.]]), clew.tensor([[0., 3.]]), clew.tensor([[2., 0.]])
        >>> round(clew.nn.functional.triplet_margin_loss(a, p, n).item(), 4)
        2.0
    """
    need_bools("triplet_margin_loss", swap=swap)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    need_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "triplet_margin_loss: the three inputs must have as many dims; got "
            f"{anchor.dim()}D, {positive.dim()}D and {negative.dim()}D"
        )

    def distance(a: Any, b: Any) -> Any:
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    anchor: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool, how: str
) -> Any:
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = clew.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp(min=0), how)


@asks_classes
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> clew.Tensor:
    """triplet_margin_loss with a distance of one's own.

    Args:
        anchor: (N, E) or another shape that the distance takes.
        positive: something alike, of anchor's shape.
        negative: something unlike, of anchor's shape.
        distance_function: takes two tensors and gives the distances; pairwise_distance by default.
        margin: wanted difference of the distances, above 0.
        swap: use the negative's distance to the positive if that is smaller.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or the distances' shape with reduction "none".

    Example:
        >>> def far(a, b): return (a - b).abs().sum(-1)
        >>> a, p, n = clew.tensor([[0., 0.]]), clew.tensor([[1., 3.]]), clew.tensor([[2., 0.]])
        >>> loss = clew.nn.functional.triplet_margin_with_distance_loss
        >>> loss(a, p, n, distance_function=far).item()
        3.0
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if distance_function is None:
        distance_function = pairwise_distance
    return _triplet(anchor, positive, negative, distance_function, margin, swap, reduction)


@asks_classes
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> clew.Tensor:
    """The p-norm of x1 - x2 + eps over the last dim.

    Args:
        x1: (N, E) or (E), floating point.
        x2: the same, or what broadcasts with it.
        p: the norm's order.
        eps: added to the differences.
        keepdim: keep the last dim, of size 1.

    Returns:
        the distances, of the common shape without the last dim, unless keepdim.

    Example:
        >>> a, b = clew.tensor([[0., 0.]]), clew.tensor([[3., 4.]])
        >>> clew.nn.functional.pairwise_distance(a, b, eps=0.0).tolist()
        [5.0]
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@asks_classes
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> clew.Tensor:
    """The cosine of the angle between vectors: x1 . x2 / (max(|x1|, eps) max(|x2|, eps)).

    Args:
        x1: (..., d, ...), vectors of d elements along dim, floating point.
        x2: the same, or what broadcasts with it.
        dim: the dim of the vectors.
        eps: least length that is divided by.

    Returns:
        the cosines, of the common shape without dim.

    Example:
        >>> x = clew.tensor([[1., 0.]])
        >>> clew.nn.functional.cosine_similarity(x, x).tolist()
        [1.0]
    """
    if eps < 0:
        raise RuntimeError(f"cosine_similarity: eps must not be negative; got {eps}")
    if x1.dtype is not x2.dtype:
        common = clew.promote_types(x1.dtype, x2.dtype)
        x1, x2 = x1.to(common), x2.to(common)
    if x1.shape != x2.shape:
        x1, x2 = clew.broadcast_tensors(x1, x2)
    # Each vector is divided by its own length, so that the product of two small lengths cannot
    # vanish.
    n1 = vector_norm(x1, 2, dim, True).clamp(min=eps)
    n2 = vector_norm(x2, 2, dim, True).clamp(min=eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


@asks_classes
@in_float32
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Hinge loss of several classes: sum over the wrong of max(0, margin - right + other)^p / C.

    Args:
        input: scores, (N, C) or (C), floating point.
        target: int64 class indices, (N) or ().
        p: the power, 1 or 2.
        margin: wanted distance.
        weight: (C), a factor for each class.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or target's shape with reduction "none".

    Example:
        >>> scores = clew.tensor([[0.5, 2., 1.75, 0.]])
        >>> clew.nn.functional.multi_margin_loss(scores, clew.tensor([1])).item()
        0.1875
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    need_tensors("multi_margin_loss", input=input, target=target)
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if input.dim() == 0:
        input = input.unsqueeze(0)
    single = input.dim() == 1
    alone = single and target.dim() == 0  # the result has the target's dims
    if target.dim() == 0:
        target = target.unsqueeze(0)
    rows = input.unsqueeze(0) if single else input
    if rows.dim() != 2 or target.dim() != 1 or target.shape[0] != rows.shape[0]:
        raise RuntimeError(
            f"multi_margin_loss: target must have one index for each row; got input "
            f"{tuple(input.shape)} and target {tuple(target.shape)}"
        )
    classes = rows.shape[1]
    if classes == 0:
        raise RuntimeError(
            f"multi_margin_loss: input must have a class at least; got {tuple(input.shape)}"
        )
    check_floating("multi_margin_loss", input=input)
    if target.dtype is not clew.int64:
        raise RuntimeError(f"multi_margin_loss: target must be int64; got {target.dtype}")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(
            f"multi_margin_loss: weight must have one factor for each of {classes} classes; got "
            f"{weight.numel()}"
        )
    _check_classes("multi_margin_loss", target, 0, classes)
    place = target.unsqueeze(1)
    right = rows.gather(1, place)
    gap = (margin - right + rows).clamp(min=0)
    if p == 2:
        gap = gap * gap
    if weight is not None:
        gap = gap * weight[target].unsqueeze(1)
    others = clew.ones_like(rows, requires_grad=False).scatter(1, place, 0.0)
    loss = (gap * others).sum(1) / classes
    return _reduced(loss.squeeze(0) if alone else loss, reduction)


@asks_classes
@in_float32
def multilabel_margin_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Hinge loss of several labels: every label against every class that is none.

    The sum over labels j and other classes i of max(0, 1 - (input[j] - input[i])), over C.

    Args:
        input: scores, (N, C) or (C), floating point.
        target: int64 label indices in the same shape; the first -1 ends a row.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or (N) or () with reduction "none".

    Example:
        >>> scores, labels = clew.tensor([[0.5, 1., 0.25, 0.]]), clew.tensor([[1, -1, 0, 0]])
        >>> clew.nn.functional.multilabel_margin_loss(scores, labels).item()
        0.1875
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_reduction(reduction)
    if input.shape != target.shape:
        raise RuntimeError(
            f"multilabel_margin_loss: input and target must have the same shape; got "
            f"{tuple(input.shape)} and {tuple(target.shape)}"
        )
    if input.dim() > 2 or (input.dim() > 0 and input.shape[-1] == 0):
        raise RuntimeError(
            "multilabel_margin_loss: input must be a row of classes, or rows of them, and have a "
            f"class at least; got {tuple(input.shape)}"
        )
    check_floating("multilabel_margin_loss", input=input)
    if target.dtype is not clew.int64:
        raise RuntimeError(f"multilabel_margin_loss: target must be int64; got {target.dtype}")
    single = input.dim() < 2
    x = input.reshape(1, -1) if single else input
    y = target.reshape(1, -1) if single else target
    # Numbers behind the first -1 are not used, but must be classes too.
    _check_classes("multilabel_margin_loss", y, -1, x.shape[1])
    live = (y < 0).to(clew.int64).cumsum(1) == 0
    safe = clew.where(live, y, 0)
    is_label = clew.zeros_like(y).scatter_add(1, safe, live.to(y.dtype)) > 0
    if y.numel() and not (y.is_meta or _C._vmap_depth() or _C._trace_running()):
        # Most rows have few labels: nothing is computed of columns that no row uses.
        most = max(int(live.sum(1).max()), 1)
        live, safe = live[:, :most], safe[:, :most]
    right = x.gather(1, safe)
    gap = (1 - right.unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)
    counted = live.unsqueeze(2) & ~is_label.unsqueeze(1)
    loss = clew.where(counted, gap, 0.0).sum((1, 2)) / x.shape[1]
    return _reduced(loss.squeeze(0) if single else loss, reduction)


@asks_classes
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> clew.Tensor:
    """Binary cross entropy with logits, averaged over classes.

    -(target * log(sigmoid(input)) + (1 - target) * log(sigmoid(-input))), mean over C.

    Args:
        input: scores, (N, C) or (C), floating point.
        target: 0 or 1, of input's shape.
        weight: (C), a factor for each class.
        size_average: old; see reduction.
        reduce: old; see reduction.
        reduction: "none", "mean" or "sum".

    Returns:
        the loss: a 0-d tensor, or (N) or () with reduction "none".

    Example:
        >>> loss = clew.nn.functional.multilabel_soft_margin_loss(clew.zeros(1, 2), clew.eye(2)[:1])
        >>> round(loss.item(), 4)
        0.6931
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    # A weight with more dimensions than the scores does not move the dim of the classes.
    dim = input.dim() - 1
    return _reduced(loss.sum(dim) / input.shape[dim] if input.dim() else loss, reduction)
