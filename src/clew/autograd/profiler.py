"""Recording what a program does: `profile`, and marks in it with `record_function`.

The plain form. `clew.profiler.profile` adds schedules and what is said by line and by module.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from clew import _C
from clew.autograd._recording import RECORD, Place, Recording
from clew.autograd.profiler_util import (
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
)

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "kineto_available",
    "profile",
    "record_function",
]

F = TypeVar("F", bound=Callable[..., Any])
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_C._trace_abandon)


def kineto_available() -> bool:
    """Whether PyTorch's recorder is there: never, clew has its own.

    Example:
        >>> clew.autograd.profiler.kineto_available()
        False
    """
    return False


class record_function:
    """Marks a part of the program, as a context manager or a decorator.

    Args:
        name: what the part is called in tables and traces.
        args: shown with the name, as ``name(args)``.

    >>> from clew.profiler import profile, record_function
    >>> with profile() as prof:
    ...     with record_function("double"):
    ...         y = clew.ones(3) * 2
    >>> [event.name for event in prof.events()]
    ['double', 'ones', 'mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: name must be a str; got {type(name).__name__}")
        self.name = name
        self.args = args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        name = self.name if self.args is None else f"{self.name}({self.args})"
        self._open.append(_C._trace_begin(name))
        return self

    def __exit__(self, *exc: object) -> None:
        _C._trace_end(self._open.pop())

    def __call__(self, function: F) -> F:
        name = self.name if self.args is None else f"{self.name}({self.args})"

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            handle = _C._trace_begin(name)
            try:
                return function(*args, **kwargs)
            finally:
                _C._trace_end(handle)

        return marked  # type: ignore[return-value]


class Recorder:
    """One recording in progress.

    Args:
        record_shapes: keep the shapes of arguments and results.
        profile_memory: keep what memory was taken and given back.
        with_stack: keep the lines that led to each event, not only the innermost one.
        with_flops: count floating-point operations.
        with_modules: show the calls of modules as events.
    """

    def __init__(
        self,
        *,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self._stacks_before = False
        self._unix = 0

    def start(self) -> None:
        """Begins; raises RuntimeError when another one is in progress."""
        _C._trace_start(self.record_shapes or self.with_flops, self.profile_memory)
        self._unix = time.time_ns()
        self._stacks_before = _C._keep_whole_stacks(self.with_stack)

    def stop(self) -> Recording:
        """Ends, and hands over what was recorded."""
        _C._keep_whole_stacks(self._stacks_before)
        found = _C._trace_stop()
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        return Recording(
            records=np.frombuffer(found["records"], dtype=RECORD),
            names=found["names"],
            overloads=found["overloads"],
            arguments=found["arguments"],
            places=_places(found["places"]),
            details=np.frombuffer(found["details"], dtype=np.int64).tolist(),
            dtypes=found["dtypes"],
            started=found["started"],
            stopped=found["stopped"],
            started_unix=self._unix,
            live_bytes=found["live_bytes"],
            threads={number: name for number, name in names.items() if number is not None},
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
        )


def _places(found: list[tuple[Any, ...]]) -> list[Place]:
    from clew._base.provenance import Location

    places: list[Place] = []
    known: dict[tuple[Any, ...], Location] = {}
    for code, offset, module, kind, root, caller in found:
        at = known.get((id(code), offset))
        if at is None:
            at = known[id(code), offset] = Location(code, offset)
        callers: tuple[Location, ...] = ()
        if caller >= 0:
            outer = places[caller]
            assert outer.location is not None
            callers = (outer.location, *outer.callers)
        places.append(Place(at, module, kind, root, callers))
    return places


class profile:
    """Records the operations that run in its context.

    Args:
        enabled: False makes it do nothing.
        use_cuda: warned about when set: there is no such device.
        use_device: the same; None or "cpu".
        record_shapes: keep the shapes of arguments and results.
        with_flops: count floating-point operations.
        profile_memory: keep what memory was taken and given back.
        with_stack: keep the lines that led to each event, not only the innermost one.
        with_modules: show the calls of modules as events.
        use_kineto: PyTorch's other recorder; makes no difference.
        use_cpu: must be True.
        acc_events: keep the events of earlier contexts of the same object.

    >>> with clew.autograd.profiler.profile() as prof:
    ...     y = clew.ones(3) * 2
    >>> prof.key_averages()[1].key
    'mul'
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        acc_events: bool = False,
    ) -> None:
        if use_cuda or use_device not in (None, "cpu"):
            warnings.warn(
                f"profile: {use_device or 'cuda'} is not there; only the CPU is recorded",
                stacklevel=2,
            )
        if not use_cpu:
            raise ValueError("profile: use_cpu must be True: there is no other device to record")
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.recordings: list[Recording] = []
        self._recorder: Recorder | None = None
        self._events: EventList[FunctionEvent] | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._stop()

    def _start(self) -> None:
        recorder = Recorder(
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
        )
        recorder.start()
        self._recorder = recorder
        self._events = None
        if not self.acc_events:
            self.recordings = []

    def _stop(self) -> None:
        if self._recorder is None:
            raise RuntimeError("profile: it is not recording")
        recorder, self._recorder = self._recorder, None
        recording = recorder.stop()
        if self.recordings:
            recording.origin = self.recordings[0].started
        self.recordings.append(recording)
        self._events = None

    def __repr__(self) -> str:
        return repr(self.function_events) if self.recordings else "<unfinished profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self.recordings else "<unfinished profile>"

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """All events, in the order of their begins."""
        if not self.recordings:
            raise RuntimeError("profile: nothing was recorded yet; its context must have ended")
        if self._events is None:
            found: list[FunctionEvent] = []
            for recording in self.recordings:
                found += recording.events
            if len(self.recordings) > 1:
                for number, event in enumerate(found):
                    event.id = number
            self._events = EventList(
                found,
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
                record_shapes=self.record_shapes,
            )
        return self._events

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table; see `EventList.table`."""
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """One entry for all events of the same name; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """All events as one entry."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that lie in events."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for Perfetto or chrome://tracing.

        Args:
            path: the file; compressed if it ends in ".gz".
        """
        from clew.autograd._chrome_trace import write_trace

        write_trace(path, self.function_events, self.recordings)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks for flame graph programs; see `EventList.export_stacks`."""
        if not self.with_stack:
            raise RuntimeError("export_stacks: it needs a profile with with_stack=True")
        self.function_events.export_stacks(path, metric)


class emit_nvtx:
    """Marks for NVIDIA's profilers around operations: entering it raises.

    Args:
        enabled: False makes it a block that does nothing.
        record_shapes: not used.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        if self.enabled:
            raise RuntimeError("emit_nvtx: clew runs on the CPU here; there is no device to mark")
        return self

    def __exit__(self, *exc: Any) -> None:
        pass


emit_itt = emit_nvtx
