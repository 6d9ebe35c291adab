"""Models that are trained to give the same for everything: two branches that only agree."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import leaves_of
from clew._insight.debug.doctor.reading import Recorded, recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Pass
from clew._insight.debug.place import Place


class Collapse(Rule):
    """Of a cosine or a distance between two branches of one model, both with their gradients."""

    mistake = "the outputs collapse: two branches are only made to agree"

    LOOKS = 6  # that are needed
    ONE = 0.25  # the part of the outputs that differs between samples, where they collapse
    FALL = 3.0  # times that it has become smaller since the first look
    FALLING = 4  # looks in a row
    ROWS = 8

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line of a backward: whether it has such a term; by line of the term: what differs.
        self.keys: dict[Any, int] = {}
        self.spreads: dict[Any, list[float]] = {}
        self.places: dict[Any, Place | None] = {}

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or self.keys.get(pass_.key, 0) < -1:
            return
        graph = recorded(pass_)
        found = False
        # Products are those of vectors that were divided by their length.
        kinds = ("mul", "_mse_loss") if "div" in graph.ops else ("_mse_loss",)
        for i in graph.all(*kinds):
            pair = self._pair(graph, i)
            if pair is None:
                continue
            found = True
            place = graph.place(i)
            key = place and (place.file, place.line)
            self.places.setdefault(key, place)
            spread = max(differing(values(t)) for t in pair)
            seen = self.spreads.setdefault(key, [])
            if not seen or self.keys.get((key, "at")) != self.run.backwards:
                seen.append(spread)
                self.keys[(key, "at")] = self.run.backwards
        if not found:  # looked for twice
            self.keys[pass_.key] = self.keys.get(pass_.key, 0) - 1

    def _pair(self, graph: Recorded, i: int) -> list[Tensor] | None:
        """The vectors of two branches that a node compares, where both are trained by it."""
        one, two = graph.maker(i, 0), graph.maker(i, 1)
        if one is None or two is None or one == two:
            return None
        shape = graph.shape(*one)
        if len(shape) != 2 or shape[0] < self.ROWS or shape[1] < 2 or graph.shape(*two) != shape:
            return None
        if graph.ops[i] == "mul" and not all(self._is_unit(graph, e[0]) for e in (one, two)):
            return None
        node = graph.node(i)
        saved = [] if node is None else [t for t in node.saved_tensors if t is not None]
        saved = [t for t in saved if tuple(t.shape) == shape]
        parents = [fn for fn, _ in node.next_functions] if node is not None else []
        if len(saved) != 2 or len(parents) < 2 or None in parents[:2]:
            return None
        known = self.run.optimized()
        left, right = (leaves_of(fn).keys() & known for fn in parents[:2])
        return saved if left & right else None

    @staticmethod
    def _is_unit(graph: Recorded, i: int) -> bool:
        """Whether vectors were divided by their own length."""
        if graph.ops[i] != "div":
            return False
        below, divisor = graph.maker(i, 0), graph.maker(i, 1)
        for _ in range(3):
            if divisor is None or below is None:
                return False
            if graph.ops[divisor[0]] in ("vector_norm", "norm"):
                return True
            divisor = graph.maker(divisor[0])
        return False

    def finish(self) -> None:
        for key, seen in self.spreads.items():
            if len(seen) < self.LOOKS or seen[-1] > self.ONE or seen[-1] * self.FALL > seen[0]:
                continue
            last = seen[-self.FALLING :]
            if any(a <= b for a, b in pairwise(last)) and max(last) > self.ONE:
                continue
            self.find(
                self.places[key],
                f"between samples the outputs differ by {seen[0]:.3g} of their size at first, by "
                f"{seen[-1]:.3g} at the end, in {len(seen)} steps looked at; both sides of the "
                "comparison get gradients, and to give the same for all is how they agree best",
                "stop the gradient on one side, z.detach(), as SimSiam and BYOL do, or add a term "
                "that keeps outputs apart",
            )


def differing(v: Any) -> float:
    """The part of vectors' size by which they differ from their mean."""
    whole = float(np.square(v, dtype=np.float64).mean())
    apart = float(np.square(v - v.mean(0), dtype=np.float64).mean())
    return (apart / whole) ** 0.5 if whole > 0 else 0.0
