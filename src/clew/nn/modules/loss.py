"""Loss modules; each calls the function of nn.functional of the same meaning."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._loss_base import _Loss, _WeightedLoss
from ._margin import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
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

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


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

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, int | float):
            raise TypeError(f"HuberLoss: delta must be a float or int; got {type(delta)}")
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


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
