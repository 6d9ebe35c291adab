"""Training and evaluation mode of modules that behave differently in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew import _C
from clew._insight.debug.doctor.finding import made
from clew._insight.debug.doctor.nodes import LOSSES
from clew._insight.debug.doctor.rule import Rule, some, values
from clew._insight.debug.doctor.run import Call, Pass, Watched
from clew._insight.debug.place import Place, called_from_outside

# What runs in training mode alone.
# What a result is judged by.
JUDGES = ("argmax", "max", "topk", *LOSSES)
BATCH_NORM = "nn.functional.batch_norm"
DROPOUT = "_masked_dropout"
FUNCTIONAL = "dropout()"


def trains(call: Call) -> bool:
    """Whether batch normalisation used the batch's statistics and wrote the running ones."""
    running = call.inputs[1] if len(call.inputs) > 1 else None
    if running is None:
        return False
    # update_bn() gathers statistics on purpose, and sets momentum to None meanwhile.
    for model in call.run.models:
        for module in model.modules():
            if getattr(module, "running_mean", None) is running:
                return bool(module.training and module.momentum is not None)
    return False


def _moody(model: Any) -> list[Any]:
    """The modules of a model whose mode matters."""
    from clew.nn.modules.batchnorm import _BatchNorm
    from clew.nn.modules.dropout import _DropoutNd

    def learns(module: Any) -> bool:
        return any(p.requires_grad for p in module.parameters())

    # A frozen part is in evaluation mode on purpose. Dropout belongs to the part it stands in.
    return [
        m
        for part in model.modules()
        for m in (part.children() if part is not model else (model, *part.children()))
        if (isinstance(m, _BatchNorm) and m.track_running_stats and (learns(m) or not m.affine))
        or (isinstance(m, _DropoutNd) and m.p > 0 and learns(part))
    ]


def part_at(model: Any, path: str) -> Any:
    """The part of a model that a path leads to."""
    for name in path.split("."):
        model = model._modules.get(name) if model is not None else None
    return model


