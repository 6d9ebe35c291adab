"""Time and memory by line of the program and by module; what holds the memory at the peak."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from clew._tensor.html import as_printed
from clew.autograd._profiler_table import plain_table, scaled_flops, shorten
from clew.autograd._profiler_text import format_memory, format_time
from clew.autograd._recording import MemoryEvent, Place, Recording, Replay

__all__ = ["Holder", "LineRow", "ModuleRow", "Peak", "Rows", "lines", "modules", "peak"]


class _Timed:
    """A row with both directions' times."""

    forward_us: float
    backward_us: float

    @property
    def total_us(self) -> float:
        """Forward and backward together."""
        return self.forward_us + self.backward_us


@dataclass
class LineRow(_Timed):
    """What one line of the program cost; times in microseconds, memory in bytes."""

    location: Any
    module: str | None
    root_type: str | None = None
    forward_us: float = 0.0
    backward_us: float = 0.0
    calls: int = 0
    flops: int = 0
    allocated: int = 0
    at_peak: int = 0


@dataclass
class ModuleRow(_Timed):
    """What one module cost, those in it included; times in microseconds, memory in bytes."""

    module: str | None
    module_type: str | None
    root_type: str | None
    forward_us: float = 0.0
    self_forward_us: float = 0.0
    backward_us: float = 0.0
    self_backward_us: float = 0.0
    calls: int = 0
    flops: int = 0
    allocated: int = 0
    at_peak: int = 0

    @property
    def label(self) -> str:
        """The path, of an outermost module its class."""
        if self.module is None:
            return "(outside of modules)"
        return self.module or f"({self.root_type})"


R = TypeVar("R", bound="LineRow | ModuleRow")


class Rows(list[R], Generic[R]):
    """Rows that can be shown as a table, the most expensive first."""

    def __init__(self, rows: Iterable[R], with_memory: bool, with_flops: bool) -> None:
        super().__init__(sorted(rows, key=lambda row: row.total_us, reverse=True))
        self._with_memory = with_memory
        self._with_flops = with_flops

    _repr_html_ = as_printed

    def __str__(self) -> str:
        return self.table()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 60
    ) -> str:
        """The rows as a table to print.

        Args:
            sort_by: the attribute to sort by, the largest first: "total_us", "forward_us",
                "backward_us", "calls", "flops", "allocated" or "at_peak".
            row_limit: how many rows to show; -1 for all.
            max_name_column_width: characters for names and source text.

        Returns: the text.
        """
        keys = ("total_us", "forward_us", "backward_us", "calls", "flops", "allocated", "at_peak")
        if sort_by is not None and sort_by not in keys:
            raise ValueError(f"table: sort_by must be one of {', '.join(keys)}; got {sort_by!r}")
        rows: Sequence[Any] = (
            sorted(self, key=lambda row: getattr(row, sort_by), reverse=True) if sort_by else self
        )
        if row_limit >= 0:
            rows = rows[:row_limit]
        by_line = any(isinstance(row, LineRow) for row in rows)
        heads = ["Line", "Source", "Module"] if by_line else ["Module", "Type"]
        left = range(len(heads))
        heads = [*heads, "Calls", "Forward", "Backward"]
        if not by_line:
            heads += ["Self forward", "Self backward"]
        if self._with_memory:
            heads += ["Allocated", "At the peak"]
        unit, size = scaled_flops(max((row.flops for row in rows), default=0))
        if self._with_flops:
            heads.append(unit)
        cells = []
        for row in rows:
            line = _line_cells(row, max_name_column_width) if by_line else _module_cells(row)
            line += [str(row.calls), format_time(row.forward_us), format_time(row.backward_us)]
            if not by_line:
                line += [format_time(row.self_forward_us), format_time(row.self_backward_us)]
            if self._with_memory:
                line += [format_memory(row.allocated), format_memory(row.at_peak)]
            if self._with_flops:
                line.append(f"{row.flops / size:.3f}" if row.flops else "--")
            cells.append(line)
        return plain_table(heads, cells, list(left)) + "\n"


def _line_cells(row: LineRow, width: int) -> list[str]:
    where = "(unknown)" if row.location is None else row.location.short
    source = "" if row.location is None else row.location.source
    module = shown(row.module, row.root_type) if row.module else ""
    return [shorten(where, width, True), shorten(source, width), shorten(module, width, True)]


def _module_cells(row: ModuleRow) -> list[str]:
    return [row.label, row.module_type or ""]


