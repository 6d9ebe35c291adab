"""Loss modules; each calls the function of nn.functional of the same meaning."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._loss_base import _Loss, _WeightedLoss
from .linear_cross_entropy import LinearCrossEntropyLoss, LinearCrossEntropyOptions

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class L1Loss(_Loss):
    """Absolute difference: |input - target|.

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input, target: any shape, both the same.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.L1Loss()(clew.tensor([1., 3.]), clew.tensor([2., 0.])).item()
        2.0
    """

    __constants__ = ["reduction"]

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared difference: (input - target)^2.

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input, target: any shape, both the same.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.MSELoss()(clew.tensor([1., 3.]), clew.tensor([1., 1.])).item()
        2.0
    """

    __constants__ = ["reduction"]

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of the right class, from log-probabilities.

    loss_n = -weight[t_n] input[n, t_n] for target t; "mean" divides the sum by the sum of the
    weights used.

    Args:
        weight: a factor for each class, (C).
        size_average: old: False is reduction="sum"; warns.
        ignore_index: a target that counts nothing.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: (N, C), (C) or (N, C, d1, ...), log-probabilities.
        target: (N), () or (N, d1, ...), class indices.
        returns: (); with reduction="none" target's shape.

    Example:
        >>> logp = clew.tensor([[-1., -2.], [-3., -4.]])
        >>> clew.nn.NLLLoss()(logp, clew.tensor([0, 1])).item()
        2.5
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """Old name of NLLLoss, once for images.

    loss_n = -weight[t_n] input[n, t_n] for target t; "mean" divides the sum by the sum of the
    weights used.

    Args:
        weight: a factor for each class, (C).
        size_average: old: False is reduction="sum"; warns.
        ignore_index: a target that counts nothing.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: (N, C), (C) or (N, C, d1, ...), log-probabilities.
        target: (N), () or (N, d1, ...), class indices.
        returns: (); with reduction="none" target's shape.

    Example:
        >>> logp = clew.full((1, 2, 2, 2), -3.)
        >>> clew.nn.NLLLoss2d()(logp, clew.tensor([[[0, 1], [1, 0]]])).item()
        3.0
    """