class EvaluatedInTrainingMode(Rule):
    mistake = "the model is evaluated in training mode"
    operations = (BATCH_NORM, DROPOUT, *JUDGES)

    DRAWS = 3  # of one input that are no accident

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.pending: list[Any] = []  # of the pass since the last backward
        self.judged = 0  # argmax and the like since then
        self.lonely = 0  # passes that were judged and not trained on
        self.place: Place | None = None
        self.kind = ""
        # Passes that were not recorded: the mark that their values carry, the line that called
        # the model, the module's kind, the steps before, and the models it may belong to.
        self.unrecorded: dict[Any, tuple[Any, Place | None, str, int, list[Any]]] = {}
        # Optimizers whose parameters a backward reached without those of others, and with them.
        self.alone: set[int] = set()
        self.together: set[int] = set()
        # How often these modules got the same values between two steps.
        self.same: dict[Any, tuple[int, int, int]] = {}
        self.used: set[Any] = set()  # marks that were seen in what was trained on
        self.drawn: set[int] = set()  # rounds in which results were drawn several times
        # Copies of the parameters of models that ran in this mode: a teacher's do not change.
        self.first: dict[int, Any] = {}

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if call.name in JUDGES:
            if x.grad_fn is not None and self.pending and call.place:
                last = self.pending[-1]
                if x.grad_fn._sequence_nr() > last[2]:
                    self.judged += 1
                    self.place = last[0]
                    self.kind = last[1]
            elif self.pending and x.grad_fn is None and self._is_detached(x):
                self.judged += 1
                self.place, self.kind = self.pending[-1][:2]
            return
        if self.run.round == 0 or (call.name == BATCH_NORM and not trains(call)):
            return
        kind = "Dropout" if call.name == DROPOUT else "BatchNorm"
        module = call.instruction[3] if call.instruction else None
        if module and ("Dropout" in module or "Norm" in module):
            kind = module
        if any(t is not None and t.requires_grad for t in call.outputs):
            if self.judged and self.pending and self._new_pass(call):
                self._count()
            number = call.outputs[0].grad_fn
            self.pending.append(
                (call.place, kind, number._sequence_nr() if number else 0, call.key)
            )
            return
        if self.run.last_root == 0:
            return
        cut = _C._cut_of(call.outputs[0])
        if cut is None or self._on_purpose(call):
            return
        self._repeats(call)
        if call.key not in self.unrecorded:
            place = called_from_outside() or call.place
            parts = self._parts(call)
            if call.name == DROPOUT and parts and not any(p.training for p in parts):
                place, kind = call.place, FUNCTIONAL
            inside = [m for m in self.run.models if any(p in m.modules() for p in parts)]
            self.unrecorded[call.key] = (self._mark(cut), place, kind, self.run.round, inside)
            self.first |= {
                id(p): some(p).copy()
                for m in inside
                for p in m.parameters()
                if id(p) not in self.first
            }

    @staticmethod
    def _is_detached(x: Any) -> bool:
        """Whether a value was taken out of a graph as it is."""
        cut = _C._cut_of(x)
        return cut is not None and cut[0] in ("detach", "data")

    def _parts(self, call: Call) -> list[Any]:
        """The modules that may have called it: those that its path leads to."""
        path = call.instruction[2] if call.instruction else None
        kind = call.instruction[3] if call.instruction else None
        found = [part_at(m, path) if path else m for m in self.run.models]
        return [m for m in found if m is not None and type(m).__name__ == kind]

    def _on_purpose(self, call: Call) -> bool:
        """Whether a part was switched to training mode in a model that is in evaluation mode, or
        dropout is told to be in it whatever the mode is: Monte Carlo dropout."""
        parts = self._parts(call)
        inside = [m for m in self.run.models if any(p in m.modules() for p in parts)]
        if not inside or any(m.training for m in inside):
            return False
        text = call.place.text if call.place else ""
        return all(p.training for p in parts) or "training=True" in text

    def _repeats(self, call: Call) -> None:
        """Counts passes over the same values: who draws several results for one input does so
        on purpose."""
        x = values(call.inputs[0])
        mark = hash(x.tobytes()) if x.size else 0
        at, known, times = self.same.get(call.key, (-1, 0, 0))
        again = at == self.run.round and known == mark
        self.same[call.key] = (self.run.round, mark, times + 1 if again else 1)
        if self.same[call.key][2] >= self.DRAWS:
            self.drawn.add(self.run.round)

    @staticmethod
    def _mark(cut: Any) -> Any:
        return (cut[0], id(cut[2][0]), *cut[2][1:3])

    def _new_pass(self, call: Call) -> bool:
        return any(key == call.key for *_, key in self.pending)

    def _count(self, last: bool = False) -> None:
        self.lonely += 1
        self.judged = 0
        self.pending = []
        if self.lonely >= 2 or last:
            self.find(
                self.place,
                f"the last {self.lonely} forward passes were judged and not trained on, with "
                f"{self.kind} in training mode: " + self._effect(self.kind),
                "call model.eval() before evaluating and compute under no_grad()",
                "judged",
            )

    @staticmethod
    def _effect(kind: str) -> str:
        if "Dropout" in kind:
            return "it zeroes values at random, so that results are worse and differ each time"
        return (
            "it normalises by the batch's statistics, and changes the running ones that "
            "evaluation is to use"
        )

    def backward(self, pass_: Pass) -> None:
        self.pending = []
        self.judged = 0
        self.lonely = 0
        reached = self._optimizers(pass_)
        if len(reached) == 1:
            self.alone |= reached
        else:
            self.together |= reached
        # What a generator or a teacher made is trained on: no evaluation.
        self.used |= {self._mark(cut) for cut in pass_.cuts}

    def _optimizers(self, pass_: Pass) -> set[int]:
        ids = {id(leaf) for leaf in pass_.leaves}
        return {
            key
            for key, watched in self.run.optimizers.items()
            if any(id(p) in ids for p in watched.params)
        }

    def _generators(self) -> set[int]:
        """The parameters of what is only trained through another model that is trained alone, too.
        A GAN's samples are drawn in training mode as often as not."""
        if not self.alone:
            return set()
        return {
            id(p)
            for key in self.together - self.alone
            if key in self.run.optimizers
            for p in self.run.optimizers[key].params
        }

    def finish(self) -> None:
        generators = self._generators()
        lines: dict[Any, tuple[Place | None, dict[str, int]]] = {}
        for mark, place, kind, steps, inside in self.unrecorded.values():
            drawn = any(id(p) in generators for m in inside for p in m.parameters())
            if mark not in self.used and steps not in self.drawn and not drawn:
                line = place and (place.file, place.line)
                lines.setdefault(line, (place, {}))[1].setdefault(kind, steps)
            elif mark in self.used:  # modules of the same kind may lie there in several models
                for model in filter(self._is_teacher, inside):
                    self._teaches(place, kind, steps, model)
        for place, kinds in lines.values():
            if FUNCTIONAL in kinds:
                self.find(
                    place,
                    f"after {kinds[FUNCTIONAL]} steps, dropout() zeroes values at random although "
                    "the module that calls it is in evaluation mode: a function does not know of "
                    "eval()",
                    "give it the mode: dropout(x, p, training=self.training), or use nn.Dropout",
                )
                continue
            effects = "; ".join(dict.fromkeys(self._effect(kind) for kind in kinds))
            self.find(
                place,
                f"after {min(kinds.values())} steps, {' and '.join(kinds)} "
                f"{'runs' if len(kinds) == 1 else 'run'} in training mode while nothing is "
                f"recorded: {effects}",
                "call model.eval() before evaluating, and model.train() before training goes on",
            )
        if self.judged and self.pending and self.run.round >= 2:
            self._count(last=True)

    def _is_teacher(self, model: Any) -> bool:
        """Whether a model as a whole is in training mode, in no optimizer and does not change."""
        known = self.run.optimized()
        params = list(model.parameters())
        return (
            model.training
            and bool(params)
            and all(
                id(p) not in known
                and id(p) in self.first
                and np.array_equal(some(p), self.first[id(p)])
                for p in params
            )
        )

    def _teaches(self, place: Place | None, kind: str, steps: int, model: Any) -> None:
        self.findings.setdefault(
            ("teacher", place and (place.file, place.line)),
            made(
                "a teacher runs in training mode",
                place,
                f"{type(model).__name__} is in no optimizer and none of its numbers has changed, "
                f"but after {steps} steps {kind} still runs in training mode in it, and what it "
                f"gives is trained on: {self._effect(kind)}",
                "call teacher.eval() once, before the loop",
            ),
        )


