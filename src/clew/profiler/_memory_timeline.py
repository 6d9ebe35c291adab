"""How much memory was alive when, and for what: rows, numbers, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew._base.whole_files import replacing
from clew.autograd._chrome_trace import write_json
from clew.autograd._recording import MemoryEvent, Recording
from clew.profiler._attribution import fold
from clew.profiler._series import BEFORE, OTHERS, Series

__all__ = ["Series", "TimelineRow", "export", "rows", "series"]


@dataclass
class TimelineRow:
    """One change of the memory.

    Attributes:
        time_us: microseconds from the profile's start.
        action: "allocate" or "free".
        nbytes: of the block.
        live_bytes: alive after the change.
        phase: "forward" or "backward"; of a freed block when it was allocated.
        location: the line that allocated the block; None for one from before the profile.
        module: path of the module that it was allocated in.
        operation: name of the operation that allocated or freed it.
    """

    time_us: float
    action: str
    nbytes: int
    live_bytes: int
    phase: str
    location: Any
    module: str | None
    operation: str | None


def _with_owner(recording: Recording) -> list[tuple[MemoryEvent, MemoryEvent | None]]:
    """Each change with the allocation of its block; None for one from before."""
    owner: dict[int, MemoryEvent] = {}
    found: list[tuple[MemoryEvent, MemoryEvent | None]] = []
    for change in recording.memory:
        if change.nbytes > 0:
            owner[change.address] = change
            found.append((change, change))
        else:
            found.append((change, owner.pop(change.address, None)))
    return found


def rows(recordings: Sequence[Recording]) -> list[TimelineRow]:
    """The rows of `profile.memory_timeline`."""
    found = []
    for recording in recordings:
        for (change, owner), live in zip(_with_owner(recording), recording.replay.live):
            source = owner or change
            found.append(
                TimelineRow(
                    change.time_us,
                    "allocate" if change.nbytes > 0 else "free",
                    abs(change.nbytes),
                    live,
                    "before" if owner is None else _phase(source),
                    None if owner is None else source.place.location,
                    None if owner is None else source.place.module,
                    None if change.event is None else change.event.name,
                )
            )
    return found


def _phase(change: MemoryEvent) -> str:
    return "backward" if change.is_backward else "forward"


def _in_step(change: MemoryEvent) -> bool:
    """Whether it was allocated in an optimizer's step."""
    event: Any = change.event
    while event is not None:
        if event.name.startswith("Optimizer.step#"):
            return True
        event = event.cpu_parent
    return False


def _groups(recording: Recording) -> list[str]:
    """For each change what its block is for.

    What is alive at the end is told by who holds it then. What was freed before: in backward a
    gradient outlives it, and the rest does not.
    """
    pairs = _with_owner(recording)
    freed: dict[int, MemoryEvent] = {
        id(owner): change for change, owner in pairs if owner is not None and change.nbytes < 0
    }
    names: dict[int, str] = {}
    for change, owner in pairs:
        if owner is not change:
            continue
        end = freed.get(id(change))
        held = recording.owners.get(change.address) if end is None else None
        if held is not None:
            names[id(change)] = held[0]
        elif _in_step(change):
            names[id(change)] = "optimizer"
        elif change.is_backward and end is not None and not end.is_backward:
            names[id(change)] = "gradients"
        else:
            names[id(change)] = _group(change)
    return [BEFORE if owner is None else names[id(owner)] for _, owner in pairs]


def _at_start(recording: Recording) -> dict[str, int]:
    """What was alive before, by who holds it at the end; the rest under `BEFORE`."""
    made = {change.address for change in recording.memory if change.nbytes > 0}
    found: dict[str, int] = {}
    for address, (kind, nbytes) in recording.owners.items():
        if address not in made:
            found[kind] = found.get(kind, 0) + nbytes
    rest = recording.live_bytes - sum(found.values())
    # Memory that is not the allocator's own, such as NumPy's, is no part of the sum.
    return found | {BEFORE: rest} if rest >= 0 else {BEFORE: recording.live_bytes}


def _group(change: MemoryEvent) -> str:
    place = change.place
    if place.module is None:
        where = "outside of modules" if place.location is None else place.location.short
    else:
        where = fold(place.module) or f"({place.root_type})"
    return f"{where}, {_phase(change)}"


def series(recordings: Sequence[Recording], most_groups: int = 9, most_times: int = 1200) -> Series:
    """Live bytes over time; of a long recording the highest moment of each short span.

    Args:
        recordings: one after the other.
        most_groups: parts that get a name of their own.
        most_times: moments that are kept.
    """
    changes: list[tuple[MemoryEvent, str, int]] = []
    for recording in recordings:
        changes += zip(recording.memory, _groups(recording), recording.replay.live)
    start = _at_start(recordings[0])
    weights = {kind: n for kind, n in start.items() if kind != BEFORE}
    for recording in recordings:
        held = {id(change) for change in recording.replay.held}
        for change, group in zip(recording.memory, _groups(recording)):
            if id(change) in held:
                weights[group] = weights.get(group, 0) + change.nbytes
    named = sorted(weights, key=lambda group: weights[group], reverse=True)[:most_groups]
    groups = [BEFORE, *named, OTHERS]
    index = {group: i for i, group in enumerate(groups)}

    # The highest moment of each span is kept, and the last one of all.
    spans = max(1, -(-len(changes) // most_times))
    keep = set()
    for begin in range(0, len(changes), spans):
        part = range(begin, min(begin + spans, len(changes)))
        keep.add(max(part, key=lambda i: changes[i][2]))
    keep.add(len(changes) - 1)

    now = [0] * len(groups)
    for group, nbytes in start.items():
        now[index.get(group, len(groups) - 1)] += nbytes
    times, found = [0.0], [list(now)]
    for i, (change, group, live) in enumerate(changes):
        now[index.get(group, len(groups) - 1)] += change.nbytes
        # A later recording begins with what others left and took meanwhile.
        now[0] += live - sum(now)
        if i in keep:
            times.append(change.time_us)
            found.append(list(now))
    used = [g for g in range(len(groups)) if any(row[g] for row in found)]
    found = [[row[g] for g in used] for row in found]
    totals = [sum(row) for row in found]
    return Series([groups[g] for g in used], times, found, totals.index(max(totals)))


def export(path: str, recordings: Sequence[Recording]) -> None:
    """Writes the file of `profile.export_memory_timeline`."""
    if path.endswith((".html", ".svg")):
        from clew.profiler import _timeline_picture
        from clew.profiler._attribution import peak

        shown = series(recordings)
        make = _timeline_picture.page if path.endswith(".html") else _timeline_picture.svg
        text = make(shown, peak(recordings))
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(text)
    elif path.endswith((".json", ".json.gz")):
        whole = series(recordings, most_groups=1000, most_times=1 << 62)
        write_json(
            path,
            {"categories": whole.groups, "times_us": whole.times_us, "bytes": whole.bytes},
        )
    else:
        raise ValueError(
            f"export_memory_timeline: path must end in .html, .svg, .json or .json.gz; got {path!r}"
        )