def fold(path: str) -> str:
    """The path with a star for every number: siblings of a list become one."""
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def _common(paths: set[str | None]) -> str | None:
    """One name for several paths; None when they have none."""
    if len(paths) == 1:
        return next(iter(paths))
    folded = {None if path is None else fold(path) for path in paths}
    return next(iter(folded)) if len(folded) == 1 else None


def shown(path: str | None, root_type: str | None) -> str:
    """The path as text; one that begins with a number, as in a Sequential, after the model's class:
    "*.1" alone tells nothing."""
    if path is None:
        return ""
    if not path:
        return f"({root_type})"
    return f"{root_type}.{path}" if root_type and path[0] in "*0123456789" else path


def variable(source: str) -> str:
    """What a line of source assigns to: "buf" of `buf = clew.zeros(8)`; "" where it does not."""
    found = re.match(r"\s*([A-Za-z_][\w.\[\]]*)\s*(?::[^=]+)?=(?!=)", source)
    return found[1] if found else ""


def _line_key(place: Place) -> tuple[str, int] | None:
    at = place.location
    return None if at is None else (at.file, at.line)


NOWHERE = Place()


def lines(recordings: Sequence[Recording]) -> Rows[LineRow]:
    """The rows of `profile.by_line`."""
    rows: dict[Any, LineRow] = {}
    paths: dict[Any, set[str | None]] = {}

    def row_of(place: Place | None) -> LineRow:
        place = place or NOWHERE
        key = _line_key(place)
        paths.setdefault(key, set()).add(place.module)
        if key not in rows:
            rows[key] = LineRow(place.location, place.module, place.root_type)
        return rows[key]

    for recording in recordings:
        for event in recording.events:
            if event.kind not in ("op", "node", "call"):
                continue
            row = row_of(event.place)
            if event.is_backward:
                row.backward_us += event.self_cpu_time_total
            else:
                row.forward_us += event.self_cpu_time_total
                parent = event.cpu_parent
                row.calls += parent is None or parent.kind not in ("op", "call")
            row.flops += event.flops
        for change in recording.memory:
            if change.nbytes > 0:
                row_of(change.place).allocated += change.nbytes
    for change in highest(recordings)[1].held:
        row_of(change.place).at_peak += change.nbytes
    for key, row in rows.items():
        row.module = _common(paths[key])
    return _rows(rows.values(), recordings)


def modules(recordings: Sequence[Recording]) -> Rows[ModuleRow]:
    """The rows of `profile.by_module`."""
    rows: dict[Any, ModuleRow] = {}

    def row_of(root: str | None, path: str | None) -> ModuleRow:
        if (root, path) not in rows:
            rows[root, path] = ModuleRow(path, None, root)
        return rows[root, path]

    def around(place: Place | None) -> list[ModuleRow]:
        """The rows of a place's module and of all around it, innermost first."""
        place = place or NOWHERE
        if place.module is None:
            return [row_of(None, None)]
        parts = place.module.split(".") if place.module else []
        found = [row_of(place.root_type, ".".join(parts[:n])) for n in range(len(parts), -1, -1)]
        found[0].module_type = place.module_type
        return found

    for recording in recordings:
        inside: dict[int, float] = {}
        for event in reversed(recording.module_calls):
            if event.is_backward:  # computed again by a checkpoint
                continue
            row = row_of(event.place.root_type, event.place.module)
            row.module_type = event.place.module_type
            row.calls += 1
            row.self_forward_us += event.cpu_time_total - inside.get(id(event), 0.0)
            outer = event.enclosing
            if outer is None or outer.place.module != event.place.module:
                row.forward_us += event.cpu_time_total
            if outer is not None:
                inside[id(outer)] = inside.get(id(outer), 0.0) + event.cpu_time_total
        for event in recording.events:
            if event.kind not in ("op", "node", "call"):
                continue
            here = around(event.place)
            for row in here:
                row.flops += event.flops
                if event.is_backward:
                    row.backward_us += event.self_cpu_time_total
                elif row.module is None:
                    row.forward_us += event.self_cpu_time_total
            if event.is_backward:
                here[0].self_backward_us += event.self_cpu_time_total
            elif here[0].module is None:
                here[0].self_forward_us += event.self_cpu_time_total
        for change in recording.memory:
            if change.nbytes > 0:
                for row in around(change.place):
                    row.allocated += change.nbytes
    for change in highest(recordings)[1].held:
        for row in around(change.place):
            row.at_peak += change.nbytes
    _time_containers(rows)
    return _rows(rows.values(), recordings)


