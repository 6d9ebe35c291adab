"""Dimensions that were taken for others: the batch for time, channels for pixels, rows for
columns. Read from the shapes in the recorded graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clew._base import provenance as _provenance
from clew._insight.debug.doctor.reading import Reading, Recorded
from clew._insight.debug.doctor.rule import values
from clew._insight.debug.holders import assignment
from clew._insight.debug.place import Place

# What leaves the first two dimensions as they are.
_POINTWISE = {"_cat", "_masked_dropout", "relu", "tanh", "gelu", "_native_norm", "linear", "add"}
_LAYERS = {"linear", "addmm", "matmul", "_conv"}
_HOPS = 6


class ViewForPermute(Reading):
    mistake = "view() where permute() was meant"

    def read(self, graph: Recorded) -> None:
        for i in graph.all("view", "reshape"):
            edge = graph.maker(i)
            if edge is None:
                continue
            before, after = graph.shape(*edge), graph.shape(i)
            place = graph.place(i)
            text = place.text if place else ""
            if len(before) > len(after) and ("view(" in text or "reshape(" in text):
                if self._are_states(graph, edge, before, after):
                    self.find(
                        place,
                        f"the last states, of shape {before}, become {after}: they lie by layer "
                        "and direction first, so that each row holds those of several samples",
                        "bring the samples to the front: h.transpose(0, 1).reshape(batch, -1), or "
                        "torch.cat((h[-2], h[-1]), dim=1)",
                    )
                elif self._are_scores(graph, edge, i):
                    self.find(
                        place,
                        f"scores of shape {before} become {after}: their {before[1]} classes lie "
                        "in dimension 1, so that each row holds one class of several places",
                        "leave them as they are, cross_entropy takes classes in dimension 1; or "
                        "bring the classes to the end: scores.movedim(1, -1).reshape(-1, classes)",
                    )
                continue
            if not is_rearranged(before, after):
                continue
            # Of rows that are counted anew another layout may be meant.
            if not ("view(" in text or "reshape(" in text) or (len(after) == 2 and "-1" in text):
                continue
            self.find(
                place,
                f"shape {before} becomes {after}, the same sizes in another order: the numbers "
                "stay where they lie in memory, so that each row mixes what belonged to several",
                "exchange dimensions with transpose() or permute(), for instance "
                f"x.permute{_order(before, after)}",
            )

    @staticmethod
    def _are_states(
        graph: Recorded, edge: tuple[int, int], before: tuple[int, ...], after: tuple[int, ...]
    ) -> bool:
        """Whether (layers, samples, size) of a recurrent layer becomes (samples, all sizes)."""
        if len(before) != 3 or min(before[:2]) < 2 or after != (before[1], before[0] * before[2]):
            return False
        at, output = edge
        if graph.ops[at] in ("_cat", "_stack", "cat", "stack"):  # of each layer and direction
            made = [graph.maker(at, a) for a in range(len(graph.inputs[at]))]
            if any(m is None for m in made):
                return False
        else:
            made = [(at, output)]
        return all(m is not None and graph.ops[m[0]] == "_recurrent" and m[1] > 0 for m in made)

    @staticmethod
    def _are_scores(graph: Recorded, edge: tuple[int, int], i: int) -> bool:
        """Whether (samples, classes, places) becomes (samples * places, classes) for a loss."""
        before, after = graph.shape(*edge), graph.shape(i)
        if len(before) < 3 or len(after) != 2 or after[1] != before[1] or min(before[:2]) < 2:
            return False
        if graph.ops[edge[0]] != "_conv" and before[-1] == before[1]:
            return False  # classes may be at the end
        if all(n == 1 for n in before[2:]):
            return False
        uses = graph.consumers(i)
        uses += [u for j, _ in uses if graph.ops[j] == "log_softmax" for u in graph.consumers(j)]
        return any(graph.ops[j] in ("_cross_entropy", "_nll_loss") and a == 0 for j, a in uses)


def is_rearranged(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether sizes above 1 stand in another order."""
    one, two = ([n for n in shape if n != 1] for shape in (before, after))
    return len(before) == len(after) and one != two and sorted(one) == sorted(two)


