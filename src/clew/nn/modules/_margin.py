"""Losses of margins and pairs, as clew.nn.modules.loss offers them."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._loss_base import _Loss, _WeightedLoss


class HingeEmbeddingLoss(_Loss):
    """The input where the target is 1, max(0, margin - input) where it is -1.

    Args:
        margin: distance that unlike pairs should have.
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input, target: any shape, both the same; targets are 1 (alike) or -1.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.HingeEmbeddingLoss(2.)(clew.tensor([3., 0.5]), clew.tensor([1., -1.])).item()
        2.25
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of several labels: every label against every class that is none.

    sum over labels j and other classes i of max(0, 1 - x[j] + x[i]), divided by C.

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: (N, C) or (C), scores.
        target: input's shape, int64 label indices; the first -1 ends a row.
        returns: (); with reduction="none" (N) or ().

    Example:
        >>> scores = clew.tensor([[1., 0.5, 0., 0.5]])
        >>> clew.nn.MultiLabelMarginLoss()(scores, clew.tensor([[0, 3, -1, 0]])).item()
        0.5
    """

    __module__ = "clew.nn.modules.loss"

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss of two classes: log(1 + exp(-target input)).

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input, target: any shape, both the same; targets are 1 or -1.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.SoftMarginLoss()(clew.tensor([0., 50.]), clew.tensor([1., 1.]))
        tensor(0.3466)
    """

    __module__ = "clew.nn.modules.loss"

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy with logits, averaged over classes.

    -mean over c of weight[c] (t_c log(s_c) + (1 - t_c) log(1 - s_c)) for s = sigmoid(input) and
    target t.

    Args:
        weight: a factor for each class, (C).
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: (N, C) or (C), scores.
        target: input's shape, 1 for each label, else 0.
        returns: (); with reduction="none" (N) or ().

    Example:
        >>> clew.nn.MultiLabelSoftMarginLoss()(clew.zeros(1, 3), clew.tensor([[1., 0., 1.]]))
        tensor(0.6931)
    """

    __module__ = "clew.nn.modules.loss"

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 - cosine for pairs marked 1, max(0, cosine - margin) for pairs marked -1.

    Args:
        margin: the cosine that unlike pairs may have.
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input1, input2: (N, E) or (E).
        target: (N) or (), 1 (alike) or -1.
        returns: (); with reduction="none" (N) or ().

    Example:
        >>> x, y = clew.tensor([[1., 0.], [1., 0.]]), clew.tensor([[0., 1.], [2., 0.]])
        >>> loss = clew.nn.CosineEmbeddingLoss(reduction="none")
        >>> loss(x, y, clew.tensor([1, -1])).tolist()
        [1.0, 1.0]
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """Says which of two inputs should be greater: max(0, -target (input1 - input2) + margin).

    Args:
        margin: by how much it should be.
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input1, input2: any shape, both the same, scores.
        target: their shape, 1 where input1 should be greater, else -1.
        returns: (); with reduction="none" input1's shape.

    Example:
        >>> loss = clew.nn.MarginRankingLoss(margin=1.)
        >>> loss(clew.tensor([3., 2.]), clew.tensor([1., 4.]), clew.tensor([1., 1.])).item()
        1.5
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of several classes: the right one against every other.

    sum over i != t of weight[t] max(0, margin - x[t] + x[i])^p, divided by C, for target t.

    Args:
        p: power of each term, 1 or 2.
        margin: by how much the right class should be ahead.
        weight: a factor for each class, (C).
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: (N, C) or (C), scores.
        target: (N) or (), class indices.
        returns: (); with reduction="none" (N) or ().

    Raises:
        ValueError: for another p, or a weight that is not 1D.

    Example:
        >>> clew.nn.MultiMarginLoss()(clew.tensor([[0., 1., 0.5, 0.5]]), clew.tensor([1])).item()
        0.25
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D "
                "instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d a distance.

    d(a, b) is the p-norm of a - b + eps.

    Args:
        margin: wanted difference of the distances; positive.
        p: the norm's order.
        eps: added to differences.
        swap: use the negative's distance to the positive if that is smaller (Balntas et al. 2016).
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        anchor, positive, negative: (N, E) or (E).
        returns: (); with reduction="none" (N) or ().

    Raises:
        ValueError: for a margin that is not positive.

    Example:
        >>> a, p, n = clew.tensor([[0., 0.]]), clew.tensor([[3., 4.]]), clew.tensor([[0., 1.]])
        >>> clew.nn.TripletMarginLoss()(a, p, n)
        tensor(5.0000)
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of one's own.

    max(0, d(anchor, positive) - d(anchor, negative) + margin), d the given distance.

    Args:
        distance_function: takes two tensors and returns a distance for each pair; PairwiseDistance
            by default.
        margin: wanted difference of the distances; positive.
        swap: use the negative's distance to the positive if that is smaller (Balntas et al. 2016).
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        anchor, positive, negative: (N, ...), as d takes them.
        returns: (); with reduction="none" what d returns.

    Raises:
        ValueError: for a margin that is not positive.

    Example:
        >>> away = lambda a, b: (a - b).abs()
        >>> loss = clew.nn.TripletMarginWithDistanceLoss(distance_function=away)
        >>> loss(clew.zeros(1), clew.tensor([3.]), clew.tensor([1.])).item()
        3.0
    """

    __module__ = "clew.nn.modules.loss"

    def __init__(
        self,
        *,
        distance_function: Any = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                f"{margin} instead"
            )
        if distance_function is None:
            from .reshaping import PairwiseDistance

            distance_function = PairwiseDistance()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
