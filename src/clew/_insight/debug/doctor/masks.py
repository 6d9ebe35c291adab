"""What should have been hidden and was not: padding from attention, a sample from itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call


class MaskInverted(Reading):
    """Of tokens whose embedding has a padding_idx: attention sees the padding and nothing else."""

    mistake = "the attention mask is inverted"

    FEW = 8  # tokens of either kind that are needed

    def read(self, graph: Recorded) -> None:
        tokens = [i for i in graph.all("_embedding") if graph.attributes(i)["padding_idx"] >= 0]
        if len(tokens) != 1:
            return
        node = graph.node(tokens[0])
        saved = [t for t in node.saved_tensors if t is not None] if node is not None else []
        ids = next((values(t) for t in saved if t.dtype.name == "int64" and t.dim() == 2), None)
        if ids is None:
            return
        padding = ids == graph.attributes(tokens[0])["padding_idx"]
        # Where all would be hidden, attention may be given something else instead.
        mixed = padding.any(1) & ~padding.all(1)
        padding = padding[mixed]
        if not mixed.any() or min(padding.sum(), (~padding).sum()) < self.FEW:
            return
        for i in graph.all("softmax", "_attention"):
            hidden = self._hidden(graph, i, ids.shape)
            if hidden is not None and np.array_equal(hidden[mixed], ~padding):
                self.find(
                    graph.place(i),
                    f"attention sees all {padding.sum()} tokens that are padding, and none of the "
                    f"{(~padding).sum()} others: {self._means(graph, i)}",
                    "turn the mask around: ids == padding instead of ids != padding for "
                    "key_padding_mask, the other way round for scaled_dot_product_attention",
                )
                return

    @staticmethod
    def _means(graph: Recorded, i: int) -> str:
        """What a mask's True stands for where this attention was called."""
        if graph.ops[i] == "_attention" and "MultiheadAttention" not in graph.kinds:
            return "in a mask of scaled_dot_product_attention True means look at it"
        return "in a mask of keys that are to be left out True means leave it out"

    @staticmethod
    def _hidden(graph: Recorded, i: int, shape: tuple[int, ...]) -> Any:
        """Which tokens no place looks at, in no head; None where it is no attention to them."""
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
        if none.ndim < 3 or none.shape[-1] != length or none.shape[0] % batch:
            return None
        return none.reshape(batch, -1, length).all(1)


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