def _order(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    left = list(range(len(before)))
    found = []
    for size in after:
        dim = next(d for d in left if before[d] == size)
        left.remove(dim)
        found.append(dim)
    return tuple(found)


class SoftmaxOverOther(Reading):
    mistake = "softmax over the wrong dimension"

    def read(self, graph: Recorded) -> None:
        for i in graph.all("softmax"):
            shape = graph.shape(i)
            dim = graph.attributes(i)["dim"] % max(len(shape), 1)
            if len(shape) < 2 or dim == len(shape) - 1 or shape[dim] < 2:
                continue
            if self._weighs(graph, i):
                seen = (
                    f"softmax over dimension {dim} of shape {shape}, which is then multiplied by a "
                    f"matrix over its last dimension: the {shape[-1]} weights of each sum do not "
                    "add up to 1"
                )
            elif dim == 0 and len(shape) == 2 and shape[1] > 1 and self._is_picked(graph, i):
                seen = (
                    f"softmax over dimension 0 of shape {shape}, and the logarithm of one value of "
                    f"each row is taken: over the {shape[0]} samples of the batch they add up to "
                    f"1, not over the {shape[1]} classes"
                )
            elif dim == 0 and self._pools(graph, i):
                self.find(
                    graph.place(i),
                    f"softmax over dimension 0 of shape {shape}, whose values weigh a sum over "
                    f"dimension 1: over the {shape[0]} samples of the batch they add up to 1, not "
                    f"over the {shape[1]} places of a sum",
                    "give dim=1, the dimension that is summed over",
                )
                continue
            else:
                continue
            self.find(graph.place(i), seen, "give dim=-1, the dimension that is chosen from")

    @staticmethod
    def _pools(graph: Recorded, i: int) -> bool:
        """Whether one score for each place is made a weight of a sum over dimension 1. Of a gate
        with several scores each may choose among the samples."""
        shape = graph.shape(i)
        edge = graph.maker(i)
        while edge is not None and graph.ops[edge[0]] in ("squeeze", "div", "mul"):
            edge = graph.maker(edge[0])
        if edge is None or graph.ops[edge[0]] != "linear":
            return False
        if graph.shape(*edge) != (*shape[:2], 1) or shape[1] < 2:
            return False
        uses = graph.consumers(i)
        if len(uses) == 1 and graph.ops[uses[0][0]] in ("unsqueeze", "_masked_dropout"):
            uses = graph.consumers(uses[0][0])
        if len(uses) != 1 or graph.ops[uses[0][0]] != "mul":
            return False
        product = uses[0][0]
        sums = graph.consumers(product)
        return (
            len(graph.shape(product)) == 3
            and graph.shape(product)[:2] == shape[:2]
            and len(sums) == 1
            and graph.ops[sums[0][0]] == "sum"
            and tuple(graph.attributes(sums[0][0])["dim"] or ()) in ((1,), (-2,))
        )

    @staticmethod
    def _weighs(graph: Recorded, i: int) -> bool:
        """Whether the values are weights of a sum: the left factor of a product of matrices."""
        for _ in range(_HOPS):
            uses = graph.consumers(i)
            if len(uses) != 1:
                return False
            i, argument = uses[0]
            if graph.ops[i] in ("matmul", "bmm"):
                return argument == 0
            if graph.ops[i] not in ("_masked_dropout", "_to_dtype", "_contiguous", "mul"):
                return False
        return False

    @staticmethod
    def _is_picked(graph: Recorded, i: int) -> bool:
        for _ in range(_HOPS):
            uses = graph.consumers(i)
            if len(uses) != 1:
                return False
            i = uses[0][0]
            if graph.ops[i] in ("gather", "_index"):
                return True
            if graph.ops[i] not in ("log", "add", "_clamp", "clamp"):
                return False
        return False


class BatchForTime(Reading):
    mistake = "a layer takes the batch for time"

    def read(self, graph: Recorded) -> None:
        for i in graph.all("_recurrent"):
            if graph.attributes(i).get("batch_sizes") is None:
                self._follow(graph, i, "recurrent layer")
        if graph.kinds.intersection(_TRANSFORMERS):
            self._attention(graph)

    @staticmethod
    def _is_attention(graph: Recorded, i: int) -> bool:
        raw = graph.raw_place(i)
        return raw is not None and raw[3] in _TRANSFORMERS

    def _attention(self, graph: Recorded) -> None:
        from clew import nn

        modules = [m for model in self.run.models for m in model.modules()]
        found = [m for m in modules if isinstance(m, nn.MultiheadAttention)]
        if not found or any(m.batch_first for m in found):
            return
        last = max(i for i in range(len(graph.ops)) if self._is_attention(graph, i))
        ends = [
            j
            for j in range(last, len(graph.ops))
            if len(graph.shape(j)) == 3 and (j == last or self._is_inside(graph, j))
        ]
        if ends:
            self._follow(graph, ends[-1], "attention layer")

    @staticmethod
    def _is_inside(graph: Recorded, i: int) -> bool:
        """Whether a node was made in a transformer's layer: its norms and linear layers."""
        raw, kinds = graph.raw_place(i), ("LayerNorm", "Linear", "Dropout")
        return raw is not None and raw[3] in kinds and "layers." in (raw[2] or "")

    def _follow(self, graph: Recorded, start: int, what: str) -> None:
        """To where one sample of what a layer takes for the batch is picked, or all averaged."""
        shape = graph.shape(start)
        if len(shape) != 3 or shape[0] < 2 or shape[1] < 2:
            return
        pending = [start]
        seen = set(pending)
        while pending:
            at = pending.pop()
            for j, argument in graph.consumers(at):
                edge = graph.maker(j, argument)
                if j in seen or edge is None or edge[1] != 0:
                    continue
                seen.add(j)
                how = self._reduces(graph, j)
                if how:
                    self.find(
                        self._made(graph, start) or graph.place(start),
                        f"the {what} gets {shape[0]} x {shape[1]} vectors and takes the first "
                        f"dimension for time, the second for the batch; {how} of the second"
                        + (f" at {reduced.short}" if (reduced := graph.place(j)) else "")
                        + f", so that {shape[0]} samples are left",
                        "make it with batch_first=True, or give it x.transpose(0, 1)",
                        (start, what),
                    )
                    return
                if graph.ops[j] in _POINTWISE and graph.shape(j)[:2] == shape[:2]:
                    pending.append(j)

    def _made(self, graph: Recorded, i: int) -> Place | None:
        """The line of the model's class that makes the layer."""
        raw = graph.raw_place(i)
        path = (raw[2] or "").split(".") if raw is not None else [""]
        for model in self.run.models:
            owner = model
            for name in path[:-1]:
                owner = getattr(owner, "_modules", {}).get(name)
            part = getattr(owner, "_modules", {}).get(path[-1])
            if part is None or type(part).__name__ != raw[3]:
                continue
            made = assignment(type(owner), path[-1])
            return None if made is None or made.file.startswith(_provenance._LIBRARY) else made
        return None

    @staticmethod
    def _reduces(graph: Recorded, j: int) -> str:
        attributes = graph.attributes(j)
        if graph.ops[j] == "_getitem" and len(attributes.get("length", ())) == 3:
            first, second, _ = attributes["length"]
            step = attributes["step"]
            edge = graph.maker(j)
            whole = edge is not None and first == graph.shape(*edge)[0]
            # A step of 0 is an index, which takes its dimension away.
            return "one vector is taken" if whole and second == 1 and step[1] == 0 else ""
        dims = attributes.get("dim")
        dims = dims if isinstance(dims, (tuple, list)) else (dims,)
        if graph.ops[j] in ("mean", "amax", "max") and [d for d in dims if d is not None] == [1]:
            return f"{graph.ops[j]}() is taken"
        return ""


_TRANSFORMERS = ("TransformerEncoderLayer", "MultiheadAttention")


class NormShared(Reading):
    mistake = "one batch normalisation stands after two layers"

    def read(self, graph: Recorded) -> None:
        first: dict[int, int] = {}
        for i in graph.all("_native_batch_norm"):
            weight = graph.leaf(i, 1)
            if weight is None or not graph.attributes(i).get("training"):
                continue
            other = first.setdefault(id(weight), i)
            one, two = self._layer(graph, other), self._layer(graph, i)
            if one is None or two is None or one is two:
                continue
            before = graph.place(other)
            self.find(
                graph.place(i),
                f"one batch normalisation of {weight.numel()} channels follows two layers with "
                "weights of their own"
                + (f", the other at {before.short}" if before else "")
                + ": its running mean and variance mix both, and fit neither in evaluation mode",
                "make a normalisation for each layer",
                id(weight),
            )

    @staticmethod
    def _layer(graph: Recorded, i: int) -> Any:
        """The weight of the layer that a normalisation follows at once."""
        edge = graph.maker(i)
        if edge is None or graph.ops[edge[0]] not in _LAYERS:
            return None
        return graph.leaf(edge[0], 1)


# What gains nothing by more digits.
_PLAIN = set(
    "_mse_loss _smooth_l1_loss _huber_loss _distance sub add mul div neg abs mean sum pow square "
    "view reshape squeeze unsqueeze transpose permute flatten _getitem expand relu tanh sigmoid "
    "_masked_dropout _contiguous linear matmul addmm".split()
)


class NormOfOne(Reading):
    """Of a normalisation within each sample: less its own mean a value is 0."""

    mistake = "a normalisation over a single value"

    def read(self, graph: Recorded) -> None:
        for i in graph.all("_native_norm"):
            told = graph.attributes(i)
            shape = graph.shape(i)
            samples, groups = told.get("n", 0), told.get("g", 0)
            count = math.prod(shape)
            if not count or count != samples * groups or count < 2:
                continue
            if graph.node(i) is None or not self._is_zero(graph, i):
                continue
            self.find(
                graph.place(i),
                f"of shape {shape} each of the {count} values is normalised by itself: its mean is "
                "itself, what is left is 0, and nothing of the input comes through",
                "normalise over several values: fewer groups than channels, a layer's width, or "
                "the normalisation before the pooling",
            )

    @staticmethod
    def _is_zero(graph: Recorded, i: int) -> bool:
        """Whether the deviations are those of single values: 1 / sqrt(eps), all the same."""
        eps = graph.attributes(i).get("eps", 0.0)
        saved = [t for t in graph.node(i).saved_tensors if t is not None]
        return eps > 0 and any(np.allclose(values(t), eps**-0.5, rtol=1e-3) for t in saved)


class DoubleInside(Reading):
    mistake = "float64 creeps in"

    MANY = 16

    def read(self, graph: Recorded) -> None:
        for i in graph.all("_to_dtype"):
            edge = graph.maker(i)
            if edge is None or graph.dtype(i) != "float64" or graph.dtype(*edge) != "float32":
                continue
            shape, place = graph.shape(i), graph.place(i)
            count = 1
            for size in shape:
                count *= size
            if count < self.MANY or place is None:
                continue
            if not ("double(" in place.text or "float64" in place.text):
                continue
            above, pending = set(), [i]
            while pending:
                for j, _ in graph.consumers(pending.pop()):
                    if j not in above and graph.ops[j] != "_to_dtype":
                        above.add(j)
                        pending.append(j)
            if above and {graph.ops[j] for j in above} <= _PLAIN:
                self.find(
                    place,
                    f"float32 of shape {shape} is made float64 here, and the {len(above)} "
                    "operations after it, which gain nothing by it, run in float64",
                    "leave it in float32, and make the targets float32 once: y.float()",
                )
