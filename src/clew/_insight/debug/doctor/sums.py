"""Terms of a loss of which one is a mean over all elements and another a sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import values

_DISTANCES = ("_mse_loss", "_smooth_l1_loss", "_huber_loss")
_MEANS = (
    "_binary_cross_entropy",
    "_binary_cross_entropy_with_logits",
    "_distance",
    "square",
    "pow",
)


class MeanBesideSum(Reading):
    mistake = "a mean over all elements is added to a sum over the batch"

    FACTOR = 0.1  # of the sum: with a smaller one it is weighed on purpose
    SAMPLES = 4

    def read(self, graph: Recorded) -> None:
        if len(graph.roots) != 1 or graph.roots[0].numel() != 1 or not graph.ops:
            return
        terms = self._terms(graph)
        means = [i for i, _ in terms if self._is_mean(graph, i)]
        for i, factor in terms:
            if not means or abs(factor) < self.FACTOR or graph.ops[i] != "sum":
                continue
            edge = graph.maker(i)
            shape = graph.shape(*edge) if edge is not None else ()
            whole = graph.attributes(i).get("dim") in (None, (), tuple(range(len(shape))))
            if not whole or len(shape) < 2 or shape[0] < self.SAMPLES:
                continue
            if not self._is_divergence(graph, i):
                continue
            mean = means[0]
            near = graph.place(mean)
            self.find(
                graph.place(i),
                f"the divergence is added up over {shape[0]} samples and {shape[-1]} dimensions, "
                "and the other term is a mean over all elements"
                + (f", at {near.short}" if near else "")
                + f": against it this one weighs {shape[0]} times the batch, and grows with it",
                "reduce both alike: reduction='sum' for the other, or both divided by the number "
                "of samples",
            )

    @staticmethod
    def _terms(graph: Recorded) -> list[tuple[int, float]]:
        """What the loss adds up, each with the number that it is multiplied with."""
        pending = [(len(graph.ops) - 1, 1.0)]
        found: list[tuple[int, float]] = []
        while pending and len(found) < 16:
            i, factor = pending.pop()
            made = [e[0] for e in graph.inputs[i] if e is not None]
            if graph.ops[i] in ("add", "sub") and graph.shape(i) == ():
                pending += [(j, factor) for j in made]
            elif graph.ops[i] == "neg":
                pending += [(made[0], -factor)]
            elif graph.ops[i] == "mul" and len(made) == 1 and graph.shape(i) == ():
                node = graph.node(i)
                saved = [t for t in node.saved_tensors if t is not None] if node else []
                if len(saved) == 1 and saved[0].numel() == 1:
                    pending.append((made[0], factor * float(np.ravel(values(saved[0]))[0])))
            else:
                found.append((i, factor))
        return found

    @staticmethod
    def _is_mean(graph: Recorded, i: int) -> bool:
        if graph.ops[i] in _DISTANCES:
            return bool(graph.attributes(i).get("mean")) and graph.shape(i) == ()
        if graph.ops[i] != "mean" or graph.attributes(i).get("dim") not in (None, ()):
            return False
        edge = graph.maker(i)
        return (
            edge is not None
            and graph.ops[edge[0]] in _MEANS
            and len(graph.shape(*edge)) >= 2
            and graph.shape(*edge)[-1] > 1
        )

    @staticmethod
    def _is_divergence(graph: Recorded, i: int, depth: int = 4) -> bool:
        """Whether an exponential and a square are among what is added up."""
        ops: set[str] = set()
        pending: list[tuple[Any, int]] = [(i, 0)]
        while pending:
            at, steps = pending.pop()
            for edge in graph.inputs[at]:
                if edge is not None and steps < depth:
                    op = graph.ops[edge[0]]
                    ops.add(op)
                    if op in ("add", "sub", "neg", "mul"):
                        pending.append((edge[0], steps + 1))
        return "exp" in ops and bool(ops & {"pow", "square", "mul"})
