"""Parts of a model that are not trained as they look: layers that stand in for others, models that
are made anew, a generator that is trained by its critic's loss."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.nodes import behind, leaves_of
from clew._insight.debug.doctor.reading import Reading, Recorded, recorded
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.doctor.source import parsed, side_by_side
from clew._insight.debug.place import Place, placed


class LayersUnused(Reading):
    mistake = "one layer of a list is used for all of them"

    def read(self, graph: Recorded) -> None:
        from clew import nn

        uses: dict[int, list[int]] = {}
        for i, given in enumerate(graph.inputs):
            for argument in range(len(given)):
                leaf = graph.leaf(i, argument) if graph.ops[i] in ("linear", "_conv") else None
                if leaf is not None:
                    uses.setdefault(id(leaf), []).append(i)
        for model in self.run.models:
            for holder in model.modules():
                if isinstance(holder, nn.ModuleList) and len(holder) > 1:
                    self._judge(graph, holder, uses)

    def _judge(self, graph: Recorded, holder: Any, uses: dict[int, list[int]]) -> None:
        kinds = {type(part) for part in holder}
        if len(kinds) != 1 or len({id(part) for part in holder}) != len(holder):
            return
        reached = {id(t) for t in graph.leaves}
        used = [p for p in holder if any(id(q) in reached for q in p.parameters())]
        if len(used) != 1 or not all(any(True for _ in p.parameters()) for p in holder):
            return
        calls = max((uses.get(id(q), []) for q in used[0].parameters()), key=len, default=[])
        if len(calls) != len(holder):
            return  # chosen by what is to be done, or by chance
        known = self.run.optimized()
        idle = [q for p in holder if p is not used[0] for q in p.parameters()]
        if not all(id(q) in known and q.grad is None for q in idle):
            return
        self.find(
            self._call(graph, calls),
            f"entry {list(holder).index(used[0])} of a list of {len(holder)} "
            f"{type(used[0]).__name__} is called {len(calls)} times, the others never: "
            f"{sum(q.numel() for q in idle):,} numbers are in the optimizer and never used",
            "call each in turn: for layer in self.layers: x = layer(x)",
            id(holder),
        )

    @staticmethod
    def _call(graph: Recorded, calls: list[int]) -> Place | None:
        """The line that picks one entry by a number in a loop; else that of the layer."""
        place = graph.place(calls[0])
        if place is None:
            return None
        lines = set()
        for loop in ast.walk(parsed(place.file)):
            for node in ast.walk(loop) if isinstance(loop, (ast.For, ast.While)) else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                    if isinstance(node.func.slice, ast.Constant):
                        lines.add(node.lineno)
        return Place(None, place.file, lines.pop()) if len(lines) == 1 else place


class ModelAnew(Rule):
    mistake = "the model is made anew, and the optimizer has an old one"

    ENOUGH = 2  # models

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By the shapes of an optimizer's parameters: models that were trained and are in none.
        self.seen: dict[Any, dict[int, Tensor]] = {}
        self.shapes: dict[int, Any] = {}

    def _shapes(self, watched: Watched) -> Any:
        if id(watched) not in self.shapes:
            self.shapes[id(watched)] = tuple(sorted(tuple(p.shape) for p in watched.params))
        return self.shapes[id(watched)]

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or not self.run.optimizers:
            return
        first = next(iter(pass_.leaves), None)
        if first is None or any(p is first for w in self.run.optimizers.values() for p in w.params):
            return
        known = self.run.optimized()
        if any(id(leaf) in known for leaf in pass_.leaves):
            return
        shapes = tuple(sorted(tuple(leaf.shape) for leaf in pass_.leaves))
        if any(self._shapes(w) == shapes for w in self.run.optimizers.values()):
            self.seen.setdefault(shapes, {})[id(first)] = first

    def finish(self) -> None:
        for watched in self.run.optimizers.values():
            found = self.seen.get(self._shapes(watched), {})
            if len(found) < self.ENOUGH or not watched.steps:
                continue
            # Where copies are trained by hand, their gradients may be put into the parameters.
            if any(p.grad is not None for p in watched.params):
                continue
            made = self._made(watched, found)
            if made is None:
                continue
            self.find(
                made,
                f"{len(found)} models of this kind were trained whose parameters are in no "
                f"optimizer; the {watched.kind} has those of an earlier one"
                + (f", made at {watched.place.short}" if watched.place else ""),
                "make the model once, before the loop, or a new optimizer for each",
                id(watched),
            )

    def _made(self, watched: Watched, found: dict[int, Tensor]) -> Place | None:
        """The one line within a loop that makes a model of the kind that is trained."""
        kinds = {
            type(m).__name__ for m in self.run.models if any(id(p) in found for p in m.parameters())
        }
        place = watched.step_place or watched.place
        if place is None or not kinds:
            return None
        lines = set()
        tree = parsed(place.file)
        for function in ast.walk(tree):  # functions that give a new model stand for its class
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(n, ast.Return)
                and isinstance(n.value, ast.Call)
                and getattr(n.value.func, "id", "") in kinds
                for n in ast.walk(function)
            ):
                kinds.add(function.name)
        for loop in ast.walk(tree):
            if not isinstance(loop, (ast.For, ast.While)):
                continue
            for node in ast.walk(loop):
                if not isinstance(node, ast.Assign):
                    continue
                called = [n.func for n in ast.walk(node.value) if isinstance(n, ast.Call)]
                if any(getattr(f, "id", getattr(f, "attr", "")) in kinds for f in called):
                    lines.add(node.lineno)
        return Place(None, place.file, lines.pop()) if len(lines) == 1 else None


class StateNeverGiven(Rule):
    """Of recurrent layers that get one step of a sequence at a time: each begins from nothing."""

    mistake = "a recurrent layer never gets its state"
    operations = few = ("_recurrent",)

    ENOUGH = 3  # steps in a row

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By weight: calls with one step since the last backward, and where.
        self.calls: dict[int, tuple[int, Place | None]] = {}
        self.fed: dict[int, tuple[int, Place | None]] = {}  # as they were at the last backward
        self.times: dict[int, int] = {}  # by weight: steps in a row; -1 where it had a gradient

    def operation(self, call: Call) -> None:
        out = call.outputs[0]
        if out.dim() != 3 or out.shape[0] != 1 or out.grad_fn is None:
            return
        hidden = out.shape[-1]
        for t in call.inputs[1:]:
            if isinstance(t, Tensor) and t.dim() == 2 and t.shape[1] == hidden:
                number, place = self.calls.get(id(t), (0, call.place))
                self.calls[id(t)] = (number + 1, place)

    def backward(self, pass_: Pass) -> None:
        if pass_.how != "grad":
            self.fed, self.calls = self.calls, {}

    def stepping(self, watched: Watched) -> None:
        if not self.fed:
            return
        from clew import nn

        known = {id(p) for p in watched.params}
        for model in self.run.models:
            for module in model.modules():
                if not isinstance(module, nn.RNNBase):
                    continue
                w, x = module.weight_hh_l0, module.weight_ih_l0
                number, place = self.fed.get(id(w), (0, None))
                if number < 2 or id(w) not in known or self.times.get(id(w)) == -1:
                    continue
                if w.grad is None or values(w.grad).any():
                    self.times[id(w)] = -1
                    self.findings.pop(id(w), None)
                elif x.grad is not None and values(x.grad).any():
                    self._note(module, w, number, place)
        self.fed = {}

    def _note(self, module: Any, w: Tensor, number: int, place: Place | None) -> None:
        times = self.times[id(w)] = self.times.get(id(w), 0) + 1
        if times >= self.ENOUGH:
            self.find(
                place,
                f"this {type(module).__name__} is called {number} times or more for each backward, "
                "with one step of a sequence each time, and never with the state that the step "
                f"before gave: the {w.numel():,} numbers of {self.run.name_of(w)} get a gradient "
                f"of exactly 0, {times} times in a row",
                "hand the state on: y, state = rnn(x, state); or give the whole sequence at once",
                id(w),
            )


class AverageExchanged(Rule):
    """Of a copy that follows the weights: it takes nearly all of them in each step."""

    mistake = "a moving average has its weights exchanged"

    ENOUGH = 4  # steps in a row
    SOME = 256  # numbers
    TAKES = (0.9, 0.9998)  # the part that is taken of the new; a copy takes all

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.copies: list[tuple[Tensor, Tensor, list[float]]] | None = None
        # Of each pair what both were after the last step.
        self.before: dict[int, tuple[Any, Any]] = {}

    def stepping(self, watched: Watched) -> None:
        if self.copies is None and watched.steps >= 1:
            self.copies = self._pairs()
        for at, (copy, own, parts) in enumerate(self.copies or ()):
            if not any(own is p for p in watched.params):
                continue
            after, last = self._some(copy), self.before.get(at)
            if last is not None:
                way = last[1] - last[0]
                size = float(way @ way)
                part = float(way @ (after - last[0])) / size if size > 0 else 0.0
                rest = float(np.abs(after - last[0] - part * way).max()) if way.size else 0.0
                fits = size > 0 and rest < 1e-3 * float(np.abs(way).max()) + 1e-7
                parts.append(part if fits else 0.0)

    def stepped(self, watched: Watched) -> None:
        for at, (copy, own, _) in enumerate(self.copies or ()):
            if any(own is p for p in watched.params):
                self.before[at] = (self._some(copy), self._some(own))

    def _some(self, t: Tensor) -> Any:
        return values(t).reshape(-1)[: self.SOME].astype(np.float64)

    def _pairs(self) -> list[tuple[Tensor, Tensor, list[float]]]:
        """A parameter of each model that is called and in no optimizer, beside its like."""
        known = self.run.optimized()
        models = [dict(m.named_parameters()) for m in self.run.models]
        found = []
        for theirs in models:
            if not theirs or any(id(p) in known for p in theirs.values()):
                continue
            name, copy = next(((n, p) for n, p in theirs.items() if p.dim() >= 2), ("", None))
            if copy is None or not copy.is_floating_point():
                continue
            for mine in models:
                own = mine.get(name)
                if own is None or id(own) not in known or mine.keys() != theirs.keys():
                    continue
                if own.shape == copy.shape:
                    parts: list[float] = []
                    found.append((copy, own, parts))
        return found

    def finish(self) -> None:
        from clew import _C

        for copy, own, parts in self.copies or ():
            low, high = self.TAKES
            if len(parts) < self.ENOUGH or not all(low <= p <= high for p in parts):
                continue
            part = sorted(parts)[len(parts) // 2]
            self.find(
                placed(_C._place_of_write(copy)) or self._line(),
                f"in each of {len(parts)} steps looked at, the copy took {part:.4g} of the new "
                f"{self.run.name_of(own)} and kept {1 - part:.2g} of its own: it is next to the "
                "weights themselves, and averages nothing",
                f"exchange the two: keep {part:.4g} of the average, take {1 - part:.2g} of the "
                "weights",
                id(copy),
            )

    def _line(self) -> Place | None:
        """The one line that writes in a loop over the parameters of two models."""
        lines = set()
        for file in {w.place.file for w in self.run.optimizers.values() if w.place is not None}:
            for loop in ast.walk(parsed(file)):
                if isinstance(loop, ast.For) and side_by_side(loop.iter):
                    lines.add((file, loop.body[-1].lineno))
        return Place(None, *lines.pop()) if len(lines) == 1 else None


class CriticTrainsGenerator(Rule):
    """Of two optimizers that step in turn: one's backward fills the other's gradients."""

    mistake = "the fake is not detached in the discriminator's step"

    ENOUGH = 3

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Since the last step: the optimizers that a backward reached and its way to the other.
        self.last: tuple[set[int], Pass] | None = None
        self.passes = 0  # backwards since the last step
        # By optimizers that step and that are reached, too: rounds, the place, what was seen.
        self.rounds: dict[tuple[int, int], list[Any]] = {}
        self.other: set[tuple[int, int]] = set()  # pairs that stepped together after one backward

    def backward(self, pass_: Pass) -> None:
        if len(self.run.optimizers) < 2 or pass_.how == "grad":
            return
        ids = {id(leaf) for leaf in pass_.leaves}
        reached = {
            key
            for key, watched in self.run.optimizers.items()
            if any(id(p) in ids for p in watched.params[:4])
        }
        self.passes += 1
        self.last = (reached, pass_) if len(reached) == 2 else None

    def stepping(self, watched: Watched) -> None:
        if len(self.run.optimizers) < 2:
            return
        key = next((k for k, w in self.run.optimizers.items() if w is watched), 0)
        last, self.last = self.last, None
        if last is None or self.passes != 1 or key not in last[0]:
            if last is None and self.passes == 0:  # a second step after the same backward
                self.other.add((key, 0))
            self.passes = 0
            return
        self.passes = 0
        reached, pass_ = last
        (other,) = reached - {key}
        entry = self.rounds.setdefault((key, other), [0, None, ""])
        entry[0] += 1
        if entry[0] == self.ENOUGH:
            entry[1:] = self._way(pass_, self.run.optimizers[key], self.run.optimizers[other])

    def finish(self) -> None:
        for (key, other), (rounds, place, seen) in self.rounds.items():
            both = (key, 0) in self.other or (other, 0) in self.other
            # Of the generator's own step it is the other way round, and meant.
            back = self.rounds.get((other, key), [0])[0]
            if rounds < self.ENOUGH or both or not back or not seen:
                continue
            self.find(
                place,
                f"{rounds} times {seen}",
                "give it fake.detach(): discriminator(fake.detach())",
                (key, other),
            )

    def _way(self, pass_: Pass, critic: Watched, maker: Watched) -> tuple[Any, str]:
        """Whether the critic is given both what the other made and what it did not, and where."""
        graph = recorded(pass_)
        first = next((p for p in critic.params if p.dim() >= 2), None)
        theirs = {id(p) for p in maker.params}
        uses = [
            i
            for i in range(len(graph.ops))
            if any(graph.leaf(i, a) is first for a in range(1, len(graph.inputs[i])))
        ]
        fakes, reals = [], 0
        for i in uses if first is not None else ():
            edge = graph.maker(i, 0)
            node = behind(graph.node(edge[0])) if edge is not None else None
            if node is not None and theirs & leaves_of(node).keys():
                fakes.append(i)
            else:
                reals += 1
        if not fakes or not reals:
            return None, ""
        count = sum(p.numel() for p in maker.params)
        return (
            self._line(graph, fakes[0]),
            f"the backward before the step of this {critic.kind} went on through what another "
            f"{maker.kind} trains: {count:,} numbers got gradients of a loss that is not theirs",
        )

    @staticmethod
    def _line(graph: Recorded, i: int) -> Place | None:
        """The line of the loss that is computed from the critic's output."""
        number, found = i, graph.place(i)
        for _ in range(64):
            uses = graph.consumers(number)
            if not uses:
                break
            number = uses[0][0]
            if graph.shape(number) == ():
                found = placed(graph.raw_place(number))
                break
        return found
