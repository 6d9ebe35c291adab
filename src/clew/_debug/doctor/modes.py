"""Training and evaluation mode of modules that behave differently in them."""

from __future__ import annotations

from typing import Any

from clew._debug.doctor.rule import Rule
from clew._debug.doctor.run import Call, Pass, Watched
from clew._debug.place import Place

# What runs in training mode alone.
BATCH_NORM = "nn.functional.batch_norm"
DROPOUT = "_masked_dropout"


def trains(call: Call) -> bool:
    """Whether batch normalisation used the batch's statistics and wrote the running ones."""
    running = call.inputs[1] if len(call.inputs) > 1 else None
    if running is None:
        return False
    for model in call.run.models:
        for module in model.modules():
            if getattr(module, "running_mean", None) is running:
                return bool(module.training)
    return False


def _moody(model: Any) -> list[Any]:
    """The modules of a model whose mode matters."""
    from clew.nn.modules.batchnorm import _BatchNorm
    from clew.nn.modules.dropout import _DropoutNd

    return [
        m
        for m in model.modules()
        if (isinstance(m, _BatchNorm) and m.track_running_stats)
        or (isinstance(m, _DropoutNd) and m.p > 0)
    ]


class EvaluatedInTrainingMode(Rule):
    mistake = "the model is evaluated in training mode"
    operations = (BATCH_NORM, DROPOUT, "argmax", "max", "topk")

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.pending: list[Any] = []  # of the pass since the last backward
        self.judged = 0  # argmax and the like since then
        self.lonely = 0  # passes that were judged and not trained on
        self.place: Place | None = None
        self.kind = ""

    def operation(self, call: Call) -> None:
        x = call.inputs[0]
        if call.name in ("argmax", "max", "topk"):
            if x.grad_fn is not None and self.pending and call.place:
                last = self.pending[-1]
                if x.grad_fn._sequence_nr() > last[2]:
                    self.judged += 1
                    self.place = last[0]
                    self.kind = last[1]
            return
        if self.run.round == 0 or (call.name == BATCH_NORM and not trains(call)):
            return
        kind = "Dropout" if call.name == DROPOUT else "BatchNorm"
        module = call.instruction[3] if call.instruction else None
        if module and ("Dropout" in module or "Norm" in module):
            kind = module
        if not self.unrecorded(call):
            if self.judged and self.pending and self._new_pass(call):
                self._count()
            number = call.outputs[0].grad_fn
            self.pending.append(
                (call.place, kind, number._sequence_nr() if number else 0, call.key)
            )
            return
        if self.run.last_root == 0:
            return
        self.find(
            call.place,
            f"after {self.run.round} steps, {kind} runs in training mode while nothing is "
            "recorded: " + self._effect(kind),
            "call model.eval() before evaluating, and model.train() before training goes on",
        )

    @staticmethod
    def unrecorded(call: Call) -> bool:
        return not any(t is not None and t.requires_grad for t in call.outputs)

    def _new_pass(self, call: Call) -> bool:
        return any(key == call.key for *_, key in self.pending)

    def _count(self) -> None:
        self.lonely += 1
        self.judged = 0
        self.pending = []
        if self.lonely >= 2:
            self.find(
                self.place,
                f"{self.lonely} forward passes in a row were judged (argmax) and not trained on, "
                f"with {self.kind} in training mode: " + self._effect(self.kind),
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

    def finish(self) -> None:
        if self.judged and self.pending:
            self._count()


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
        if not self.run.looking and self.eval_at is None:
            return
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
                    "call model.train() after each evaluation, before training goes on",
                    id(model),
                )


class BatchOfOne(Rule):
    mistake = "batch normalisation over a batch of one"
    operations = (BATCH_NORM,)

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self.seen: dict[Any, list[int]] = {}

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
        if counts[1] >= 2:
            self.find(
                call.place,
                f"{counts[1]} of {sum(counts)} batches hold one sample, of shape "
                f"{tuple(x.shape)}: its own mean and variance are taken away from it, and what the "
                "model learns does not fit the running statistics",
                "use larger batches (drop_last=True leaves a last one of 1 out), or GroupNorm",
            )
