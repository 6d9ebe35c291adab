"""What the core's recorder hands over, turned into events.

The records come as one block of memory, names and places beside it; nothing is made of them until
somebody asks.
"""

from __future__ import annotations

import functools
import gc
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew._base.provenance import Location
from clew._ops.flops import backward_flops, flops, is_product
from clew.autograd.profiler_util import FunctionEvent, Scope

__all__ = ["RECORD", "Kind", "MemoryEvent", "Place", "Recording"]

# One record, as csrc/python/trace.cpp hands it over.
RECORD = np.dtype(
    [
        ("begin", "<i8"),  # nanoseconds of the monotonic clock
        ("end", "<i8"),  # 0: it had not ended when the recording did
        ("value", "<i8"),  # sequence number of the node; bytes; -1 if none
        ("extra", "<i8"),  # which inputs want gradients; address
        ("name", "<i4"),
        ("place", "<i4"),
        ("parent", "<i4"),  # the record that it lies in; -1 at the top
        ("detail", "<i4"),  # where its shapes begin; -1 if none were recorded
        ("thread", "<i4"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("padding", "<u2"),
    ]
)
FLAG_INPLACE = 1
FLAG_BACKWARD = 2


class Kind:
    """What a record stands for; the numbers are those of csrc/graph/trace.h."""

    OP = 0
    NODE = 1
    RANGE = 2
    MODULE = 3
    CALL = 4  # work of the library that is no operation: a copy, backward as a whole
    ALLOCATION = 5
    FREE = 6


_KIND_NAMES = ("op", "node", "range", "module", "call", "memory", "memory")


@dataclass
class Place:
    """A line of the user's program, the module call around it, and the lines that led there."""

    location: Location | None = None
    module: str | None = None
    module_type: str | None = None
    root_type: str | None = None  # class of the outermost module
    callers: tuple[Location, ...] = ()

    @functools.cached_property
    def stack(self) -> list[str]:
        """The lines, innermost first, as PyTorch writes them."""
        lines = [] if self.location is None else [self.location, *self.callers]
        return [f"{at.file}({at.line}): {at.function}" for at in lines]


NOWHERE = Place()


@dataclass
class MemoryEvent:
    """Memory that was taken or, with bytes below zero, given back."""

    time_us: float
    nbytes: int
    address: int
    place: Place
    is_backward: bool
    thread: int
    event: FunctionEvent | None  # what it happened in


@dataclass
class Recording:
    """One recording, from its start to its end."""

    records: np.ndarray[Any, Any]
    names: list[str]
    overloads: list[str] = field(default_factory=list)  # arguments, beside names; empty if no op
    arguments: list[list[str]] = field(default_factory=list)  # names of those that are no tensors
    places: list[Place] = field(default_factory=list)
    details: Sequence[int] = ()
    dtypes: Sequence[str] = ()
    started: int = 0  # nanoseconds of the monotonic clock
    stopped: int = 0
    started_unix: int = 0  # nanoseconds since 1970
    live_bytes: int = 0  # at the start
    owners: dict[int, tuple[str, int]] = field(default_factory=dict)  # at the end: address to kind
    threads: dict[int, str] = field(default_factory=dict)
    record_shapes: bool = False
    profile_memory: bool = False
    with_flops: bool = False
    with_modules: bool = False
    origin: int | None = None  # nanoseconds that times are counted from: the start

    @property
    def zero(self) -> int:
        """The instant that times are counted from, in nanoseconds."""
        return self.started if self.origin is None else self.origin

    @functools.cached_property
    def _built(self) -> tuple[list[FunctionEvent], list[MemoryEvent], list[FunctionEvent]]:
        return _build(self)

    @property
    def events(self) -> list[FunctionEvent]:
        """All that has a duration, in the order of the begins; modules only if wanted."""
        return self._built[0]

    @property
    def memory(self) -> list[MemoryEvent]:
        """What was taken and given back, in order."""
        return self._built[1]

    @functools.cached_property
    def replay(self) -> Replay:
        """The memory, played again."""
        return Replay(self)

    @property
    def module_calls(self) -> list[FunctionEvent]:
        """The calls of modules, which are recorded always."""
        return self._built[2]


class Replay:
    """The memory of a recording played again.

    Attributes:
        live: bytes that were alive after each change.
        peak_index: the change after which they were most; -1 when that was before the first.
        peak_bytes: how many they were then.
        before: of these, bytes that were alive before the recording.
        held: of these, what was allocated in the recording.
    """

    def __init__(self, recording: Recording) -> None:
        self.live: list[int] = []
        self.peak_index = -1
        self.peak_bytes = live = recording.live_bytes
        for i, change in enumerate(recording.memory):
            live += change.nbytes
            self.live.append(live)
            if live > self.peak_bytes:
                self.peak_bytes, self.peak_index = live, i
        alive: dict[int, MemoryEvent] = {}
        self.before = recording.live_bytes
        for change in recording.memory[: self.peak_index + 1]:
            if change.nbytes > 0:
                alive[change.address] = change
            elif alive.pop(change.address, None) is None:
                self.before += change.nbytes
        self.held = list(alive.values())


def _shapes_at(details: Sequence[int], at: int) -> tuple[list[Any], list[int], int]:
    """A list of shapes (None: no tensor), their dtypes' numbers, and where it ends."""
    count = details[at]
    at += 1
    shapes: list[Any] = []
    dtypes = []
    for _ in range(count):
        dtype = details[at]
        at += 1
        dtypes.append(dtype)
        if dtype < 0:
            shapes.append(None)
            continue
        rank = details[at]
        shapes.append([int(n) for n in details[at + 1 : at + 1 + rank]])
        at += 1 + rank
    return shapes, dtypes, at


def _arguments_at(details: Sequence[int], at: int, names: Sequence[str]) -> dict[str, Any]:
    """The numbers among the other arguments, by name."""
    found: dict[str, Any] = {}
    count = details[at]
    at += 1
    for _ in range(count):
        which, kind, length = (int(n) for n in details[at : at + 3])
        values = [int(n) for n in details[at + 3 : at + 3 + length]]
        at += 3 + length
        name = names[which] if which < len(names) else str(which)
        if kind == 1:
            found[name] = bool(values[0])
        elif kind == 2:
            found[name] = values
        elif kind == 3:
            found[name] = struct.unpack("<d", struct.pack("<q", values[0]))[0]
        else:
            found[name] = values[0]
    return found


@dataclass
class _Details:
    """What was recorded of a call's arguments and results."""

    inputs: list[Any]
    input_dtypes: list[int]
    outputs: list[Any]
    arguments: dict[str, Any]


def _details_of(recording: Recording, at: int, name: int) -> _Details:
    inputs, dtypes, at = _shapes_at(recording.details, at)
    outputs, _, at = _shapes_at(recording.details, at)
    names = recording.arguments[name] if name < len(recording.arguments) else []
    return _Details(inputs, dtypes, outputs, _arguments_at(recording.details, at, names))


def _put_details(event: FunctionEvent, details: _Details, dtypes: Sequence[str]) -> None:
    event.input_shapes = [[] if s is None else s for s in details.inputs]
    event.input_dtypes = ["" if d < 0 else dtypes[d] for d in details.input_dtypes]
    event.output_shapes = details.outputs
    event.concrete_inputs = details.arguments


_SCOPES = {
    Kind.NODE: Scope.BACKWARD_FUNCTION,
    Kind.RANGE: Scope.USER_SCOPE,
    Kind.MODULE: Scope.MODULE,
}


def _build(
    recording: Recording,
) -> tuple[list[FunctionEvent], list[MemoryEvent], list[FunctionEvent]]:
    # Many objects are made that all stay: looking for garbage among them is in vain.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _built_from(recording)
    finally:
        if collects:
            gc.enable()


def _built_from(
    recording: Recording,
) -> tuple[list[FunctionEvent], list[MemoryEvent], list[FunctionEvent]]:
    events: list[FunctionEvent] = []
    memory: list[MemoryEvent] = []
    modules: list[FunctionEvent] = []
    # By record: the nearest event that is shown; whether its arithmetic is counted above.
    shown: list[FunctionEvent | None] = []
    counted: list[bool] = []
    calls: list[FunctionEvent | None] = []  # the innermost call of a module
    forward: dict[int, tuple[FunctionEvent, _Details | None]] = {}
    columns = [recording.records[name].tolist() for name in (RECORD.names or ())[:-1]]
    all_ends, all_parents = columns[1], columns[6]
    zero, stopped, overloads = recording.zero, recording.stopped, recording.overloads
    for begin, end, value, extra, number, at, parent, detail, thread, kind, flags in zip(*columns):
        ends = end or stopped
        # A range that ended earlier than this record is not its parent, though it began inside.
        while parent >= 0 and 0 < all_ends[parent] < ends:
            parent = all_parents[parent]
        place = recording.places[at] if at >= 0 else NOWHERE
        above = shown[parent] if parent >= 0 else None
        start_us = (begin - zero) / 1e3
        backward = bool(flags & FLAG_BACKWARD)
        if kind in (Kind.ALLOCATION, Kind.FREE):
            nbytes = value if kind == Kind.ALLOCATION else -value
            memory.append(MemoryEvent(start_us, nbytes, extra, place, backward, thread, above))
            shown.append(above)
            counted.append(True)
            calls.append(None)
            continue
        name = recording.names[number]
        if kind == Kind.MODULE:
            name = f"nn.Module: {name or place.module_type}"
        elif flags & FLAG_INPLACE:
            name += "_"
        details = _details_of(recording, detail, number) if detail >= 0 else None
        event = FunctionEvent(
            len(events),
            name,
            thread,
            start_us,
            (ends - zero) / 1e3,
            kind=_KIND_NAMES[kind],
            overload_name=overloads[number] if overloads else "",
            scope=_SCOPES.get(kind, Scope.FUNCTION),
            sequence_nr=value if kind <= Kind.NODE else -1,
            is_backward=backward or kind == Kind.NODE,
            place=place,
        )
        if details is not None and recording.record_shapes:
            _put_details(event, details, recording.dtypes)
        if kind == Kind.OP and not backward and value >= 0:
            forward.setdefault(value, (event, details))
        if kind == Kind.NODE and value in forward:
            event.fwd_thread = forward[value][0].thread
        covered = counted[parent] if parent >= 0 else False
        if recording.with_flops and not covered:
            count = _count(kind, event, details, forward, extra)
            if count is not None:
                event.flops, covered = count, True
        event.enclosing = calls[parent] if parent >= 0 else None
        calls.append(event if kind == Kind.MODULE else event.enclosing)
        counted.append(covered)
        if kind == Kind.MODULE:
            modules.append(event)
            if not recording.with_modules:
                shown.append(above)
                continue
        events.append(event)
        if above is not None:
            event.put_into(above)
        shown.append(event)
    for change in memory:
        if change.event is not None:
            change.event.add_memory(change.nbytes)
    return events, memory, modules


def _count(
    kind: int,
    event: FunctionEvent,
    details: _Details | None,
    forward: dict[int, tuple[FunctionEvent, _Details | None]],
    needs: int,
) -> int | None:
    """Floating-point operations of a call with all that lies in it; None: those inside count."""
    if kind == Kind.OP and details is not None:
        return flops(event.name, details.inputs, details.outputs, details.arguments)
    if kind != Kind.NODE or event.sequence_nr not in forward:
        return None
    # The products of a gradient rule run without operations of their own.
    source, known = forward[event.sequence_nr]
    if known is None or not is_product(source.name):
        return None
    wanted = [bool(needs >> i & 1) for i in range(len(known.inputs))]
    return backward_flops(source.name, known.inputs, known.outputs, known.arguments, wanted)
