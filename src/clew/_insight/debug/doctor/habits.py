"""What is done again and again, or kept, to no effect: states, optimizers, seeds, first batches."""

from __future__ import annotations

import ast
import linecache
import re
import weakref
from difflib import get_close_matches
from itertools import groupby
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew._insight.debug.doctor.data import prints
from clew._insight.debug.doctor.rule import Rule, values
from clew._insight.debug.doctor.run import Batch, Call, Pass, Watched
from clew._insight.debug.doctor.source import parsed
from clew._insight.debug.holders import assignment, attribute_set
from clew._insight.debug.place import Place, placed

_IN_A_ROW = 4  # times that something must happen to be no accident
_MANY = 64  # of what is remembered


def _memory(t: Tensor) -> tuple[int, int]:
    return t._address(), t.numel()


class OwnState(Rule):
    mistake = "a model is given its own state"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By its first tensor, which a copied dict has, too: the number of steps and the line when
        # a state was made.
        self.made: dict[int, tuple[weakref.ref[Tensor], int, Place | None]] = {}
        # The same by its memory, which detach() and .data leave as it is.
        self.shared: dict[tuple[int, int], tuple[int, Place | None]] = {}
        self.times: dict[Any, set[int]] = {}  # by line, the rounds of loading

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "kept":
            first = self._first(subject)
            if first is not None:
                if len(self.made) > _MANY:
                    self.made = {k: e for k, e in self.made.items() if e[0]() is not None}
                self.made[id(first)] = (weakref.ref(first), self.run.round, place)
                self.shared[_memory(first)] = (self.run.round, place)
        elif what == "loaded":
            model, state = subject
            if self._is_own(model, state):
                self._loaded(model, state, place)

    @staticmethod
    def _first(state: Any) -> Tensor | None:
        return next((t for t in dict(state).values() if isinstance(t, Tensor)), None)

    @staticmethod
    def _is_own(model: Any, state: Any) -> bool:
        """Whether a state's tensors are the model's parameters themselves."""
        mine = {n: _memory(p) for n, p in model.named_parameters() if p.numel()}
        given = {n: t for n, t in dict(state).items() if n in mine and isinstance(t, Tensor)}
        return bool(given) and all(_memory(t) == mine[n] for n, t in given.items())

    def _loaded(self, model: Any, state: Any, place: Place | None) -> None:
        trained = self.run.optimized()
        if not any(id(p) in trained for p in model.parameters()):
            return
        first = self._first(state)
        ref, at, line = self.made.get(id(first), (None, -1, None))
        if first is not None and (ref is None or ref() is not first):
            at, line = self.shared.get(_memory(first), (self.run.round, None))
        steps = self.run.round - at
        rounds = self.times.setdefault(place and (place.file, place.line), set())
        rounds.add(self.run.round)
        name = type(model).__name__
        if steps:
            self.find(
                line,
                f"state_dict() gives the tensors that {name} goes on training: {steps} steps "
                "later they have changed with it, and loading them"
                + (f" at {place.short}" if place else "")
                + " changes nothing",
                "keep a copy: copy.deepcopy(model.state_dict())",
            )
        elif len(rounds) >= 2:
            self.find(
                place,
                f"{len(rounds)} times {name} was given a state that is made of its own tensors: "
                "the two models are one, and nothing changes",
                "make the other one a copy: copy.deepcopy(model)",
            )


class OptimizerAnew(Rule):
    mistake = "the optimizer is made anew for every step"

    def finish(self) -> None:
        made = [w for w in self.run.optimizers.values() if w.place is not None and not w.earlier]

        def line(w: Watched) -> Any:
            return w.place and (w.place.file, w.place.line, w.kind)

        for _, group in groupby(sorted(made, key=line), key=line):
            alike: dict[Any, list[Watched]] = {}
            for watched in group:
                alike.setdefault(tuple(id(p) for p in watched.params), []).append(watched)
            for same in alike.values():
                kept = [w for w in same if w.steps == 1 and self._remembers(w)]
                if len(kept) < _IN_A_ROW or len(kept) < len(same) - 1:
                    continue
                self.find(
                    same[0].place,
                    f"{len(same)} times a {same[0].kind} was made for the same "
                    f"{len(same[0].params)} parameters, and each stepped once: what it gathers "
                    "from step to step (momentum, squared gradients) is lost",
                    "make the optimizer once, before the loop",
                )

    @staticmethod
    def _remembers(watched: Watched) -> bool:
        """Whether an optimizer keeps tensors of its parameters' sizes. LBFGS gathers within a
        step."""
        sizes = {p.numel() for p in watched.params if p.numel() > 1}
        kept = [t for state in watched.optimizer.state.values() for t in state.values()]
        return watched.kind != "LBFGS" and any(
            isinstance(t, Tensor) and t.numel() in sizes for t in kept
        )


