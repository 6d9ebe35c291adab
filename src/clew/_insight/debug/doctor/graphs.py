"""Graphs that are kept, that grow, or that join what should be apart."""

from __future__ import annotations

import ast
import inspect
import sys
import weakref
from collections import Counter
from itertools import pairwise
from types import FrameType
from typing import Any

from clew import _C, Tensor
from clew._base import provenance as _provenance
from clew._base.statements import names_in
from clew._insight.debug.doctor.nodes import LOSSES
from clew._insight.debug.doctor.reading import recorded
from clew._insight.debug.doctor.rule import CALLS, Rule
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.holders import appended, assignment, holder_of, put_into, repetition
from clew._insight.debug.place import Place, placed

_ROUNDS = 3
_KEPT = 12  # tensors that are looked after


def reaches(node: Any, number: int, depth: int = 4) -> bool:
    """Whether a node is made of the one with this number, by a few operations."""
    below = [fn for fn, _ in node.next_functions if fn is not None]
    return any(fn._sequence_nr() == number for fn in below) or (
        depth > 0 and any(reaches(fn, number, depth - 1) for fn in below)
    )


def is_old(node: Any, last_root: int, depth: int = 4) -> bool:
    """Whether a number comes from before the last backward, perhaps scaled since."""
    if node._sequence_nr() <= last_root:
        return True
    before = [fn for fn, _ in node.next_functions if fn is not None]
    return depth > 0 and bool(before) and all(is_old(fn, last_root, depth - 1) for fn in before)


class LossKept(Rule):
    mistake = "losses or outputs are kept with their graphs"
    operations = LOSSES

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Losses by the line that made them or ran backward, outputs by that of the loss. Each with
        # the number of backwards before it.
        self.seen: dict[Any, list[tuple[weakref.ref[Tensor], int]]] = {}

    def operation(self, call: Call) -> None:
        if call.inputs[0].grad_fn is not None:
            self._note(call.inputs[0], call.key, call.place, "outputs")
        if call.outputs[0].grad_fn is not None:
            self._note(call.outputs[0], call.key, call.place, "losses")

    def backward(self, pass_: Pass) -> None:
        if pass_.how != "grad" and len(pass_.roots) == 1 and pass_.roots[0].grad_fn is not None:
            self._note(pass_.roots[0], pass_.key, pass_.place, "losses")

    def _note(self, tensor: Tensor, key: Any, place: Place | None, what: str) -> None:
        seen = self.seen.setdefault((what, key), [])
        now = self.run.backwards
        before = [(ref, at) for ref, at in seen if at != now]
        # Those of this round may be needed yet: a sequence's losses are added up at its end.
        rounds = {at for ref, at in before if (t := ref()) is not None and t.grad_fn is not None}
        alive = len(rounds)
        found = (what, key) in self.findings
        if not found and alive >= _ROUNDS and alive >= 0.8 * len({at for _, at in before}):
            made = placed(tensor.grad_fn._place) or place
            kept = self._kept([ref for ref, _ in before], made)
            lines = {at.line for at in (made, kept) if at is not None}
            self.find(
                kept or made,
                f"{alive} {what} of earlier rounds are still alive, each with its graph"
                + (f"; made at {made.short}" if made and kept else "")
                + (f"; used at {place.short}" if place and place.line not in lines else ""),
                "keep numbers: losses.append(loss.item()), outputs.append(output.detach())",
                (what, key),
            )
        seen.append((weakref.ref(tensor), now))
        del seen[:-_KEPT]

    @staticmethod
    def _kept(seen: list[weakref.ref[Tensor]], made: Place | None) -> Place | None:
        """The line that put the tensors into a list or dict."""
        alive = [t for ref in seen if (t := ref()) is not None]
        return put_into(holder_of(alive), made.file) if made is not None else None