class TrainedInEvaluationMode(Rule):
    mistake = "training goes on in evaluation mode"

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.trained: set[int] = set()  # modules that a step was taken with in training mode
        self.since: dict[int, int] = {}
        self.eval_at: Place | None = None

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "eval":
            self.eval_at = place

    def stepped(self, watched: Watched) -> None:
        for model in self.run.models:
            moody = _moody(model)
            mine = {id(p) for p in model.parameters() if p.requires_grad and p.grad is not None}
            if not moody or not any(id(p) in mine for p in watched.params):
                continue
            active = [m for m in moody if m.training]
            if active:
                self.trained |= {id(m) for m in active}
                self.since.pop(id(model), None)
                continue
            switched = [m for m in moody if id(m) in self.trained]
            if not switched and not (self.eval_at and model.training is False):
                continue  # frozen on purpose
            if not switched and any(m.training for m in model.modules()):
                continue
            self.since[id(model)] = self.since.get(id(model), 0) + 1
            if self.since[id(model)] >= 2:
                kinds = sorted({type(m).__name__ for m in moody})
                before = (
                    "they were in training mode before"
                    if switched
                    else "no step was taken in training mode"
                )
                self.find(
                    self.eval_at or watched.step_place,
                    f"{self.since[id(model)]} steps in a row were taken with "
                    f"{', '.join(kinds)} in evaluation mode; {before}"
                    + (f"; step() is at {watched.step_place.short}" if watched.step_place else ""),
                    "call model.train() after each evaluation, before training goes on"
                    if switched
                    else "call model.train() before training",
                    id(model),
                )