class ScheduleRunsOut(Rule):
    mistake = "the schedule has lowered the learning rate to nothing"

    SMALL = 1e-6  # of the largest learning rate
    ENOUGH = 8  # steps

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By optimizer: steps when it was looked at last, the largest rate, all steps and those
        # with next to none since; the schedule and its line.
        self.seen: dict[int, list[Any]] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        optimizer = getattr(subject, "optimizer", None)
        if what != "schedule" or optimizer is None:
            return
        watched = self.run.watched(optimizer)
        seen = self.seen.setdefault(id(watched), [watched, 0, 0.0, 0, 0, subject, place])
        rate = max((float(g["lr"]) for g in optimizer.param_groups), default=0.0)
        steps, seen[1] = watched.steps - seen[1], watched.steps
        seen[3] += steps
        if rate > seen[2]:
            seen[2], seen[4] = rate, 0
        seen[4] = seen[4] + steps if rate < self.SMALL * seen[2] else 0

    def finish(self) -> None:
        for watched, _, largest, steps, small, schedule, place in self.seen.values():
            if small < self.ENOUGH or small < steps / 2:
                continue
            rate = max(float(g["lr"]) for g in watched.optimizer.param_groups)
            self.find(
                place,
                f"the last {small} of {steps} steps had learning rates below {self.SMALL:g} of "
                f"the largest, {largest:g}; now it is {rate:.3g}: nothing is learned any more",
                f"step {type(schedule).__name__} once for each epoch, not for each batch, or give "
                "it the number of steps that there are",
                id(watched),
            )


class SameBatch(Rule):
    mistake = "every step gets the same first batch"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[int, list[Any]] = {}  # by loader: itself, its first batch, times, backwards

    def batch(self, batch: Batch) -> None:
        key = id(batch.loader)
        seen = self.seen.setdefault(key, [batch.loader, None, 0, -1])
        if batch.number or seen[2] < 0:
            seen[2] = -1  # it is gone through
            return
        mark = prints(batch)
        if not mark or seen[3] == self.run.backwards:
            return
        seen[2] = seen[2] + 1 if mark == seen[1] else 1
        seen[1], seen[3] = mark, self.run.backwards
        place = placed(batch.read_at)
        if seen[2] >= _IN_A_ROW and batch.of > 1 and place and "iter(" in place.text:
            self.find(
                place,
                f"{seen[2]} times in a row the loader was begun anew, and its first batch was the "
                f"same, bit by bit; the other {batch.of - 1} batches are never read",
                "write for batch in loader: ..., or make the iterator once, before the loop",
                key,
            )

    def finish(self) -> None:
        for key, seen in self.seen.items():
            if seen[2] < 0:
                self.findings.pop(key, None)


