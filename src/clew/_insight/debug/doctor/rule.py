"""What a rule is: it hears of what happens and says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clew._insight.debug.doctor.finding import Finding, made
from clew._insight.debug.place import Place
from clew._insight.graph.measured import elements as values

if TYPE_CHECKING:
    from clew import Tensor
    from clew._insight.debug.doctor.run import Batch, Call, Pass, Run, Watched

__all__ = ["CALLS", "RULES", "Rule"]

RULES: list[type[Rule]] = []

_ENOUGH = 1 << 14  # elements to measure by
_SMALL, _LARGE = 1e-20, 1e30  # squares that float32 adds up well
CALLS = 8  # of one line between two backwards that are enough to judge by


class Rule:
    """Looks for one mistake. Subclasses hear of the events they define a method for.

    Attributes:
        mistake: what it is called in the report.
        operations: names of the operations that operation() is told of.
        few: those of them of which a line's first calls between two backwards are enough, as
            long as they are alike (`Observation`): where what the rule asks of a call is the same
            for all that are alike, or it asks a few of them itself. What it asks only after
            something else has happened it asks of all calls, by `run.closely()`.
    """

    mistake: ClassVar[str] = ""
    operations: ClassVar[tuple[str, ...]] = ()
    few: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        if cls.mistake:
            RULES.append(cls)

    def __init__(self, run: Run) -> None:
        self.run = run
        self.findings: dict[Any, Finding] = {}

    def find(self, place: Place | None, evidence: str, change: str, key: Any = None) -> None:
        """Notes a finding; one for each line, or for each key."""
        key = key if key is not None else place and (place.file, place.line)
        if key not in self.findings:
            self.findings[key] = made(self.mistake, place, evidence, change)

    # Events -----------------------------------------------------------------------------------

    def operation(self, call: Call) -> None:
        """An operation of `operations` ran, in a round that is looked at."""

    def backward(self, pass_: Pass) -> None:
        """Backward is about to run, in a round that is looked at."""

    def stepping(self, watched: Watched) -> None:
        """An optimizer is about to step."""

    def stepped(self, watched: Watched) -> None:
        """It has."""

    def cleared(self, owner: Any, place: Place | None) -> None:
        """zero_grad() was called, of an optimizer or a module."""

    def batch(self, batch: Batch) -> None:
        """A loader gave a batch."""

    def called(self, what: str, subject: Any, place: Place | None) -> None:
        """Something that happens rarely: "eval", "train", "schedule", "clip", "scale", "unscale",
        "optimizer", "scheduler"; "refused" of a loss that raised an error, which is the subject;
        "seeded" of a generator that is not clew's, whose name is the subject; "reseeded" of clew's,
        with the seed and its state then; "reseeded own" of another one of clew's, with the
        seed and itself; "kept" of a state_dict() and "loaded" of a model and the state that it is
        to take; "drawn" of what a distribution's sample() gave and
        "scored" of what log_prob() was asked for, and its answer."""

    def finish(self) -> None:
        """The program, or the part of it that is watched, is over."""


def some(t: Tensor) -> Any:
    """Elements of a tensor, from all over it, that are enough to measure by."""
    flat = values(t).reshape(-1)
    return flat[:: -(-flat.size // _ENOUGH)] if flat.size else flat


def size_of(array: Any) -> float:
    """The norm of all elements."""
    flat = np.asarray(array).reshape(-1)
    if flat.dtype == np.float32:
        with np.errstate(all="ignore"):
            square = float(np.dot(flat, flat))
        if _SMALL < square < _LARGE:  # else it may have been rounded away, or be too large
            return square**0.5
    return float(np.sqrt(np.square(np.abs(flat), dtype=np.float64).sum())) if flat.size else 0.0
