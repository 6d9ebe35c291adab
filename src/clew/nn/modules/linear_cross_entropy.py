"""A linear layer and the cross entropy of its output, as one loss."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._loss_base import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """How PyTorch would compute linear_cross_entropy in chunks; the result does not depend on it.

    Args:
        allow_retain_graph: accepted; backward can always be repeated with retain_graph.
        batch_chunk_size: rows of a chunk; None leaves it open.
        chunking_method: how the rows of a chunk are chosen.
        acc_policy: how gradients would be accumulated over the chunks.
        acc_dtype: in which dtype they would be.

    Example:
        >>> clew.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str = "auto",
        acc_policy: str = "auto",
        acc_dtype: Any = None,
    ) -> None:
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"LinearCrossEntropyOptions({values})"


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its output.

    CrossEntropyLoss of x A^T + b; A and b are the parameters of its child, linear.

    Args:
        in_features: size of each input row.
        num_classes: how many classes.
        out_features: further dims of the logits, after the classes.
        bias: whether b is learned.
        device: where the parameters live.
        dtype: what they hold.
        reduction: "none", "mean" or "sum" of the elements' losses.
        weight: a factor for each class, (num_classes).
        ignore_index: an index that counts nothing; None is -100.
        label_smoothing: how much of the target is spread evenly over the classes, in [0, 1].
        options: a LinearCrossEntropyOptions; the logits are made as a whole nevertheless.

    Shapes:
        input: (N, in_features), or (in_features) without out_features.
        target: (N, *out_features), class indices; or (N, num_classes, *out_features),
            probabilities; without N for such an input.
        returns: (); with reduction="none" (N, *out_features) or ().

    Raises:
        RuntimeError: for a weight of another shape, or a label_smoothing out of [0, 1].

    Example:
        >>> loss = clew.nn.LinearCrossEntropyLoss(8, 5)
        >>> loss(clew.ones(3, 8), clew.tensor([0, 1, 4])).shape, loss.linear.weight.shape
        (clew.Size([]), clew.Size([5, 8]))
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        from .linear import Linear

        super().__init__(weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"LinearCrossEntropyLoss: weight must be of shape ({num_classes},), one for each "
                f"class; got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"LinearCrossEntropyLoss: label_smoothing must be in [0, 1]; got {label_smoothing}"
            )
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        rows = num_classes
        for n in self.out_features:
            rows *= n
        self.linear = Linear(in_features, rows, bias, device, dtype)

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
