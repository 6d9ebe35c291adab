"""What is known of the program that is watched, and the events that rules hear of."""

from __future__ import annotations

import opcode
import time
from functools import cached_property
from types import CodeType
from typing import Any

import clew
from clew import _C, Tensor
from clew._base.origins import origin_of, program_line
from clew._insight.debug.observing import Observation
from clew._insight.debug.place import Place, placed

__all__ = ["Batch", "Call", "Pass", "Run", "Watched"]


# Of code objects, which are kept so that their numbers stay theirs.
_texts: dict[int, tuple[CodeType, bytes]] = {}
_PRECALL = opcode.opmap.get("PRECALL")


def call_key(place: tuple[Any, ...]) -> tuple[int, int]:
    """What is equal for calls by one expression. Python 3.11 makes them in one of two instructions,
    depending on how often the expression ran."""
    code, offset = place[0], place[1]
    known = _texts.get(id(code))
    if known is None:
        known = _texts[id(code)] = (code, code.co_code)
    if _PRECALL is not None and offset < len(known[1]) and known[1][offset] == _PRECALL:
        offset += 4
    return id(code), offset


class Call:
    """An operation that has run: its name, what went in and what came out."""

    def __init__(self, run: Run, name: str, given: list[Any], got: list[Any]) -> None:
        self.run = run
        self.name = name
        self.inputs = given
        self.outputs = got
        # Found at once: a property's frame would lie between.
        self.instruction = _C._here()

    @cached_property
    def place(self) -> Place | None:
        """The line that called it."""
        return placed(self.instruction)

    @cached_property
    def key(self) -> Any:
        """Equal for calls of one line and module."""
        at = self.instruction
        return None if at is None else (*call_key(at), at[2])


class Pass:
    """A backward that is about to run."""

    def __init__(self, run: Run, how: str, roots: list[Tensor]) -> None:
        self.run = run
        self.how = how
        self.roots = roots
        self.instruction = _C._here()
        self._line = program_line()

    @cached_property
    def place(self) -> Place | None:
        """The program's line that calls it."""
        return placed(self._line)

    @property
    def key(self) -> Any:
        """Equal for calls of one line."""
        return None if self.instruction is None else call_key(self.instruction)

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The recorded graph, a list for each column; see graph_export.cpp."""
        found: dict[str, Any] = _C._export_graph(tuple(self.roots))
        return found

    @cached_property
    def _outline(self) -> tuple[list[int], list[Tensor], list[Any]]:
        found: tuple[list[int], list[Tensor], list[Any]] = _C._outline_graph(tuple(self.roots))
        return found

    @property
    def leaves(self) -> list[Tensor]:
        """The tensors that will get gradients."""
        return self._outline[1]

    @property
    def sequences(self) -> list[int]:
        """The numbers of the operations' nodes."""
        return self._outline[0]

    @property
    def cuts(self) -> list[Any]:
        """Where something in it came from that lost its history, each once."""
        return self._outline[2]

    @cached_property
    def root_sequence(self) -> int:
        """The number of the latest node."""
        return max((t.grad_fn._sequence_nr() for t in self.roots if t.grad_fn), default=0)


class Watched:
    """An optimizer that was seen."""

    def __init__(self, optimizer: Any, place: Place | None) -> None:
        self.optimizer = optimizer  # kept until the report: the program may let go of it before
        self.kind = type(optimizer).__name__
        self.place = place  # where it was made, if that is known
        self.step_place: Place | None = None
        self.steps = 0
        self.earlier = False  # whether it was made before the watch began

    @property
    def params(self) -> list[Tensor]:
        """Its parameters, as they are now."""
        return [p for g in self.optimizer.param_groups for p in g["params"]]


class Batch:
    """What a loader gave, and how long that took."""

    def __init__(self, loader: Any, number: int, value: Any, waited: float, place: Any) -> None:
        self.loader = loader
        self.number = number  # in this pass over the data, from 0
        self.value = value
        self.waited = waited
        self.read_at = place

    @cached_property
    def of(self) -> int:
        """The batches of a pass over the data; 0 where nobody knows, as of a stream."""
        try:
            return len(self.loader)
        except TypeError:
            return 0

    def place(self, run: Run) -> Place | None:
        """Where the loader was made, if that is known; else where it is read."""
        made = run.loaders.get(id(self.loader))
        return placed(made[1] if made is not None else origin_of(self.loader) or self.read_at)

    def read(self) -> str:
        """A few words about where it is read."""
        at = placed(self.read_at)
        return f"; it is read at {at.short}" if at else ""

    @cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors in it."""
        from clew.utils._pytree import tree_leaves

        return [t for t in tree_leaves(self.value) if isinstance(t, Tensor)]


class Run:
    """The program so far."""

    def __init__(self) -> None:
        self.round = 0  # steps so far; where several optimizers step in turn, one of each
        self.backwards = 0
        self.looking = True  # whether operations are shown in this round
        self.rested = False  # whether backwards were passed over although nothing stepped
        self.optimizers: dict[int, Watched] = {}
        self.earlier: dict[int, Any] = {}  # those made before, by their parameters
        self.loaders: dict[int, tuple[Any, Any]] = {}  # those made since, and where
        self.made: dict[int, tuple[Any, Any]] = {}  # parts of datasets and samplers, and where
        self.behind_targets: set[int] = set()  # parameters that only the target of a loss reaches
        self.scaler: Any = None  # an enabled GradScaler that was used
        self.last_root = 0  # the number of the latest node that a backward began at
        self.started = time.perf_counter()
        self.spent = 0.0
        # Models that were called before may be others' business; kept until the report.
        self._before = {id(m) for m in _C._called_roots()}
        self._models: dict[int, Any] = {}
        probe = clew.ones(1, requires_grad=True) * 1
        self._first = probe.grad_fn._sequence_nr() if probe.grad_fn is not None else 0
        self._names: dict[int, str] = {}
        self._names_round = -1

    @staticmethod
    def closely() -> None:
        """Has rules hear of every call until the next backward."""
        Observation.closely()

    def watched(self, optimizer: Any, place: Place | None = None) -> Watched:
        """What is known of an optimizer."""
        known = self.optimizers.get(id(optimizer))
        if known is None:
            place = place or placed(origin_of(optimizer))
            known = self.optimizers[id(optimizer)] = Watched(optimizer, place)
        return known

    @property
    def models(self) -> list[Any]:
        """The modules that were called from outside of any other since the watch began."""
        for model in _C._called_roots():
            if id(model) not in self._models and (
                id(model) not in self._before or self._was_used(model)
            ):
                self._models[id(model)] = model
        return list(self._models.values())

    def _was_used(self, model: Any) -> bool:
        uses = (_C._recorded_use(p) for p in model.parameters())
        return any(use is not None and use[1] > self._first for use in uses)

    def optimized_tensors(self) -> list[Tensor]:
        """The parameters that some optimizer has."""
        return [p for w in self.optimizers.values() for p in w.params]

    def optimized(self) -> set[int]:
        """Their identities."""
        return {id(p) for p in self.optimized_tensors()}

    def name_of(self, tensor: Tensor) -> str:
        """A parameter's name, or its shape."""
        if self._names_round != self.round:
            self._names_round = self.round
            self._names = {id(p): n for m in self.models for n, p in m.named_parameters()}
        name = self._names.get(id(tensor))
        return name or f"the tensor of shape {tuple(tensor.shape)}"
