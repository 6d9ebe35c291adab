"""What a profile consists of: events with their nesting, their averages, lists with tables."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from clew._base.whole_files import replacing
from clew.autograd._profiler_text import format_memory as format_memory
from clew.autograd._profiler_text import format_time

__all__ = [
    "DeviceType",
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
]


class DeviceType(enum.Enum):
    """Where the work of an event was done: always the CPU, the others are there to be asked for."""

    CPU = 0
    CUDA = 1
    HIP = 6
    XLA = 9
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


class Scope(enum.IntEnum):
    """What an event stands for; the numbers are PyTorch's."""

    FUNCTION = 0  # an operation
    BACKWARD_FUNCTION = 1  # a gradient rule
    MODULE = 2  # the call of a module
    USER_SCOPE = 7  # a record_function range


class Interval:
    """A span of time.

    Args:
        start: in microseconds.
        end: in microseconds.

    Example:
        >>> from clew.autograd.profiler_util import Interval
        >>> Interval(2.0, 5.0).elapsed_us()
        3.0
    """

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length in microseconds."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start:.3f}us, {self.end:.3f}us)"


class FormattedTimesMixin:
    """Averages and texts of the times that a class has, of FunctionEvent and FunctionEventAvg.

    Example:
        >>> from clew.autograd.profiler_util import FormattedTimesMixin
        >>> class Times(FormattedTimesMixin):
        ...     cpu_time_total, self_cpu_time_total, count = 30.0, 30.0, 2
        >>> Times().cpu_time, Times().cpu_time_str
        (15.0, '15.000us')
    """

    cpu_time_total: float
    self_cpu_time_total: float
    count: int
    # There is no other device; programs that ask for its times get none.
    device_time_total = 0.0
    self_device_time_total = 0.0
    device_memory_usage = 0
    self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """Microseconds a call, with everything inside."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds a call on another device: none."""
        return 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return format_time(self.self_cpu_time_total)

    @property
    def device_time_str(self) -> str:
        """`device_time` as text."""
        return format_time(0.0)

    @property
    def device_time_total_str(self) -> str:
        """`device_time_total` as text."""
        return format_time(0.0)

    @property
    def self_device_time_total_str(self) -> str:
        """`self_device_time_total` as text."""
        return format_time(0.0)