class CrossEntropyLoss(_WeightedLoss):
    """Negative log-likelihood of the target under the softmax of the input.

    loss_n = -weight[t_n] log softmax(input_n)[t_n]; "mean" divides the sum by the sum of the
    weights used. With probabilities p as target it is -sum over c of weight[c] p[c] log
    softmax(input)[c]. Label smoothing: Szegedy et al. 2016, arXiv:1512.00567, section 7.

    Args:
        weight: a factor for each class, (C).
        size_average: old: False is reduction="sum"; warns.
        ignore_index: a target that counts nothing.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.
        label_smoothing: how much of the target is spread evenly over the classes, in [0, 1].

    Shapes:
        input: (N, C), (C) or (N, C, d1, ...), scores (logits).
        target: (N), () or (N, d1, ...), class indices; or input's shape, probabilities.
        returns: (); with reduction="none" input's shape without C.

    Example:
        >>> loss = clew.nn.CrossEntropyLoss()
        >>> round(loss(clew.zeros(3, 4), clew.tensor([0, 1, 2])).item(), 4)
        1.3863
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities with targets in [0, 1].

    -weight (t log(x) + (1 - t) log(1 - x)) for input x and target t; each logarithm is at least
    -100.

    Args:
        weight: a factor for each element, which broadcasts to input's shape.
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input, target: any shape, both the same.
        returns: (); with reduction="none" input's shape.

    Raises:
        RuntimeError: for an input out of [0, 1].

    Example:
        >>> clew.nn.BCELoss()(clew.tensor([0.5, 1.]), clew.tensor([1., 1.]))
        tensor(0.3466)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Cross entropy of sigmoid(input) with targets in [0, 1].

    -weight (pos_weight t log(s) + (1 - t) log(1 - s)) for s = sigmoid(input) and target t, without
    overflow.

    Args:
        weight: a factor for each element, which broadcasts to input's shape.
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.
        pos_weight: a factor of the positive part, for each class; broadcasts to target's shape.

    Shapes:
        input, target: any shape, both the same; inputs are scores (logits).
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.BCEWithLogitsLoss()(clew.tensor([0., 50.]), clew.tensor([1., 1.]))
        tensor(0.3466)
    """

    weight: Any
    pos_weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of the target's distribution from the input's.

    target (log(target) - input), elementwise; with log_target exp(target) (target - input). The
    divergence itself is "batchmean", the sum divided by N.

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" (over all elements; warns), "batchmean" or "sum".
        log_target: targets are logarithms.

    Shapes:
        input: (N, ...), log-probabilities.
        target: input's shape, probabilities or their logarithms.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> loss = clew.nn.KLDivLoss(reduction="batchmean")
        >>> loss(clew.tensor([[0.5, 0.5]]).log(), clew.tensor([[1., 0.]]))
        tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under a Poisson distribution.

    exp(input) - target input, or with log_input=False input - target log(input + eps); constant
    terms are left out unless full.

    Args:
        log_input: the input is the logarithm of the expected count.
        full: add Stirling's approximation of log(target!) where target > 1.
        size_average: old: False is reduction="sum"; warns.
        eps: keeps the logarithm finite, with log_input=False.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        log_input, target: any shape, both the same; targets are counts.
        returns: (); with reduction="none" log_input's shape.

    Example:
        >>> clew.nn.PoissonNLLLoss()(clew.tensor([0., 0.]), clew.tensor([1., 3.])).item()
        1.0
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood under normal distributions with given variances.

    (log(v) + (input - target)^2 / v) / 2 with v = max(var, eps).

    Args:
        full: add the constant term, log(2 pi) / 2.
        eps: least variance.
        reduction: "none", "mean" or "sum" of the elements' losses.

    Shapes:
        input: any shape, the means.
        target: input's shape, the samples.
        var: input's shape, or with the last dim 1 or left out, or a number; not negative.
        returns: (); with reduction="none" input's shape.

    Raises:
        ValueError: for a negative var, or one whose shape does not fit.

    Example:
        >>> loss = clew.nn.GaussianNLLLoss()
        >>> loss(clew.tensor([1., 2.]), clew.tensor([1., 4.]), clew.ones(2)).item()
        1.0
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


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

    __constants__ = ["margin", "reduction"]

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

    __constants__ = ["reduction"]

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared difference near zero, absolute difference beyond beta.

    For d = |input - target|: d^2 / (2 beta) where d < beta, else d - beta / 2. Girshick 2015,
    arXiv:1504.08083, equation 3.

    Args:
        size_average: old: False is reduction="sum"; warns.
        reduce: old: False is reduction="none"; warns.
        reduction: "none", "mean" or "sum" of the elements' losses.
        beta: where the square ends; 0 gives L1Loss.

    Shapes:
        input, target: any shape, both the same.
        returns: (); with reduction="none" input's shape.

    Example:
        >>> clew.nn.SmoothL1Loss()(clew.tensor([0.5, 3.]), clew.zeros(2)).item()
        1.3125
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared difference near zero, linear beyond delta.

    For d = |input - target|: d^2 / 2 where d <= delta, else delta (d - delta / 2). Huber 1964.

    Args:
        reduction: "none", "mean" or "sum" of the elements' losses.
        delta: where the square ends; positive.

    Shapes:
        input, target: any shape, both the same.
        returns: (); with reduction="none" input's shape.

    Raises:
        TypeError: for a delta that is no number.

    Example:
        >>> clew.nn.HuberLoss(delta=2.)(clew.tensor([1., 3.]), clew.zeros(2)).item()
        2.25
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, int | float):
            raise TypeError(f"HuberLoss: delta must be a float or int; got {type(delta)}")
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


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

    __constants__ = ["reduction"]

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

    __constants__ = ["reduction"]

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

    __constants__ = ["margin", "reduction"]

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

    __constants__ = ["margin", "reduction"]

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

    __constants__ = ["p", "margin", "reduction"]

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

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

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

    __constants__ = ["margin", "swap", "reduction"]

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


class CTCLoss(_Loss):
    """Connectionist temporal classification: -log of p(target), which sums over all alignments.

    An alignment gives every step a class; repeats are merged and blanks then taken out. Graves et
    al. 2006.

    Args:
        blank: the blank's class; targets do not contain it.
        reduction: "none", "mean" (each divided by its target's length first) or "sum".
        zero_infinity: count targets that no alignment fits as zero instead of infinity.

    Shapes:
        log_probs: (T, N, C) or (T, C), log-probabilities.
        targets: (N, S), (S), or (sum of target_lengths), all targets one after the other.
        input_lengths: (N) or (), at most T.
        target_lengths: (N) or (), at most S.
        returns: (); with reduction="none" (N) or ().

    Raises:
        RuntimeError: for lengths or targets that do not fit log_probs.

    Example:
        >>> log_probs = clew.zeros(4, 1, 3).log_softmax(-1)
        >>> clew.nn.CTCLoss()(log_probs, clew.tensor([[1, 2]]), [4], [2])
        tensor(0.8432)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