class Reseeded(Rule):
    mistake = "the same random numbers are drawn in every step"

    OWN = 4  # steps in a row that draw from a generator of their own

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # By line: seed, the generator's state after it and at the backward that followed, backwards
        # so far, times in a row.
        self.seen: dict[Any, list[Any]] = {}
        self.state: Any = None  # at the last backward
        # By line that seeds a generator of its own: seed, the generator and its state then,
        # backwards so far, times in a row.
        self.own: dict[Any, list[Any]] = {}

    def backward(self, pass_: Pass) -> None:
        if self.seen:
            self.state = values(clew.get_rng_state()).copy()
        for entry in self.own.values():
            # What has drawn nothing by now is for something else.
            if entry[1] is not None and entry[3] == self.run.backwards - 1:
                drawn = not np.array_equal(values(entry[1].get_state()), entry[2])
                entry[4] = entry[4] + 1 if drawn else 0
            entry[1] = None

    def _own(self, seed: int, generator: Any, place: Place) -> None:
        at = self.run.backwards
        key = (place.file, place.line)
        last = self.own.get(key)
        kept = last is not None and last[0] == seed and last[3] == at - 1
        times = last[4] if last is not None and kept else 0
        self.own[key] = [seed, generator, values(generator.get_state()).copy(), at, times]
        if times >= self.OWN and self._is_noise(place):
            self.find(
                place,
                f"{times} steps in a row made a generator begin anew with manual_seed({seed}) and "
                "drew from it: they get the same numbers",
                "make and seed the generator once, before the loop",
            )

    @staticmethod
    def _is_noise(place: Place) -> bool:
        """Whether a number is drawn for each sample, as the lines that follow say. A matrix, which
        is as large as samples are, may be meant to stay as it is."""
        text = "".join(linecache.getlines(place.file))
        for node in ast.walk(parsed(place.file)):
            if not isinstance(node, ast.Call) or not place.line <= node.lineno < place.line + 30:
                continue
            if any(k.arg == "generator" for k in node.keywords):
                drawn = ast.get_source_segment(text, node) or ""
                if re.search(r"\.shape(?!\[)|\.shape\[[0:]|\.size\(0?\)|len\(", drawn):
                    return True
        return False

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "reseeded own" and place is not None:
            seed, generator = subject
            self._own(seed, generator, place)
        if what != "reseeded" or place is None:
            return
        seed, after = subject
        state, self.state = self.state, None
        at = self.run.backwards
        key = (place.file, place.line)
        last = self.seen.get(key)
        self.seen[key] = [seed, after, state, at, 1]
        if last is None or last[0] != seed or last[3] != at - 1 or state is None:
            return
        # What is drawn in fork_rng() leaves the state of the program as it was: it goes on.
        drawn = not np.array_equal(state, last[1])
        times = last[4] + 1 if drawn and (last[4] == 1 or np.array_equal(state, last[2])) else 1
        self.seen[key][4] = times
        if times >= _IN_A_ROW:
            self.find(
                place,
                f"{times} steps in a row began anew with manual_seed({seed}) and drew from it: "
                "dropout, noise and shuffling are the same in each",
                "seed once, before the loop; draw numbers that are to be the same once, too",
            )


class FrozenModule(Rule):
    mistake = "requires_grad is set on a module, which does nothing"

    def finish(self) -> None:
        if not any(w.steps for w in self.run.optimizers.values()):
            return
        for model in self.run.models:
            for name, module in model.named_modules():
                if vars(module).get("requires_grad") is not False:
                    continue
                count = sum(p.requires_grad for p in module.parameters())
                if count:
                    self.find(
                        self._line(model),
                        f"{name or type(module).__name__}.requires_grad is False, and {count} of "
                        "its parameters still require grad: a module has no such switch",
                        "call module.requires_grad_(False), which sets it on the parameters",
                        id(module),
                    )

    def _line(self, model: Any) -> Place | None:
        for part in model.modules():
            place = assignment(type(part), "requires_grad")
            if place is not None:
                return place
        made = [w.place for w in self.run.optimizers.values() if w.place is not None]
        places = [attribute_set(p.file, "requires_grad") for p in made]
        return next((p for p in places if p is not None), made[0] if made else None)


class Misspelt(Rule):
    mistake = "an attribute of a parameter is misspelt"

    def finish(self) -> None:
        if not any(w.steps for w in self.run.optimizers.values()):
            return
        for model in self.run.models:
            told = False
            for name, p in model.named_parameters():
                own = vars(p) if hasattr(p, "__dict__") else {}
                wrong = next((k for k, v in own.items() if self._is_meant(k, v)), None)
                if wrong is None or not p.requires_grad or told:
                    continue
                told = True  # one tells of all
                made = [w.place for w in self.run.optimizers.values() if w.place is not None]
                places = [attribute_set(at.file, wrong, loops=True) for at in made]
                self.find(
                    next((at for at in places if at is not None), made[0] if made else None),
                    f"{name}.{wrong} is {own[wrong]}, an attribute that nothing reads; "
                    f"{name}.requires_grad is {p.requires_grad}",
                    "write requires_grad, or call module.requires_grad_(False)",
                    wrong,
                )

    @staticmethod
    def _is_meant(name: str, value: Any) -> bool:
        return value is False and bool(get_close_matches(name, ["requires_grad"], cutoff=0.85))


