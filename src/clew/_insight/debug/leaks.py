"""What grew between two steps: tensors and graphs, with who holds them and the line to change."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Container, Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from clew import _C, Tensor
from clew._insight.debug.holders import held_by
from clew._insight.debug.memory import Count, Holding, count_of, variables_of, with_holders
from clew._insight.graph.tables import amount
from clew._tensor.html import as_printed

__all__ = ["Growth", "leaks"]

_LOOKED_AT = 200  # tensors whose graphs are walked to find who keeps one
_GRADIENT = "the gradient of a leaf, made with create_graph=True"


@dataclass(frozen=True)
class Growth:
    """What one owner holds more than before.

    Attributes:
        holding: the owner, with the bytes and blocks that were added.
        remedy: what to change.
        keeper: of what a graph saved: the variable, or another owner, that keeps the graph.

    Of kind "graphs" are variables whose graph goes on from that of an earlier step: `name` is the
    variable, `place` the line that made what it holds, `tensors` counts operations, and bytes are
    those of no tensor: 0.
    """

    holding: Holding
    remedy: str
    keeper: str = ""

    _repr_html_ = as_printed

    def __str__(self) -> str:
        h = self.holding
        if h.kind == "graphs":
            made = f"\n  grown at {h.place}" if h.place else ""
            return f"graphs: that of {h.name} grew by {h.tensors} operations{made}"
        blocks = "1 block" if h.tensors == 1 else f"{h.tensors} blocks"
        what = f"{h.kind}: {h.name} grew by {amount(h.bytes, 'B')} in {blocks}"
        made = f"\n  made at {h.place}" if h.place else ""
        return what + made + (f"\n  its graph is kept by {self.keeper}" if self.keeper else "")


def _graph_keepers(
    frame: FrameType | None, rows: set[tuple[str, str]], before: Container[Any]
) -> dict[tuple[str, str], str]:
    """Who keeps the graphs in which something was saved since, by operation and place.

    Variables come first, of a list's items the last; then gradients, then tensors that no variable
    leads to.
    """
    found: dict[tuple[str, str], str] = {}
    if not rows:
        return found
    alive: list[Tensor] = _C._live_tensors()
    named = [v for v in variables_of(frame) if v[1].grad_fn is not None]
    for name, t in named[: -_LOOKED_AT - 1 : -1]:
        for row in _saved_in(t, before) & rows:
            found.setdefault(row, f"the variable {name}")
    for t in alive:
        gradient = t.grad if t.is_leaf and t.requires_grad else None
        if gradient is not None and gradient.grad_fn is not None:
            for row in _saved_in(gradient, before) & rows:
                found.setdefault(row, _GRADIENT)
    others = [t for t in reversed(alive) if t.grad_fn is not None][:_LOOKED_AT]
    for t in others:
        mine = _saved_in(t, before) & (rows - found.keys())
        holder = held_by(t, [alive, others]) if mine else ""
        if holder.startswith("by "):
            found.update(dict.fromkeys(mine, holder.removeprefix("by ")))
    return found


def _roots() -> tuple[Tensor, ...]:
    return tuple(t for t in _C._live_tensors() if t.grad_fn is not None)


def _grown_graphs(frame: FrameType | None, mark: int, told: set[str]) -> list[Holding]:
    """Of each variable whose graph goes on from one that was there before.

    Args:
        frame: whose variables are looked at.
        mark: the latest node before.
        told: variables that need not be told again.
    """
    alive: list[Tensor] = _C._live_tensors()
    named = [(f"the variable {n}", t) for n, t in variables_of(frame) if t.grad_fn is not None]
    known = {id(t) for _, t in named}
    # Only those with a graph count for the limit: a program may hold any number of others.
    others = [t for t in reversed(alive) if t.grad_fn is not None and id(t) not in known]
    others = others[:_LOOKED_AT]
    gradients = {id(t.grad) for t in alive if t.is_leaf and t.requires_grad}
    found: dict[str, Holding] = {}
    for name, t in [*named[::-1][:_LOOKED_AT], *(("", t) for t in others)]:
        earlier, later, _ = _C._graph_nodes((t,), mark)
        if not earlier or not later:
            continue
        if not name:
            by = _GRADIENT if id(t) in gradients else held_by(t, [alive, others])
            name = by.removeprefix("by ")
        if name not in told:
            where = "" if t.grad_fn.location is None else str(t.grad_fn.location)
            found.setdefault(name, Holding("graphs", name, where, 0, later))
    return list(found.values())


def _saved_in(t: Tensor, before: Container[Any]) -> set[tuple[str, str]]:
    """The operations, each with its place, that saved what a tensor's graph holds; none if all of
    that was there before."""
    blocks = _C._saved_blocks((t,))
    if all(key in before for key, *_ in blocks):
        return set()
    return {(node.removesuffix("0").removesuffix("Backward"), place) for *_, node, place in blocks}


def _by_container(
    rows: dict[tuple[str, str, str], list[int]],
) -> dict[tuple[str, str, str], tuple[int, int]]:
    """The rows with one for all numbered items of a list or dict: which of them have rows of their
    own depends on how many there are."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for (kind, name, place), (nbytes, blocks) in rows.items():
        key = kind, re.sub(r"\[[^'\"\]]*\]", "[...]", name) if kind == "variables" else name, place
        before = found.get(key, (0, 0))
        found[key] = before[0] + nbytes, before[1] + blocks
    return found