class RunningTotal(Rule):
    mistake = "a running total keeps the graph of every step"
    operations = few = ("add",)  # it looks at single numbers alone

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: the number of the sum's node, its round, and the rounds that it went through.
        self.carried: dict[Any, tuple[int, int, int]] = {}

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        if out.dim() > 1 or out.numel() != 1 or out.grad_fn is None:
            return
        nodes = [
            t.grad_fn
            for t in call.inputs
            if t is not None and t.dim() <= 1 and t.grad_fn is not None
        ]
        if not nodes or self.run.last_root == 0:
            return
        # All that goes in was made before the last backward: nothing will be differentiated.
        if not all(is_old(n, self.run.last_root) for n in nodes):
            return
        # What is added once and read, such as (a + b).item(), is gone in the next round; and sum()
        # over losses that were kept adds many in one round.
        last, at, rounds = self.carried.get(call.key, (0, -1, 1))
        carried = self.run.backwards > at >= 0 and reaches(out.grad_fn, last)
        rounds = rounds + 1 if carried else 1
        self.carried[call.key] = (out.grad_fn._sequence_nr(), self.run.backwards, rounds)
        if rounds >= _ROUNDS:
            self.find(
                call.place,
                f"{rounds} times a loss was added after its backward had run: the "
                "sum keeps a graph that grows with every step",
                "add the number: total += loss.item()",
            )


def variables_of_rounds() -> dict[int, Place]:
    """Of the functions that run now, and of those only that do not make a value themselves: by the
    number of a node, the line that gives a variable what it made."""
    found: dict[int, Place] = {}
    frame: FrameType | None = sys._getframe(2)
    left = 3  # functions of the user's
    while frame is not None and left:
        if not frame.f_code.co_filename.startswith(_provenance._LIBRARY):
            left -= 1
            for name, value in list(frame.f_locals.items()):
                for t in value if isinstance(value, (tuple, list)) and len(value) < 5 else (value,):
                    node = t.grad_fn if isinstance(t, Tensor) else None
                    at = node._place if node is not None else None
                    if node is None or at is None or at[0] is frame.f_code:
                        continue
                    line = _given(frame, name)
                    if line is not None:
                        place = Place(None, frame.f_code.co_filename, line)
                        found.setdefault(node._sequence_nr(), place)
        frame = frame.f_back
    return found


def _given(frame: FrameType, name: str) -> int | None:
    """The last line up to the one that runs now that gives a variable a value."""
    first = frame.f_code.co_firstlineno
    lines = [
        node.lineno
        for node in ast.walk(parsed(frame.f_code.co_filename))
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        if first <= node.lineno <= frame.f_lineno
    ]
    return max(lines, default=None)