class FunctionEvent(FormattedTimesMixin):
    """One call: of an operation, a gradient rule, a range that `record_function` marks, a module.

    Args:
        id: its number among the events.
        name: the operation's name ("mul", "linear"), the node's ("MulBackward0"), the range's.
        thread: number of the thread.
        start_us, end_us: when it began and ended, in microseconds.
        kind: "op" or what else it is.
        overload_name: of an operation with several forms.
        scope: what the event stands for, a number of PyTorch's.
        sequence_nr: number of the node that was recorded or runs; -1 if none.
        is_backward: whether it is, or lies in, a gradient rule.
        place: the user's line and module, if they were recorded.
        stack: the lines that led here, innermost first ("model.py(48): forward"), where there is no
            `place`.
        flops: floating-point operations; 0 where none are counted.

    Attributes:
        time_range: from begin to end, in microseconds.
        cpu_parent: the event that this one lies in; None at the top.
        cpu_children: the events that lie directly in it.
        input_shapes: sizes of the tensor arguments, when they were recorded.
        input_dtypes: their dtypes.
        stack: the lines that led here, innermost first; without `with_stack` the innermost one
            only. Of a gradient rule those of its forward operation.
        cpu_memory_usage: bytes allocated less bytes freed, with everything inside.
        self_cpu_memory_usage: the same, without what lies inside.

    Example:
        >>> from clew.autograd.profiler import FunctionEvent
        >>> event = FunctionEvent(0, "mul", thread=1, start_us=2.0, end_us=5.0)
        >>> event.cpu_time_total
        3.0
    """

    __slots__ = (
        "concrete_inputs",
        "count",
        "cpu_children",
        "cpu_memory_usage",
        "cpu_parent",
        "enclosing",
        "flops",
        "fwd_thread",
        "id",
        "input_dtypes",
        "input_shapes",
        "is_backward",
        "is_user_annotation",
        "kind",
        "name",
        "output_shapes",
        "overload_name",
        "place",
        "scope",
        "self_cpu_memory_usage",
        "self_cpu_time_total",
        "sequence_nr",
        "stack",
        "thread",
        "time_range",
    )

    device_type = DeviceType.CPU
    device_index = 0
    node_id = -1
    is_async = False
    is_remote = False
    is_legacy = False
    use_device = None

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        kind: str = "op",
        overload_name: str = "",
        scope: int = Scope.FUNCTION,
        sequence_nr: int = -1,
        is_backward: bool = False,
        place: Any = None,
        stack: Sequence[str] = (),
        flops: int = 0,
    ) -> None:
        self.id = id
        self.name = name
        self.overload_name = overload_name
        self.kind = kind
        self.thread = thread
        self.fwd_thread: int | None = None
        self.time_range = Interval(start_us, end_us)
        self.scope = scope
        self.sequence_nr = sequence_nr
        self.is_backward = is_backward
        self.is_user_annotation = scope == Scope.USER_SCOPE
        self.place = place
        self.stack: Sequence[str] = stack if place is None else place.stack
        # Of what was recorded with its shapes.
        self.input_shapes: Sequence[Any] = ()
        self.input_dtypes: Sequence[str] = ()
        self.output_shapes: Sequence[Any] = ()
        self.concrete_inputs: dict[str, Any] | None = None
        self.flops = flops
        self.count = 1
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.enclosing: FunctionEvent | None = None  # the call of a module that it lies in
        self.self_cpu_time_total = end_us - start_us
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0

    @property
    def location(self) -> Any:
        """The user's line, with `file`, `line`, `function` and `source`; None if unknown."""
        return None if self.place is None else self.place.location

    @property
    def module(self) -> str | None:
        """Path of the module that was being called; None outside of modules."""
        return None if self.place is None else self.place.module

    @property
    def key(self) -> str:
        """What averages are grouped by: the name, one for all steps ("ProfilerStep*")."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def trace_name(self) -> str:
        """What a trace shows: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from begin to end."""
        return self.time_range.elapsed_us()

    def put_into(self, parent: FunctionEvent) -> None:
        """Makes the event lie in another, whose own time gets less.

        Args:
            parent: the other event.
        """
        self.cpu_parent = parent
        parent.cpu_children.append(self)
        parent.self_cpu_time_total -= self.cpu_time_total

    def add_memory(self, nbytes: int) -> None:
        """Counts bytes that were allocated here, for this event and all around it.

        Args:
            nbytes: how many; below zero for bytes that were freed.
        """
        self.self_cpu_memory_usage += nbytes
        event: FunctionEvent | None = self
        while event is not None:
            event.cpu_memory_usage += nbytes
            event = event.cpu_parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"cpu_memory_usage={self.cpu_memory_usage} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """All events of one key taken together; times are in microseconds.

    Attributes:
        key: their name.
        count: how many there are.
        cpu_time_total: time with everything inside; `cpu_time` is that of one call.
        self_cpu_time_total: time without what lies inside.
        cpu_memory_usage: bytes allocated less bytes freed, with everything inside.
        self_cpu_memory_usage: the same, without what lies inside.
        flops: floating-point operations of all together.
        input_shapes: the shapes that they were grouped by, if any.
        stack: the lines that they were grouped by, if any.

    Example:
        >>> from clew.autograd.profiler import FunctionEvent, FunctionEventAvg
        >>> average = FunctionEventAvg()
        >>> for i in range(2):
        ...     _ = average.add(FunctionEvent(i, "mul", 1, start_us=0.0, end_us=3.0))
        >>> average.key, average.count, average.cpu_time_total
        ('mul', 2, 6.0)
    """

    is_async = False
    is_remote = False
    is_legacy = False
    device_type = DeviceType.CPU
    node_id = -1
    use_device = None

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = ""
        self.overload_name = ""
        self.stack: list[str] = []
        self.scope: int | None = None
        self.is_user_annotation = False
        self.cpu_parent: Any = None
        self.cpu_children: list[FunctionEvent] = []

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Takes in an event of the same key, or other averages.

        Args:
            other: the event, or the averages.

        Returns:
            The averages themselves.
        """
        if self.key is None:
            self.key = other.key
            self.scope = other.scope
            self.input_shapes = other.input_shapes
            self.overload_name = other.overload_name
            self.stack = list(other.stack)
            self.cpu_parent = other.cpu_parent
            self.is_user_annotation = other.is_user_annotation
        elif other.key != self.key:
            raise ValueError(
                f"FunctionEventAvg.add: expected an event called {self.key!r}; got {other.key!r}"
            )
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


