"""Traces in the format of chrome://tracing, which Perfetto reads."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from clew._base.whole_files import replacing

if TYPE_CHECKING:
    from clew.autograd._recording import MemoryEvent, Recording
    from clew.autograd.profiler_util import FunctionEvent

__all__ = ["trace_entries", "write_json", "write_trace"]

_CATEGORIES = {
    "op": "cpu_op",
    "call": "cpu_op",
    "node": "cpu_op",
    "range": "user_annotation",
    "module": "python_function",
}


def write_json(path: str, value: Any) -> None:
    """Writes JSON; compressed when the path ends in ".gz"."""
    if path.endswith(".gz"):
        with replacing(path) as raw, gzip.open(raw, "wt", encoding="utf-8") as packed:
            json.dump(value, packed, separators=(",", ":"))
        return
    with replacing(path, "w", encoding="utf-8") as file:
        json.dump(value, file, separators=(",", ":"))


def write_trace(
    path: str,
    events: Sequence[FunctionEvent],
    recordings: Sequence[Recording] = (),
    metadata: dict[str, Any] | None = None,
) -> None:
    """Writes the events, and the memory of the recordings, as a trace.

    Args:
        path: the file; compressed when it ends in ".gz".
        events: what to show.
        recordings: where they come from.
        metadata: more keys at the top of the file.
    """
    start = recordings[0].started_unix if recordings else 0
    write_json(
        path,
        {
            "schemaVersion": 1,
            "host_name": socket.gethostname(),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": start,
            **(metadata or {}),
            "traceEvents": list(trace_entries(events, recordings)),
        },
    )


def trace_entries(
    events: Sequence[FunctionEvent], recordings: Sequence[Recording] = ()
) -> Iterator[dict[str, Any]]:
    """The entries of a trace: complete events, arrows from forward to backward, live memory."""
    pid = os.getpid()
    yield {
        "ph": "M",
        "name": "process_name",
        "pid": pid,
        "tid": 0,
        "ts": 0,
        "args": {"name": os.path.basename(sys.executable)},
    }
    names: dict[int, str] = {}
    for recording in recordings:
        names.update(recording.threads)
    for thread in sorted({event.thread for event in events}):
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": pid,
            "tid": thread,
            "ts": 0,
            "args": {"name": names.get(thread, f"thread {thread}")},
        }
    for event in events:
        yield {
            "ph": "X",
            "cat": _CATEGORIES[event.kind],
            "name": event.name,
            "pid": pid,
            "tid": event.thread,
            "ts": _micro(event.time_range.start),
            "dur": _micro(event.time_range.elapsed_us()),
            "args": _arguments(event),
        }
    yield from _arrows(events, pid)
    for recording in recordings:
        yield from _memory(recording.memory, recording.live_bytes, pid)


def _micro(time_us: float) -> float:
    # Whole nanoseconds, so that what lies in another event does so exactly.
    return round(time_us, 3)


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    found: dict[str, Any] = {"Ev Idx": event.id}
    if event.sequence_nr >= 0:
        found["Sequence number"] = event.sequence_nr
    if event.fwd_thread is not None:
        found["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        found["Input Dims"] = event.input_shapes
        found["Input type"] = event.input_dtypes
    if event.concrete_inputs:
        found["Concrete Inputs"] = event.concrete_inputs
    if event.location is not None:
        found["Location"] = f"{event.location.file}:{event.location.line}"
    if len(event.stack) > 1:
        found["Call stack"] = ";".join(event.stack)
    if event.module is not None:
        found["Module Hierarchy"] = event.module
    if event.flops:
        found["flops"] = event.flops
    return found


def _arrows(events: Iterable[FunctionEvent], pid: int) -> Iterator[dict[str, Any]]:
    """From each operation to its gradient rule."""
    forward: dict[int, FunctionEvent] = {}
    number = 0
    for event in events:
        if event.sequence_nr < 0:
            continue
        if event.kind == "op" and not event.is_backward:
            forward.setdefault(event.sequence_nr, event)
        elif event.kind == "node" and event.sequence_nr in forward:
            number += 1
            source = forward[event.sequence_nr]
            shared = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": pid}
            start, end = _micro(source.time_range.start), _micro(event.time_range.start)
            yield {"ph": "s", "tid": source.thread, "ts": start, **shared}
            yield {"ph": "f", "bp": "e", "tid": event.thread, "ts": end, **shared}


def _memory(changes: Iterable[MemoryEvent], live: int, pid: int) -> Iterator[dict[str, Any]]:
    for change in changes:
        live += change.nbytes
        yield {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": pid,
            "tid": change.thread,
            "ts": _micro(change.time_us),
            "args": {
                "Bytes": change.nbytes,
                "Total Allocated": live,
                "Addr": change.address,
                "Device Type": 0,
                "Device Id": -1,
            },
        }
        yield {
            "ph": "C",
            "name": "live memory",
            "pid": pid,
            "tid": 0,
            "ts": _micro(change.time_us),
            "args": {"bytes": live},
        }