def _time_containers(rows: dict[Any, ModuleRow]) -> None:
    """Gives containers that are never called themselves the time of what is in them."""
    for (root, path), row in rows.items():
        if path is None or row.calls:
            continue
        below = [
            other
            for (its_root, its_path), other in rows.items()
            if its_root == root
            and its_path
            and its_path.startswith(path + "." if path else "")
            and its_path != path
            and other.calls
        ]
        nested = {other.module for other in below}
        row.forward_us = sum(
            other.forward_us
            for other in below
            if not any(_is_below(other.module, outer) for outer in nested)
        )


def _is_below(path: str | None, outer: str | None) -> bool:
    return path is not None and outer is not None and path.startswith(outer + ".")


def _rows(rows: Iterable[R], recordings: Sequence[Recording]) -> Rows[R]:
    return Rows(
        rows,
        any(recording.profile_memory for recording in recordings),
        any(recording.with_flops for recording in recordings),
    )


def highest(recordings: Sequence[Recording]) -> tuple[Recording, Replay]:
    """The recording with the highest peak."""
    played = [(recording, recording.replay) for recording in recordings]
    return max(played, key=lambda pair: pair[1].peak_bytes)


@dataclass
class Holder:
    """What holds memory at the peak: the line that allocated it and the module it did so in."""

    module: str | None  # with * for a number where several siblings are taken together
    root_type: str | None
    location: Any
    phase: str  # "forward", "backward" or "before" the recording
    nbytes: int = 0
    blocks: int = 0
    share: float = 0.0  # of all bytes at the peak

    @property
    def where(self) -> str:
        """The module as text."""
        if self.module is None:
            return "(several modules)" if self.root_type else "(outside of modules)"
        return shown(self.module, self.root_type)

    @property
    def label(self) -> str:
        """Module and line as text."""
        if self.phase == "before":
            return "what was there before the profile"
        line = "" if self.location is None else f"line {self.location.line}"
        where = self.where
        if self.module is None and not self.root_type and line:
            where = variable(self.location.source)
        return ", ".join(filter(None, (where, line)))


@dataclass
class Peak:
    """The moment at which most memory was alive, and what held it.

    Attributes:
        bytes: alive then, with what was there before the profile.
        before: of these, alive before the profile.
        time_us: microseconds from the profile's start.
        rows: what holds them, the largest first.
    """

    bytes: int
    before: int
    time_us: float
    rows: list[Holder] = field(default_factory=list)

    def table(self, row_limit: int = 20) -> str:
        """The holders as a table to print."""
        shown = self.rows if row_limit < 0 else self.rows[:row_limit]
        cells = []
        for row in shown:
            at = row.location
            cells.append(
                [
                    f"{row.share:.1%}",
                    format_memory(row.nbytes),
                    str(row.blocks) if row.blocks else "",
                    row.phase,
                    row.label if row.phase == "before" else row.where,
                    "" if at is None else at.short,
                    "" if at is None else shorten(at.source, 60),
                ]
            )
        heads = ["Share", "Bytes", "Blocks", "Phase", "Module", "Line", "Source"]
        return plain_table(heads, cells, [3, 4, 5, 6]) + "\n"

    _repr_html_ = as_printed

    def __str__(self) -> str:
        text = f"The peak is {format_memory(self.bytes)}, at {format_time(self.time_us)}"
        if self.rows:
            text += f": {self.rows[0].share:.0%} is held by {self.rows[0].label}"
        if self.rows[1:] and self.rows[0].phase == "before":
            text += f", {self.rows[1].share:.0%} by {self.rows[1].label}"
        return f"{text}.\n{self.table()}"


def peak(recordings: Sequence[Recording]) -> Peak:
    """What `profile.peak` returns."""
    recording, replay = highest(recordings)
    groups: dict[Any, list[MemoryEvent]] = {}
    for change in replay.held:
        place = change.place
        path = None if place.module is None else fold(place.module)
        phase = "backward" if change.is_backward else "forward"
        groups.setdefault((place.root_type, path, _line_key(place), phase), []).append(change)
    rows = []
    for (root, _, _, phase), changes in groups.items():
        module = _common({change.place.module for change in changes})
        total = sum(change.nbytes for change in changes)
        rows.append(Holder(module, root, changes[0].place.location, phase, total, len(changes)))
    if replay.before:
        rows.append(Holder(None, None, None, "before", replay.before))
    for row in rows:
        row.share = row.nbytes / replay.peak_bytes if replay.peak_bytes else 0.0
    rows.sort(key=lambda row: row.nbytes, reverse=True)
    at = recording.memory[replay.peak_index].time_us if replay.peak_index >= 0 else 0.0
    return Peak(replay.peak_bytes, replay.before, at, rows)
