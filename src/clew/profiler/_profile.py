"""`profile`: PyTorch's interface, and what it says by line, by module and of the peak."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from clew.autograd import profiler as plain
from clew.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from clew.profiler import _attribution
from clew.profiler._schedule import ProfilerAction, ProfilerActivity

__all__ = ["profile"]


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile:
    """Records what a program does: operations, gradient rules, modules, memory.

    Names are those of the operations ("mul", "linear") and of the graph's nodes ("MulBackward0");
    PyTorch puts "aten::" before the first. All threads that work with tensors are recorded.

    Args:
        activities: what to record; only `ProfilerActivity.CPU` is there.
        schedule: what to do in each step, see `clew.profiler.schedule`; record all when not given.
        on_trace_ready: called with the profiler at the end of each cycle.
        record_shapes: keep the shapes of arguments and results.
        profile_memory: keep what memory was taken and given back, and by whom.
        with_stack: keep the lines that led to each event, not only the innermost one.
        with_flops: count floating-point operations.
        with_modules: show the calls of modules as events; `by_module` works without it.
        experimental_config: settings of PyTorch's recorder; refused.
        execution_trace_observer: PyTorch's recorder of graphs; refused.
        acc_events: keep the events of all cycles, not only of the last.
        use_cuda: warned about when True, as in PyTorch without CUDA; only the CPU is recorded.
        custom_trace_id_callback: makes the trace's id; a random one when not given.
        post_processing_timeout_s: refused: there is no work after the end that takes long.

    Raises:
        RuntimeError: another profiler is recording.

    >>> from clew.profiler import profile
    >>> x = clew.ones(8, 8, requires_grad=True)
    >>> with profile(profile_memory=True) as prof:
    ...     (x @ x).sum().backward()
    >>> [row.key for row in prof.key_averages() if row.key.startswith("Matmul")]
    ['MatmulBackward0']
    >>> prof.by_line()[0].location.source
    '(x @ x).sum().backward()'
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        for name, value in (
            ("experimental_config", experimental_config),
            ("execution_trace_observer", execution_trace_observer),
            ("post_processing_timeout_s", post_processing_timeout_s),
        ):
            if value is not None:
                raise NotImplementedError(f"profile: {name} is not offered; leave it out")
        self.activities = _activities(activities)
        if use_cuda:
            warnings.warn("profile: there is no CUDA; only the CPU is recorded", stacklevel=2)
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: plain.profile | None = None
        self._trace_id: str | None = None
        self._metadata: dict[str, Any] = {}
        self._step_mark: plain.record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # steps

    def start(self) -> None:
        """Begins, as the schedule says for the current step."""
        self._transit(ProfilerAction.NONE, self.current_action)
        self._mark_step()

    def stop(self) -> None:
        """Ends; `on_trace_ready` is called if something was recorded."""
        self._end_mark()
        self._transit(self.current_action, None)

    def step(self) -> None:
        """Tells that the next step begins."""
        self._end_mark()
        before = self.current_action
        action = self.schedule(self.step_num + 1)
        self.step_num += 1
        self.current_action = action
        self._transit(before, action)
        self._mark_step()

    def _mark_step(self) -> None:
        if self.record_steps:
            self._step_mark = plain.record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _end_mark(self) -> None:
        if self._step_mark is not None:
            self._step_mark.__exit__()
            self._step_mark = None

    def _transit(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """What lies between two steps. Warming up is recording that is thrown away."""
        none, warmup, save = (
            ProfilerAction.NONE,
            ProfilerAction.WARMUP,
            ProfilerAction.RECORD_AND_SAVE,
        )
        if before is none:
            if now is not None and now is not none:
                self.start_trace()
            return
        if before is warmup:
            if now is warmup:
                return
            self._throw_away()
            if now is none:
                warnings.warn("profile: the schedule warms up and does not record", stacklevel=4)
            elif now is not None:
                self.start_trace()
            return
        if before is ProfilerAction.RECORD and now in (ProfilerAction.RECORD, save):
            return
        self.stop_trace()
        if before is save or now is None:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        else:
            warnings.warn(
                f"profile: the schedule goes from RECORD to {now.name} without RECORD_AND_SAVE",
                stacklevel=4,
            )
        if now is not None and now is not none:
            self.start_trace()

    # recording

    def prepare_trace(self) -> None:
        """Makes ready for `start_trace`, which does so itself; PyTorch's name for it."""
        if self.profiler is None or not self.acc_events:
            self.profiler = plain.profile(
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                acc_events=self.acc_events,
            )

    def start_trace(self) -> None:
        """Begins to record."""
        before = self.profiler
        self.prepare_trace()
        assert self.profiler is not None
        try:
            self.profiler._start()
        except RuntimeError:
            self.profiler = before
            raise
        make_id = self.custom_trace_id_callback or (lambda: uuid.uuid4().hex.upper())
        self._trace_id = make_id()

    def stop_trace(self) -> None:
        """Ends recording; what was recorded can be asked for."""
        kept = self._recorded()
        kept._stop()
        if self.profile_memory and kept.recordings:
            from clew._insight.debug.memory import kept_blocks

            kept.recordings[-1].owners = kept_blocks()

    def _throw_away(self) -> None:
        kept = self._recorded()
        kept._stop()
        kept.recordings.pop()
        if not kept.recordings:
            self.profiler = None

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Raises NotImplementedError: stop and start the profiler instead.

        Args:
            enable: whether to record.
            activities: what to record.
        """
        raise NotImplementedError(
            "profile.toggle_collection_dynamic is not offered; call stop() and start()"
        )

    def _recorded(self) -> plain.profile:
        if self.profiler is None:
            raise AssertionError("profile: nothing was recorded yet; start the profiler first")
        return self.profiler

    # what was recorded

    def events(self) -> EventList[FunctionEvent]:
        """All events, in the order of their begins."""
        return self._recorded().function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """One entry for all events of the same name.

        Args:
            group_by_input_shape: a separate entry for each combination of input shapes.
            group_by_stack_n: a separate entry for each combination of that many innermost lines.
            group_by_overload_name: a separate entry for each form of an operation's arguments.

        Returns: a list whose `table()` is the text to print.
        """
        return self._recorded().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def by_line(self) -> _attribution.Rows[_attribution.LineRow]:
        """What each line of the program cost, forward and backward.

        A gradient rule counts for the line of its forward operation, an operation inside a
        library function for the line that called the library.

        Returns: rows with times in microseconds and, with `profile_memory`, bytes; the most
        expensive first. Their `table()` is the text to print.

        >>> x = clew.ones(4, requires_grad=True)
        >>> with clew.profiler.profile() as prof:
        ...     y = (x * 2).sum()
        ...     y.backward()
        >>> sorted((row.location.line, row.calls) for row in prof.by_line())
        [(2, 2), (3, 0)]
        """
        return _attribution.lines(self._finished())

    def by_module(self) -> _attribution.Rows[_attribution.ModuleRow]:
        """What each module cost, forward and backward, those in it included.

        Forward is the time of the module's calls, with the Python code in them; backward that of
        the gradient rules of what was computed there.

        Returns: rows with times in microseconds and, with `profile_memory`, bytes.

        >>> model = clew.nn.Sequential(clew.nn.Linear(4, 4), clew.nn.ReLU())
        >>> with clew.profiler.profile() as prof:
        ...     y = model(clew.ones(2, 4))
        >>> sorted(row.label for row in prof.by_module())
        ['(Sequential)', '(outside of modules)', '0', '1']
        """
        return _attribution.modules(self._finished())

    def peak(self) -> _attribution.Peak:
        """The moment at which most memory was alive, and what held it.

        Raises:
            RuntimeError: memory was not recorded.

        >>> with clew.profiler.profile(profile_memory=True) as prof:
        ...     x = clew.ones(1024)
        >>> prof.peak().rows[0].nbytes >= 4096
        True
        """
        return _attribution.peak(self._with_memory("peak"))

    def memory_timeline(self) -> list[Any]:
        """Every change of the memory in order: time, bytes, what is alive then, and for what.

        Raises:
            RuntimeError: memory was not recorded.
        """
        from clew.profiler import _memory_timeline

        return _memory_timeline.rows(self._with_memory("memory_timeline"))

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes how much memory was alive when, and what held it.

        Memory is divided by owner: parameters, gradients, the state of optimizers, buffers, and for
        the rest the module that it was allocated in, forward or backward.

        Args:
            path: the file; ".html" (a picture to move over with the mouse), ".svg" (the picture
                alone), ".json" or ".json.gz" (the numbers).
            device: None or "cpu".

        Raises:
            RuntimeError: memory was not recorded.
            ValueError: the path ends otherwise.
        """
        if device is not None and not str(device).startswith("cpu"):
            raise ValueError(f"export_memory_timeline: device must be 'cpu'; got {device!r}")
        from clew.profiler import _memory_timeline

        _memory_timeline.export(path, self._with_memory("export_memory_timeline"))

    def _finished(self) -> list[Any]:
        recordings = self._recorded().recordings
        if not recordings:
            raise AssertionError("profile: it is still recording; stop it first")
        return recordings

    def _with_memory(self, what: str) -> list[Any]:
        if not self.profile_memory:
            raise RuntimeError(f"{what}: it needs a profile with profile_memory=True")
        return self._finished()

    # files

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes a trace for Perfetto or chrome://tracing.

        Args:
            path: the file; compressed when it ends in ".gz".
            use_python_export: makes no difference: there is one way to write a trace.
        """
        from clew.autograd._chrome_trace import write_trace

        options = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        metadata: dict[str, Any] = {name: 1 for name in options if getattr(self, name)}
        metadata["trace_id"] = self._trace_id
        metadata.update(self._metadata)
        write_trace(path, self.events(), self._finished(), metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line for each event, outermost frame first, as flame graph programs read it.

        Args:
            path: the file.
            metric: the number at the end of each line; "self_cpu_time_total".

        Raises:
            RuntimeError: stacks were not recorded.
        """
        self._recorded().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the head of the traces that are written.

        Args:
            key: its name.
            value: the text.
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value to the head of the traces that are written.

        Args:
            key: its name.
            value: the value, as JSON.
        """
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets what makes the trace's id from the next cycle on.

        Args:
            callback: takes nothing, and returns the id.
        """
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The id of the current or last trace."""
        return self._trace_id


def _activities(given: Iterable[Any] | None) -> set[ProfilerActivity]:
    if given is None:
        return {ProfilerActivity.CPU}
    found: set[ProfilerActivity] = set()
    for item in given:
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"profile: activities must be ProfilerActivity members; got {item!r}")
        found.add(item)
    others = sorted(item.name for item in found - {ProfilerActivity.CPU})
    if others:
        warnings.warn(
            f"profile: {', '.join(others)} is not there; only the CPU is recorded", stacklevel=3
        )
    if ProfilerActivity.CPU not in found:
        raise AssertionError(
            "profile: no activity that can be recorded; activities must hold ProfilerActivity.CPU"
        )
    return {ProfilerActivity.CPU}