class Growing(Rule):
    mistake = "the graph grows from step to step"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.sizes: dict[Any, list[tuple[int, int, int]]] = {}
        self.root_before: dict[Any, int] = {}
        self.freed: set[int] = set()  # nodes that the last backward went through and let go of
        self.refused: Pass | None = None  # a backward that goes through some of them
        # By the number of a node: the line that assigned its result to a variable.
        self.variables: dict[int, Place] = {}
        self.looked: dict[Any, int] = {}  # by line of a backward: times that variables were noted

    def stepping(self, watched: Watched) -> None:
        self.refused = None  # it ran all the same

    def finish(self) -> None:
        """A backward through freed nodes raises an error, and often that ends the program."""
        pass_ = self.refused
        if pass_ is None:
            return
        place, what = self._carrier(pass_, max(self.freed), self.variables)
        old = len(self.freed.intersection(pass_.sequences))
        self.find(
            place or pass_.place,
            f"backward goes through {len(pass_.sequences)} operations, {old} of which the backward "
            "before went through and freed" + (f", through {what}" if what else ""),
            "cut what is carried over: h = h.detach(), before each round",
            pass_.key,
        )

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad":
            return
        self.refused = pass_ if self.freed.intersection(pass_.sequences) else None
        if self.refused is not None:
            return
        earlier = self.variables
        self.freed = set() if pass_.how == "retaining" else set(pass_.sequences)
        key = pass_.key
        before = self.root_before.get(key, 0)
        sequences = pass_.sequences
        old = sum(s <= before for s in sequences)
        sizes = self.sizes.setdefault(key, [])
        sizes.append((len(sequences), old, self.run.round))
        times = self.looked[key] = self.looked.get(key, 0) + 1
        if times == 1 or (old and times < 2 * CALLS):
            self.variables = variables_of_rounds()
        self.root_before[key] = pass_.root_sequence
        last = sizes[-4:]
        if len(last) < 4 or any(a[1] >= b[1] for a, b in pairwise(last)):
            return
        place, what = self._carrier(pass_, before, earlier)
        self.find(
            place or pass_.place,
            f"backward goes through {', '.join(str(n) for n, _, _ in last)} operations, more in "
            f"each round; {last[-1][1]} of the last come from earlier rounds"
            + (f", through {what}" if what else ""),
            "cut what is carried over: h = h.detach(), before each round",
            key,
        )

    @staticmethod
    def _carrier(pass_: Pass, before: int, variables: dict[int, Place]) -> tuple[Place | None, str]:
        """The latest value of an earlier round that this round uses. Its place is the line that
        assigned it to a variable, if there is one."""
        columns = pass_.columns
        best = None
        for i, ins in enumerate(columns["inputs"]):
            if columns["sequence"][i] <= before:
                continue
            for edge in ins:
                if edge is None:
                    continue
                made = columns["sequence"][edge[0]]
                if 0 < made <= before and (best is None or made > best[0]):
                    best = (made, edge[0], i)
        if best is None:
            return None, ""
        at = columns["place"][best[1]]
        place = placed(columns["places"][at]) if at >= 0 else None
        op = columns["op"][best[1]].lstrip("_")
        outer = variables.get(best[0])
        return outer or place, f"the result of {op}" + (f" at {place.short}" if place else "")


class Carried(Rule):
    """A graph that grows although no backward goes through it: that of a running mean."""

    mistake = "the graph grows from step to step"
    operations = few = ("add", "sub", "mul", "lerp", "cat", "stack")

    ENOUGH = 4  # rounds that one value went through

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: the number of the last result's node, its round, and the rounds before.
        self.chains: dict[Any, tuple[int, int, int]] = {}
        self.found: dict[Any, tuple[Place | None, int, set[int]]] = {}

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        node = out.grad_fn
        if node is None or (out.numel() == 1 and self._is_total(call)):
            return
        made, at = node._sequence_nr(), self.run.backwards
        last, before, length = self.chains.get(call.key, (0, -1, 0))
        grown = at > before >= 0 and reaches(node, last)
        self.chains[call.key] = (made, at, length + 1 if grown else 1)
        if grown and length + 1 >= self.ENOUGH:
            _, _, numbers = self.found.setdefault(call.key, (call.place, 0, set()))
            self.found[call.key] = (call.place, length + 1, numbers | {last, made})

    def _is_total(self, call: Call) -> bool:
        """Whether a loss is added whose backward has run: RunningTotal tells of it."""
        nodes = [t.grad_fn for t in call.inputs if t is not None and t.grad_fn is not None]
        return all(is_old(node, self.run.last_root) for node in nodes)

    def backward(self, pass_: Pass) -> None:
        if not self.found:
            return
        numbers = set(pass_.sequences)
        for key, (_, _, made) in list(self.found.items()):
            if made & numbers:
                del self.found[key]  # Growing tells of it, or it is meant

    def finish(self) -> None:
        for place, length, _ in self.found.values():
            self.find(
                place,
                f"what is made here is made of what the round before made here, {length} rounds in "
                "a row, each with its graph; no backward goes through it, and nothing is freed",
                "cut what is carried over: compute it under no_grad(), or from x.detach()",
            )


