"""Graphs that are kept for nothing: in lists and queues of steps long past, and in evaluations."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import Any

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._insight.debug.doctor.graphs import Growing
from clew._insight.debug.doctor.nodes import LOSSES, name_of
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.holders import put_into
from clew._insight.debug.place import Place

_DEPTH = 3  # functions of the user's that are looked into
_INSIDE = 3  # objects and dicts in one another
_LARGE = 64  # of a dict that is no record of names


class KeptInLists(Rule):
    mistake = "losses or outputs are kept with their graphs"

    FIRST = 5  # the round that is looked at first: the last one that is so for sure
    TIMES = 4  # rounds that are looked at
    ROUNDS = 5  # of which something must be kept
    MANY = 32  # entries that are looked at

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.roots: list[int] = []  # the latest nodes of the rounds
        self.looked: set[int] = set()
        self.retains = False  # a graph may be needed later

    def stepped(self, watched: Watched) -> None:
        if not self.roots or self.run.last_root > self.roots[-1]:
            self.roots.append(self.run.last_root)

    def backward(self, pass_: Pass) -> None:
        self.retains |= pass_.how == "retaining"
        now = self.run.round
        if now < self.FIRST or len(self.looked) >= self.TIMES or now in self.looked:
            return
        self.looked.add(now)
        if self.retains or self.findings:
            return
        for kept in _lists():
            made = sorted(
                t.grad_fn._sequence_nr()
                for entry in islice(reversed(kept), self.MANY)
                for t in (entry if isinstance(entry, (tuple, list)) else (entry,))
                if isinstance(t, Tensor) and t.grad_fn is not None
            )
            rounds = {bisect_left(self.roots, number) for number in made}
            rounds.discard(len(self.roots))  # those of this round
            if len(rounds) < self.ROUNDS:
                continue
            place = pass_.place and put_into(kept, pass_.place.file)
            if place is not None:
                self.find(
                    place,
                    f"of the last {min(len(kept), self.MANY)} entries, {len(made)} tensors of "
                    f"{len(rounds)} earlier rounds are still alive with their graphs, which no "
                    "backward will go through",
                    "keep numbers, or x.detach()",
                )


def _lists() -> list[Any]:
    """The lists and queues that variables of the running functions hold, in attributes and dicts of
    what they hold, too."""
    found: dict[int, Any] = {}
    frame: FrameType | None = sys._getframe(1)
    left = _DEPTH
    while frame is not None and left:
        if not frame.f_code.co_filename.startswith(_provenance._LIBRARY):
            left -= 1
            for value in list(frame.f_locals.values()):
                for each in _within(value, _INSIDE):
                    found[id(each)] = each
        frame = frame.f_back
    return list(found.values())


def _within(value: Any, depth: int) -> Iterator[Any]:
    """The long lists and queues in a value."""
    if type(value) in (list, deque):
        if len(value) >= KeptInLists.ROUNDS:
            yield value
        return
    if not depth or isinstance(value, (type, ModuleType, FunctionType)):
        return
    inside = value if type(value) in (dict, defaultdict) else getattr(value, "__dict__", None)
    if isinstance(inside, dict) and len(inside) <= _LARGE:
        for each in list(inside.values()):
            yield from _within(each, depth - 1)


class EvaluationGrows(Rule):
    """Of losses in evaluation mode that are made of one another, and that no backward goes through:
    a state that is carried on, or a sum of all."""

    mistake = "an evaluation keeps the graph of every batch"
    operations = ("add", *LOSSES)
    few = ("add",)  # it looks at single numbers alone

    ENOUGH = 8  # batches in a row

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line, since the last backward: of each batch the number of its loss, or of the sum so
        # far; 0 where that is a plain number.
        self.chains: dict[Any, list[int]] = {}
        self.lost: dict[Any, tuple[Place | None, str, list[int]]] = {}

    def operation(self, call: Call) -> None:
        if call.outputs[0].numel() != 1 or self.run.last_root == 0 or call.key in self.lost:
            return
        if all(m.training for m in self.run.models):
            return
        chain = self.chains.setdefault(call.key, [])
        if len(chain) < self.ENOUGH:
            (self._sum if call.name == "add" else self._loss)(call, chain)

    def _loss(self, call: Call, chain: list[int]) -> None:
        """Whether this loss reads values that were made for the previous loss, which read values
        made for the one before it, and so on. Terms of one batch's loss do not: what they read was
        there before the first of them."""
        out = call.outputs[0]
        if out.grad_fn is None:
            return
        if chain:
            before = chain[-2] if len(chain) > 1 else 0
            if not any(before < n <= chain[-1] for n in self._made(out)):
                chain.clear()
        chain.append(out.grad_fn._sequence_nr())
        if len(chain) < self.ENOUGH or self._trains(out):
            return
        place, carried = Growing._carrier(Pass(self.run, "lost", [out]), chain[-2], {})
        self.lost[call.key] = (
            place or call.place,
            f"each of {len(chain)} losses in a row"
            + (f" at {call.place.short}" if call.place else "")
            + " was made of what the one before was made of"
            + (f", through {carried}" if carried else ""),
            list(chain),
        )

    def _sum(self, call: Call, chain: list[int]) -> None:
        """Looks at a sum: whether all of what is added to it was made since it was made. The terms
        of one batch's loss are made of what was there before."""
        # In place, the sum gets its new node only after this.
        nodes = [(t, t.grad_fn) for t in call.inputs if isinstance(t, Tensor) and t.numel() == 1]
        made = [(fn._sequence_nr(), t) for t, fn in nodes if fn is not None]
        if len(made) == 1:  # the first is added to a number
            chain[:] = [0]
        if len(made) != 2 or not chain:
            return
        (number, total), (_, new) = sorted(made, key=lambda each: each[0])
        node = total.grad_fn
        before = [fn._sequence_nr() for fn, _ in node.next_functions if fn is not None]
        added = name_of(node) == "Add" and (chain[-1] == 0 or chain[-1] in before)
        if not added or min(self._made(new), default=0) <= number:
            chain.clear()
            return
        chain.append(number)
        if len(chain) == self.ENOUGH and not self._trains(new):
            seen = f"{len(chain)} losses in a row were added here"
            self.lost[call.key] = (call.place, seen, chain[1:])

    def _made(self, t: Tensor) -> list[int]:
        """The numbers of the nodes since the last backward that a value is made of."""
        return [n for n in _C._outline_graph((t,))[0] if n > self.run.last_root]

    def _trains(self, out: Tensor) -> bool:
        """Whether a model in training mode made this."""
        leaves = {id(leaf) for leaf in _C._outline_graph((out,))[1]}
        mine = [m for m in self.run.models if any(id(p) in leaves for p in m.parameters())]
        return not mine or any(m.training for m in mine)

    def backward(self, pass_: Pass) -> None:
        self.chains = {}
        if self.lost:
            numbers = set(pass_.sequences)
            for key, (_, _, made) in list(self.lost.items()):
                if numbers.intersection(made):
                    del self.lost[key]

    def finish(self) -> None:
        for place, seen, _ in self.lost.values():
            self.find(
                place,
                f"{seen}, with the model in evaluation mode; no backward goes through them, and "
                "the graphs of all batches are kept until the end",
                "evaluate under no_grad(); a sum of numbers is total += loss.item()",
            )
