"""AdaptiveLogSoftmaxWithLoss: a softmax whose rare classes sit in smaller clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import clew

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over many classes, sorted by frequency, at a part of the usual cost.

    Classes must be numbered by falling frequency. The first cutoffs[0] are told apart by the head,
    with one place more for each further cluster; a rare class has log p(cluster) + log p(class |
    cluster). Grave et al. 2017, arXiv:1609.04309.

    Args:
        in_features: features of each input row.
        n_classes: how many classes.
        cutoffs: the first class of each further cluster, rising, each in [1, n_classes - 1].
        div_value: cluster i projects to in_features // div_value^i features, i = 1, 2, ...
        head_bias: whether the head has a bias.
        device: where the parameters live.
        dtype: what they hold.

    Shapes:
        input_: (N, in_features) or (in_features).
        target_: (N) or (), class indices.
        returns: a pair: output, (N) or (), the target's log-probabilities, and loss, (), minus
            their mean. log_prob(input) is (N, n_classes), predict(input) is (N).

    Raises:
        ValueError: for cutoffs that are empty, do not rise or are out of range.
        RuntimeError: for a target out of range or of a shape that does not fit.

    Example:
        >>> model = clew.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
        >>> output, loss = model(clew.ones(3, 16), clew.tensor([0, 7, 19]))
        >>> output.shape, model.log_prob(clew.ones(3, 16)).shape
        (clew.Size([3]), clew.Size([3, 20]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, device, dtype),
                    Linear(inner, size, False, device, dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        single = target_.dim() == 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if single and input_.dim() != 1:
            raise RuntimeError("0D target tensor expects 1D input tensors")
        if target_.dim() == 1 and input_.dim() != 2:
            raise RuntimeError("1D target tensor expects 2D input tensors")
        rows = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if rows.shape[0] != target.shape[0]:
            raise RuntimeError(
                f"Input and target should have the same size in the batch dimension; got "
                f"{rows.shape[0]} and {target.shape[0]}"
            )
        if target.numel() and (target.min().item() < 0 or target.max().item() >= self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(rows), 1)
        in_head = clew.where(target < self.cutoffs[0], target, 0)
        output = clew.zeros(rows.shape[0], dtype=rows.dtype)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            found = ((target >= low) & (target < high)).nonzero().reshape(-1)
            if found.numel() == 0:
                continue
            logp = F.log_softmax(self.tail[i](rows.index_select(0, found)), 1)
            inner = (target[found] - low).unsqueeze(1)
            output = output.index_add(0, found, logp.gather(1, inner).squeeze(1))
            in_head = in_head.index_fill(0, found, self.shortlist_size + i)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        head = F.log_softmax(head_output, 1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            own = F.log_softmax(self.tail[i](input), 1)
            parts.append(own + head[:, self.shortlist_size + i].unsqueeze(1))
        return clew.cat(parts, 1)

    def log_prob(self, input: Any) -> Any:
        """Log-probabilities of all classes.

        Args:
            input: (N, in_features).

        Returns:
            (N, n_classes).
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most likely class of each row.

        Args:
            input: (N, in_features).

        Returns:
            (N) class indices.
        """
        return self.log_prob(input).argmax(1)