T = TypeVar("T", bound="FunctionEvent | FunctionEventAvg")


class EventList(list[T], Generic[T]):
    """A list of events or of averages that can be shown as a table.

    Args:
        events: what it holds.
        profile_memory: whether memory was recorded.
        with_flops: whether floating-point operations were counted.
        record_shapes: whether shapes were recorded.

    Example:
        >>> from clew.autograd.profiler import EventList, FunctionEvent
        >>> events = EventList([FunctionEvent(0, "mul", 1, start_us=0.0, end_us=3.0)])
        >>> events.self_cpu_time_total
        3.0
    """

    def __init__(
        self,
        events: Iterable[T] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        record_shapes: bool = False,
    ) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._record_shapes = record_shapes

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from clew._tensor import html as _html

        return _html.table(str(self))

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each without what lies inside: the time that was covered."""
        return math.fsum(event.self_cpu_time_total for event in self)

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
        """The events as a table to print.

        Args:
            sort_by: the attribute to sort by, the largest first: "cpu_time", "cpu_time_total",
                "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops" or
                "count"; as recorded when not given.
            row_limit: how many rows to show; -1 for all.
            max_src_column_width: characters for a source line.
            max_name_column_width: characters for a name.
            max_shapes_column_width: characters for shapes.
            header: a line above the table.
            top_level_events_only: leave out what lies in other events.
            time_unit: "s", "ms" or "us" for all times; what reads best when not given.

        Returns: the text.
        """
        from clew.autograd._profiler_table import build_table

        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """One entry for all events of the same name.

        Args:
            group_by_input_shapes: a separate entry for each combination of input shapes.
            group_by_stack_n: a separate entry for each combination of that many innermost lines.
            group_by_overload_name: a separate entry for each form of an operation's arguments.

        Returns: the averages, in the order in which the names appeared.

        Raises:
            RuntimeError: shapes are asked for that were not recorded.
        """
        if group_by_input_shapes and not self._record_shapes:
            raise RuntimeError(
                "key_averages: grouping by input shapes needs a profile with record_shapes=True"
            )
        averages: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                event.is_user_annotation,
                event.overload_name if group_by_overload_name else "",
                str(event.input_shapes) if group_by_input_shapes else "",
                *event.stack[:group_by_stack_n],
            )
            found = averages.get(key)
            if found is None:
                found = averages[key] = FunctionEventAvg()
            found.add(event)
        for average in averages.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(
            averages.values(),
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            record_shapes=self._record_shapes,
        )

    def total_average(self) -> FunctionEventAvg:
        """All events as one entry, called "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        total.stack = []
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write beside each stack."""
        return ["self_cpu_time_total"]

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line for each event, outermost frame first, as flame graph programs read it.

        Args:
            path: the file to write.
            metric: the number at the end of each line; "self_cpu_time_total", in microseconds.

        Raises:
            ValueError: the metric is another one.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(
                "export_stacks: metric must be one of "
                f"{self.supported_export_stacks_metrics()}; got {metric!r}"
            )
        clean = str.maketrans(" ;\t\n", "____")
        with replacing(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric))
                if value > 0 and event.stack:
                    frames = [frame.translate(clean) for frame in reversed(event.stack)]
                    file.write(";".join(frames) + f" {value}\n")

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for Perfetto or chrome://tracing.

        Args:
            path: the file to write; compressed when it ends in ".gz".
        """
        from clew.autograd._chrome_trace import write_trace

        events = [event for event in self if isinstance(event, FunctionEvent)]
        if len(events) < len(self):
            raise TypeError(
                "export_chrome_trace: averages have no begin and end; export the events instead"
            )
        write_trace(path, events)