class BatchOfOne(Rule):
    mistake = "batch normalisation over a batch of one"
    operations = (BATCH_NORM,)

    MANY = 16  # numbers of a sample that tell it from others
    ALIKE = 0.95  # their correlation
    SHORT = 64  # a signal of which two may be alike by chance
    CHANCE = 0.25  # of its pairs, so many of them

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[int]] = {}
        self.before: dict[Any, Any] = {}  # by line: numbers of the sample before
        self.alone = False  # whether it is one picture, which the model is made for
        self.pairs: dict[Any, list[bool]] = {}  # of short signals, by line: whether alike
        self.told: dict[Any, tuple[Place | None, str]] = {}

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if (
            x.dim() < 2
            or not trains(call)
            or not any(t is not None and t.requires_grad for t in call.outputs)
        ):
            return
        counts = self.seen.setdefault(call.key, [0, 0])
        counts[x.shape[0] == 1] += 1
        if x.shape[0] == 1:
            again = self._is_again(call.key, some(x))
            if x.dim() == 3 and x.shape[2] <= self.SHORT:
                self.pairs.setdefault(call.key, []).append(again)
            else:
                self.alone = self.alone or again
        if counts[1] >= 2:
            self.told[call.key] = (
                call.place,
                f"{counts[1]} of {sum(counts)} batches hold one sample, of shape "
                f"{tuple(x.shape)}: its own mean and variance are taken away from it, and what the "
                "model learns does not fit the running statistics",
            )

    def finish(self) -> None:
        again = any(sum(pairs) >= self.CHANCE * len(pairs) for pairs in self.pairs.values())
        for place, seen in () if self.alone or again else self.told.values():
            change = "use larger batches (drop_last=True leaves a last one of 1 out), or GroupNorm"
            self.find(place, seen, change)

    def _is_again(self, key: Any, now: Any) -> bool:
        """Whether a sample is nearly that of the call before."""
        before, self.before[key] = self.before.get(key), now.copy()
        if before is None or before.shape != now.shape or now.size < self.MANY:
            return False
        with np.errstate(all="ignore"):
            return bool(np.corrcoef(before, now)[0, 1] > self.ALIKE)


class FrozenInTrainingMode(Rule):
    """Of models that are frozen as a whole: what they give has no history, and is an input or a
    target of what is trained beside them."""

    mistake = "a frozen model runs in training mode"
    operations = (DROPOUT,)

    ENOUGH = 4  # steps beside which it ran

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        # Models: themselves, the rounds, where, their numbers as they were.
        self.seen: dict[int, list[Any]] = {}
        self.switched: set[int] = set()  # those that train() was called of: it is meant

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        if what == "train":
            self.switched.add(id(subject))

    def operation(self, call: Call) -> None:
        # A module is known by its path in the model that was called.
        path, kind = call.instruction[2:4] if call.instruction else (None, None)
        if self.run.round == 0 or call.outputs[0].requires_grad or "Dropout" not in (kind or ""):
            return
        if _C._cut_of(call.outputs[0]) is not None:
            return  # a parameter that requires grad came before: it is another model
        found = []
        for model in self.run.models:
            part = part_at(model, path) if path else model
            if part is not None and type(part).__name__ == kind and part.training:
                if self._is_frozen(model):
                    found.append(model)
        if len(found) != 1:
            return  # of several with the same parts it is not known which ran
        model = found[0]
        seen = self.seen.setdefault(
            id(model), [model, set(), called_from_outside() or call.place, None]
        )
        seen[1].add(self.run.round)
        if seen[3] is None:
            seen[3] = [some(p).copy() for p in model.parameters()]

    @staticmethod
    def _is_frozen(model: Any) -> bool:
        params = list(model.parameters())
        return model.training and bool(params) and not any(p.requires_grad for p in params)

    def finish(self) -> None:
        for model, rounds, place, before in self.seen.values():
            if len(rounds) < self.ENOUGH or id(model) in self.switched:
                continue
            # An average of what is trained changes; its noise may be meant.
            same = all(
                np.array_equal(some(p), old, equal_nan=True)
                for p, old in zip(model.parameters(), before)
            )
            if not same or not self._is_frozen(model):
                continue
            self.find(
                place,
                f"no parameter of {type(model).__name__} requires grad and none has changed, but "
                f"beside {len(rounds)} steps its dropout zeroed values at random: what is trained "
                "beside it is given other answers each time",
                "call eval() of it once, before the loop",
                id(model),
            )