_REMEDIES = {
    "saved": "a variable keeps the graph of earlier steps: append loss.item() instead of the loss, "
    "detach() a state that is carried from step to step, and leave out retain_graph=True",
    "graphs": "it goes on from step to step, with every step's graph behind it: add up "
    "loss.item() or loss.detach() instead of the loss, and detach() what is carried on",
    "variables": "it keeps a tensor of every step: keep numbers (item()), or what is needed only",
    "gradients": "parameters got their first gradients, or new parameters are made in each step",
    "optimizer": "the optimizer made its state in its first step; later it should not grow",
    "parameters": "parameters are made in each step: make them once, outside of the loop",
    "buffers": "a module registers buffers in each call",
    "unknown": "something that is no variable holds tensors: a closure, an attribute "
    "of an object, a cache; gc.get_referrers(tensor) tells which",
}


class leaks:
    """What grew between two moments, with the owner, the line that made it and what to change.

    Use it around a step that should leave as much memory as it found: not the first one, in which
    gradients and the optimizer's state are made.

    >>> history = []
    >>> w = clew.ones(1000, requires_grad=True)
    >>> def step():
    ...     history.append((w * 2).exp().sum())
    >>> step()
    >>> with clew.debug.leaks() as found:
    ...     step()
    >>> sorted({growth.holding.kind for growth in found})
    ['saved', 'variables']
    >>> found[0].holding.name, found[0].holding.bytes
    ('Exp', 4000)
    """

    def __init__(self) -> None:
        self._before: Count | None = None
        self._nodes = self._latest = 0  # of all graphs that are alive
        self._growths: list[Growth] = []

    def __enter__(self) -> leaks:
        gc.collect()
        self._before = count_of(sys._getframe(1))
        _, self._nodes, self._latest = _C._graph_nodes(_roots(), 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before = self._before
        if before is None:
            return
        gc.collect()
        after = count_of(sys._getframe(1), before)
        growths = []
        old = _by_container(before.rows)
        for key, (nbytes, blocks) in _by_container(after.rows).items():
            old_bytes, old_blocks = old.get(key, (0, 0))
            if nbytes > old_bytes and blocks > old_blocks:
                holding = Holding(*key, nbytes - old_bytes, blocks - old_blocks)
                growths.append(holding)
        growths.sort(key=lambda holding: -holding.bytes)
        named = with_holders(growths, before.seen)
        saved = {(h.name, h.place) for h in named if h.kind == "saved"}
        keepers = _graph_keepers(sys._getframe(1), saved, before.seen)
        self._growths = [
            Growth(h, _REMEDIES[h.kind], keepers.get((h.name, h.place), "")) for h in named
        ]
        if sum(_C._graph_nodes(_roots(), 0)[:2]) > self._nodes:
            told = {growth.keeper for growth in self._growths}
            grown = _grown_graphs(sys._getframe(1), self._latest, told)
            self._growths += [Growth(h, _REMEDIES[h.kind]) for h in grown]

    def __len__(self) -> int:
        return len(self._growths)

    def __iter__(self) -> Iterator[Growth]:
        return iter(self._growths)

    def __getitem__(self, i: int) -> Growth:
        return self._growths[i]

    _repr_html_ = as_printed

    def __str__(self) -> str:
        lines = []
        for kind in dict.fromkeys(g.holding.kind for g in self._growths):
            same = [g for g in self._growths if g.holding.kind == kind]
            lines += [str(g) for g in same] + [f"  {same[0].remedy}"]
        return "\n".join(lines) or "nothing grew"