class SharedByAccident(Rule):
    mistake = "two modules are one: they share their weights"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.judged: dict[int, Any] = {}
        self.uses: dict[int, int] = {}  # of parameters: the most often that a backward met them

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or all(id(m) in self.judged for m in self.run.models):
            return
        holders = [h for m in self.run.models for h in m.modules()]
        if not any(len(same) > 1 for holder in holders for same in self._entries(holder)):
            return
        graph = recorded(pass_)
        met = Counter(
            id(leaf)
            for i, given in enumerate(graph.inputs)
            for argument in range(len(given))
            if (leaf := graph.leaf(i, argument)) is not None
        )
        for key, times in met.items():
            self.uses[key] = max(times, self.uses.get(key, 0))

    def stepped(self, watched: Watched) -> None:
        if watched.steps > 2:
            return
        for model in self.run.models:
            if id(model) not in self.judged:
                self.judged[id(model)] = model
                self._judge(model, watched)

    def _judge(self, model: Any, watched: Watched) -> None:
        for holder in model.modules():
            self._repeated(model, holder, watched)
        memory: dict[int, tuple[str, Any]] = {}
        for name, p in model.named_parameters():
            address = p._address()
            if p.numel() < 2 or not address:
                continue
            other = memory.setdefault(address, (name, p))
            if other[1] is not p and other[1].numel() == p.numel():
                self.find(
                    watched.place or watched.step_place,
                    f"{other[0]} and {name} are two parameters over the same memory: each step "
                    "writes both",
                    "clone() the tensor for each: nn.Parameter(w.clone())",
                    (id(model), name),
                )

    @staticmethod
    def _entries(holder: Any) -> list[list[str]]:
        """The names of a module's parts, those together that share their parameters."""
        from clew import nn

        found: dict[int, list[str]] = {}
        for name, child in holder._modules.items():
            # Embeddings are shared on purpose.
            shared = isinstance(child, (nn.Embedding, nn.EmbeddingBag))
            if child is not None and not shared and any(True for _ in child.parameters()):
                # A shallow copy has the same table of parameters, and the same parts.
                own = child._parameters if child._parameters else child._modules
                found.setdefault(id(own), []).append(name)
        return list(found.values())

    def _repeated(self, model: Any, holder: Any, watched: Watched) -> None:
        for same in self._entries(holder):
            if len(same) < 2 or _is_handed_in(type(holder), same):
                continue
            # A second name of what is called once is no second module. Where a graph shows no
            # use at all, as under checkpoint(), it is not known.
            used_by = [self.uses.get(id(p), 0) for p in holder._modules[same[0]].parameters()]
            if 0 < max(used_by) < len(same):
                continue
            path, place = "", assignment(type(holder), same[-1])
            for owner in model.modules():
                for name, child in owner._modules.items():
                    if child is holder:
                        path = name
                        place = place or assignment(type(owner), name)
                        place = (place and appended(place.file, name)) or place
            child = holder._modules[same[0]]
            count = sum(p.numel() for p in child.parameters())
            use = next((u for p in child.parameters() if (u := _C._recorded_use(p))), None)
            used = placed(use[0]) if use else None
            near = used or watched.step_place
            copied = len({id(holder._modules[name]) for name in same}) > 1
            again = repetition(near.file) if near else None
            self.find(
                (again if copied else None) or place or again or watched.place or near,
                f"entries {', '.join(same[:6])} of {path or type(holder).__name__} are "
                f"{'shallow copies of ' if copied else ''}one {type(child).__name__}: its "
                f"{count:,} numbers are counted and trained once, not {len(same)} times",
                "copy.deepcopy() each, which copies the parameters, too"
                if copied
                else "make a module for each: [Block() for _ in range(n)], not [Block()] * n",
                id(holder),
            )


def _is_handed_in(kind: type, attributes: list[str]) -> bool:
    """Whether a class gives one argument of its __init__ several names, as twins that share a
    module do, and wrappers."""
    shared = set(inspect.signature(kind).parameters)
    for attribute in attributes:
        place = assignment(kind, attribute)
        try:
            tree = ast.parse(place.source if place else "")
        except SyntaxError:
            return False
        set_to = next((n.value for n in ast.walk(tree) if isinstance(n, ast.Assign)), None)
        if set_to is None or any(isinstance(n, ast.Call) for n in ast.walk(set_to)):
            return False
        shared &= names_in(set_to)
    return bool(shared)
