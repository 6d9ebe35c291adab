"""What should have been hidden and was not: padding from attention, a sample from itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call


class MaskInverted(Reading):
    """Of tokens that are padding, as the padding_idx of an embedding or their place at the end of
    rows tells: attention sees the padding and nothing else."""

    mistake = "the attention mask is inverted"

    FEW = 8  # tokens of either kind that are needed
    MORE = 2  # tokens that a model puts before or after those of a sample

    def read(self, graph: Recorded) -> None:
        for token in graph.all("_embedding"):
            node = graph.node(token)
            saved = [t for t in node.saved_tensors if t is not None] if node is not None else []
            ids = next((values(t) for t in saved if t.dtype.name == "int64" and t.dim() == 2), None)
            if ids is not None and ids.shape[1] > 1:
                index = graph.attributes(token)["padding_idx"]
                padding = ids == index if index >= 0 else self._at_the_end(ids)
                if self._judge(graph, padding):
                    return

    @staticmethod
    def _at_the_end(ids: Any) -> Any:
        """Where rows end in one number that is found nowhere else, in rows of several lengths."""
        last = ids[:, -1]
        padding = ids == max(set(last.tolist()), key=last.tolist().count)
        ended = np.logical_and.accumulate(padding[:, ::-1], axis=1)[:, ::-1]
        alike = np.ptp(padding.sum(1)) == 0
        return np.zeros_like(padding) if alike or not np.array_equal(padding, ended) else padding

    def _judge(self, graph: Recorded, padding: Any) -> bool:
        # Where all would be hidden, attention may be given something else instead.
        shape, mixed = padding.shape, padding.any(1) & ~padding.all(1)
        padding = padding[mixed]
        if not mixed.any() or min(padding.sum(), (~padding).sum()) < self.FEW:
            return False
        for i in graph.all("softmax", "_attention"):
            if any(np.array_equal(h[mixed], ~padding) for h in self._hidden(graph, i, shape)):
                self.find(
                    graph.place(i),
                    f"attention sees all {padding.sum()} tokens that are padding, and none of the "
                    f"{(~padding).sum()} others: {self._means(graph, i)}",
                    "turn the mask around: ids == padding instead of ids != padding for "
                    "key_padding_mask, the other way round for scaled_dot_product_attention",
                )
                return True
        return False

    @staticmethod
    def _means(graph: Recorded, i: int) -> str:
        """What a mask's True stands for where this attention was called."""
        if graph.ops[i] == "_attention" and "MultiheadAttention" not in graph.kinds:
            return "in a mask of scaled_dot_product_attention True means look at it"
        return "in a mask of keys that are to be left out True means leave it out"

    @classmethod
    def _hidden(cls, graph: Recorded, i: int, shape: tuple[int, ...]) -> list[Any]:
        """Which tokens no place looks at, in no head, as the first or the last of all that there
        are; nothing where it is no attention to them."""
        node = graph.node(i)
        saved = list(node.saved_tensors) if node is not None else []
        if graph.ops[i] == "softmax":
            weights: Any = values(saved[0]) if saved and saved[0] is not None else np.zeros(0)
            none: Any = (weights == 0) | np.isnan(weights)  # nan where nothing is left to look at
        else:
            # Saved are queries, keys, values, the mask if there is one, and two results.
            mask: Any = values(saved[3]) if len(saved) == 6 else np.zeros(0)
            none = ~mask if mask.dtype.kind == "b" else mask < -1e4
        batch, length = shape
        more = none.shape[-1] - length if none.ndim >= 3 else -1
        if not 0 <= more <= cls.MORE or none.shape[0] % batch:
            return []
        found = none.reshape(batch, -1, length + more).all(1)
        return [found] if more == 0 else [found[:, :length], found[:, more:]]


class SelfAmongOthers(Rule):
    """Similarities of samples with each other, of which each is to tell its partner."""

    mistake = "each sample is compared with itself in a contrastive loss"
    operations = ("_cross_entropy",)

    FEW = 8  # samples

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if not isinstance(y, Tensor) or x.grad_fn is None or x.dim() != 2 or y.dim() != 1:
            return
        n = x.shape[0]
        if n < self.FEW or x.shape[1] != n or y.is_floating_point() or y.shape[0] != n:
            return
        labels = values(y)
        if (labels == np.arange(n)).any() or labels.min() < 0:
            return
        v = values(x).astype(np.float64)
        if not np.isfinite(v).all():
            return
        alike = float(np.abs(v).max()) * 1e-3
        own = np.diagonal(v)
        # With itself each is as similar as can be, as cosines are, and all are so alike.
        if np.abs(v - v.T).max() > alike or np.ptp(own) > alike or (own[:, None] < v - alike).any():
            return
        if np.ptp(v) < 100 * alike:
            return  # all outputs are the same: that is another trouble
        self.find(
            call.place,
            f"the {n} x {n} similarities are those of {n} samples with each other; on the diagonal "
            f"each has {own.mean():.4g} with itself, more than with any other, and no label asks "
            "for it: a choice that is always wrong and always looks best",
            'leave it out: similarities.fill_diagonal_(float("-inf")) before cross_entropy',
        )