class LooseTensor(Rule):
    mistake = "a tensor that a module is to learn is no Parameter"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.fed: dict[int, list[Any]] = {}  # leaves: themselves, passes, the first values

    def backward(self, pass_: Pass) -> None:
        if pass_.how == "grad" or not self.run.optimizers:
            return
        from clew.nn import Parameter

        known = self.run.optimized()
        for leaf in pass_.leaves:
            if not isinstance(leaf, Parameter) and id(leaf) not in known:
                entry = self.fed.setdefault(id(leaf), [leaf, 0, values(leaf).copy()])
                entry[1] += 1
                if len(self.fed) > _MANY:  # inputs, which come and go
                    self.fed = {k: e for k, e in self.fed.items() if e[1] > 1}

    def finish(self) -> None:
        known = self.run.optimized()
        for leaf, passes, first in self.fed.values():
            if passes < _IN_A_ROW - 1 or id(leaf) in known:
                continue
            if not np.array_equal(values(leaf), first, equal_nan=True):
                continue  # the program changes it itself
            for model in self.run.models:
                for name, module in model.named_modules():
                    held = [k for k, v in vars(module).items() if v is leaf]
                    if held:
                        self._tell(module, f"{name}.{held[0]}".lstrip("."), held[0], leaf, passes)

    def _tell(self, module: Any, path: str, name: str, leaf: Tensor, passes: int) -> None:
        self.find(
            assignment(type(module), name),
            f"{path}, of shape {tuple(leaf.shape)}, requires grad and got a gradient in "
            f"{passes} steps, and nothing changed it: parameters() gives Parameters alone, so that "
            "no optimizer has it",
            f"write self.{name} = nn.Parameter(...)",
            id(leaf),
        )


class ScheduleInOtherUnit(Rule):
    """Of schedules that are told how long they are: as many epochs as there are, while they step
    for every batch, or as many batches, while they step for every epoch."""

    mistake = "the schedule counts in another unit than it steps in"

    FEW = 3  # epochs, and batches of one
    LENGTHS = {  # noqa: RUF012 - what a schedule's length is called
        "CosineAnnealingLR": "T_max",
        "OneCycleLR": "total_steps",
        "PolynomialLR": "total_iters",
        "LinearLR": "total_iters",
    }

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Schedules: itself, how often it stepped, where.
        self.schedules: dict[int, list[Any]] = {}
        # Loaders: itself, how often it was gone through, its length.
        self.loaders: dict[int, list[Any]] = {}

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "schedule" and type(subject).__name__ in self.LENGTHS:
            self.schedules.setdefault(id(subject), [subject, 0, place])[1] += 1

    def batch(self, batch: Batch) -> None:
        if batch.number or not hasattr(batch.loader.dataset, "__len__"):
            return
        seen = self.loaders.setdefault(id(batch.loader), [batch.loader, 0, batch.of])
        seen[1] += 1

    def finish(self) -> None:
        for schedule, steps, place in self.schedules.values():
            kind = type(schedule).__name__
            told = getattr(schedule, self.LENGTHS[kind], None)
            watched = self.run.watched(schedule.optimizer)
            for _, epochs, batches in self.loaders.values():
                if min(epochs, batches) < self.FEW or watched.steps != epochs * batches:
                    continue  # it is not what was trained with, or not to the end
                # Others than the cosine, which rises again, stay at their end: a short warm-up.
                if kind == "CosineAnnealingLR" and (steps, told) == (watched.steps, epochs):
                    self.find(
                        place,
                        f"{kind} was told {told}, the number of epochs, and stepped {steps} times, "
                        f"once for each of the {batches} batches of {epochs} epochs: the learning "
                        f"rate falls to its end and rises again {batches / 2:g} times",
                        f"step it once for each epoch, or give it {told} * len(loader)",
                        id(schedule),
                    )
                elif (steps, told) == (epochs, watched.steps):
                    self.find(
                        place,
                        f"{kind} was told {told}, the number of batches in {epochs} epochs, and "
                        f"stepped {steps} times, once for each epoch: it comes no further than "
                        f"1/{batches} of its way",
                        "step it after each batch, or give it the number of epochs",
                        id(schedule),
                    )


class AverageOfItself(Rule):
    """A moving average of weights whose place in memory is the weights' own."""

    mistake = "a moving average is the weights themselves"
    operations = few = ("add", "lerp")

    def operation(self, call: Call) -> None:
        x, y = call.inputs[:2]
        if not isinstance(y, Tensor) or x.dim() == 0 or x.shape != y.shape:
            return
        if not x._address() == y._address() == call.outputs[0]._address():
            return
        # Decay by hand adds a parameter to itself, too, but does not shrink it before.
        text = call.place.text if call.place else ""
        if call.name == "add" and not ("mul_(" in text and "add_(" in text):
            return
        if not any(_memory(p) == _memory(x) for p in self.run.optimized_tensors()):
            return
        self.find(
            call.place,
            f"the average, of shape {tuple(x.shape)}, lies in the same memory as the parameter "
            "that it is made of: there is no average, and what is written changes the weights",
            "start it from a copy: p.detach().clone(), or copy.deepcopy(model)",
        )
