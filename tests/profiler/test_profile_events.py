"""Events, averages and tables, of recordings that are written out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from clew._base.provenance import Location
from clew.autograd._recording import (
    FLAG_BACKWARD,
    FLAG_INPLACE,
    RECORD,
    Kind,
    Place,
    Recording,
)
from clew.autograd.profiler_util import EventList, format_memory, format_time
from clew.profiler import _attribution, _memory_timeline

US = 1000  # nanoseconds


def location(line: int, file: str = "model.py") -> Location:
    """A location on the given line."""
    code = compile("\n" * (line - 1) + "f()", file, "exec")
    return Location(code, next(start for start, _, at in code.co_lines() if at == line))


class Book:
    """Writes a recording, times in microseconds."""

    def __init__(self, **options: object) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.names: list[str] = []
        self.places: list[Place] = []
        self.details: list[int] = []
        self.options = options

    def place(self, line: int, module: str | None = None, kind: str = "Block") -> int:
        root = None if module is None else "Net"
        self.places.append(Place(location(line), module, kind if module else root, root))
        return len(self.places) - 1

    def add(
        self, kind, name, begin, end, parent=-1, place=-1, value=-1, extra=0, flags=0, thread=7
    ):
        if name not in self.names:
            self.names.append(name)
        row = (begin * US, end * US, value, extra, self.names.index(name), place, parent, -1)
        self.rows.append((*row, thread, kind, flags, 0))
        return len(self.rows) - 1

    def memory(self, at, nbytes, address, parent=-1, place=-1, flags=0):
        kind = Kind.ALLOCATION if nbytes > 0 else Kind.FREE
        return self.add(kind, "", at, at, parent, place, abs(nbytes), address, flags)

    def recording(self, **more: object) -> Recording:
        return Recording(
            np.array(self.rows, dtype=RECORD),
            self.names,
            places=self.places,
            details=self.details,
            dtypes=["float32"],
            stopped=1000 * US,
            **{**self.options, **more},
        )


def test_self_time_is_what_the_children_leave():
    book = Book()
    outer = book.add(Kind.RANGE, "outer", 0, 100)
    inner = book.add(Kind.OP, "conv2d", 10, 60, outer)
    book.add(Kind.OP, "_conv", 20, 50, inner)
    book.add(Kind.OP, "mul", 70, 90, outer)
    events = book.recording().events
    assert [e.self_cpu_time_total for e in events] == [30, 20, 30, 20]
    assert [e.cpu_time_total for e in events] == [100, 50, 30, 20]
    assert [c.name for c in events[0].cpu_children] == ["conv2d", "mul"]
    assert events[2].cpu_parent is events[1]
    assert EventList(events).self_cpu_time_total == 100


def test_module_calls_are_shown_only_when_wanted():
    book = Book()
    call = book.add(Kind.MODULE, "blocks.0", 0, 100, place=book.place(3, "blocks.0"))
    book.add(Kind.OP, "mul", 10, 30, call)
    hidden = book.recording()
    assert [e.name for e in hidden.events] == ["mul"]
    assert hidden.events[0].cpu_parent is None
    shown = book.recording(with_modules=True)
    assert [e.name for e in shown.events] == ["nn.Module: blocks.0", "mul"]
    assert shown.events[0].self_cpu_time_total == 80


def test_an_event_that_did_not_end_ends_with_the_recording():
    book = Book()
    book.add(Kind.RANGE, "open", 100, 0)
    assert book.recording().events[0].cpu_time_total == 900


def test_inplace_forms_have_their_underscore():
    book = Book()
    book.add(Kind.OP, "mul", 0, 1, flags=FLAG_INPLACE)
    assert book.recording().events[0].name == "mul_"


def test_averages():
    book = Book()
    outer = book.add(Kind.OP, "linear", 0, 40)
    book.add(Kind.OP, "mm", 5, 15, outer)
    book.add(Kind.OP, "mm", 20, 40)
    rows = {row.key: row for row in EventList(book.recording().events).key_averages()}
    assert list(rows) == ["linear", "mm"]
    mm = rows["mm"]
    assert (mm.count, mm.cpu_time_total, mm.self_cpu_time_total, mm.cpu_time) == (2, 30, 30, 15)
    assert rows["linear"].self_cpu_time_total == 30
    total = EventList(book.recording().events).total_average()
    assert (total.key, total.count, total.self_cpu_time_total) == ("Total", 3, 60)


def test_memory_counts_for_all_around():
    book = Book(profile_memory=True)
    outer = book.add(Kind.OP, "linear", 0, 40)
    book.memory(1, 100, 0xA, outer)
    inner = book.add(Kind.OP, "mm", 5, 15, outer)
    book.memory(6, 40, 0xB, inner)
    book.memory(7, -40, 0xB, inner)
    book.memory(8, 8, 0xC, inner)
    book.memory(50, -100, 0xA)
    linear, mm = book.recording().events
    assert (linear.cpu_memory_usage, linear.self_cpu_memory_usage) == (108, 100)
    assert (mm.cpu_memory_usage, mm.self_cpu_memory_usage) == (8, 8)


def test_arithmetic_counts_once_and_at_the_outermost():
    book = Book(with_flops=True, record_shapes=True)
    conv = book.add(Kind.OP, "conv1d", 0, 10)
    inner = book.add(Kind.OP, "_conv", 1, 9, conv, value=5)
    other = book.add(Kind.OP, "mul", 20, 30)
    shapes = [2, 0, 3, 1, 2, 8, 0, 3, 4, 2, 3, 1, 0, 3, 1, 4, 6, 0]
    for i in (conv, inner):
        book.rows[i] = (*book.rows[i][:7], 0, *book.rows[i][8:])
    book.details = [*shapes, 1, 0, 1, 5, 1, 0, 1, 5, 0]
    book.rows[other] = (*book.rows[other][:7], len(shapes), *book.rows[other][8:])
    node = book.add(Kind.NODE, "ConvBackward0", 40, 60, value=5, extra=0b10, flags=FLAG_BACKWARD)
    book.add(Kind.OP, "_conv_weight", 41, 50, node, flags=FLAG_BACKWARD)
    flops = {e.name: e.flops for e in book.recording().events}
    product = 2 * (4 * 6) * 2 * 3
    # Only the weight's gradient is wanted: one product of the forward's size.
    assert flops == {
        "conv1d": product,
        "_conv": 0,
        "mul": 5,
        "ConvBackward0": product,
        "_conv_weight": 0,
    }


def test_recorded_shapes_and_arguments():
    book = Book(record_shapes=True)
    book.add(Kind.OP, "sum", 0, 1)
    book.rows[0] = (*book.rows[0][:7], 0, *book.rows[0][8:])
    half = int(np.float64(0.5).view(np.int64))
    # Inputs (2, 3) and none; output (2,); dim=[1], keepdim=False, p=0.5.
    book.details = [2, 0, 2, 2, 3, -1, 1, 0, 1, 2, 3, 0, 2, 1, 1, 1, 1, 1, 0, 2, 3, 1, half]
    recording = book.recording(arguments=[["dim", "keepdim", "p"]])
    event = recording.events[0]
    assert event.input_shapes == [[2, 3], []]
    assert event.input_dtypes == ["float32", ""]
    assert event.output_shapes == [[2]]
    assert event.concrete_inputs == {"dim": [1], "keepdim": False, "p": 0.5}


def test_grouping_by_shape_needs_shapes():
    events = EventList(Book().recording().events)
    with pytest.raises(RuntimeError, match="record_shapes=True"):
        events.key_averages(group_by_input_shapes=True)


def table_of(book: Book, **options):
    recording = book.recording()
    events = EventList(
        recording.events,
        profile_memory=recording.profile_memory,
        with_flops=recording.with_flops,
        record_shapes=recording.record_shapes,
    )
    return events.key_averages().table(**options)


def columns(text: str) -> list[dict[str, str]]:
    """Rows of a table as dicts; columns are told apart by two spaces."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("---"))
    edges = []
    start = 0
    for part in lines[rule].split("  "):
        edges.append((start, start + len(part)))
        start += len(part) + 2
    cells = [[line[a:b].strip() for a, b in edges] for line in lines[rule + 1 :]]
    end = next(i for i, line in enumerate(lines[rule + 3 :]) if line.startswith("---"))
    return [dict(zip(cells[0], row)) for row in cells[2 : 2 + end]]


def test_table_has_pytorchs_columns():
    book = Book(profile_memory=True)
    outer = book.add(Kind.OP, "linear", 0, 4000)
    inner = book.add(Kind.OP, "mm", 1000, 2000, outer)
    book.memory(1500, 2048, 0xB, inner)
    book.add(Kind.OP, "mm", 5000, 6000)
    text = table_of(book, sort_by="self_cpu_time_total")
    rows = columns(text)
    assert rows[0] == {
        "Name": "linear",
        "Self CPU %": "60.00%",
        "Self CPU": "3.000ms",
        "CPU total %": "80.00%",
        "CPU total": "4.000ms",
        "CPU time avg": "4.000ms",
        "CPU Mem": "2.00 KB",
        "Self CPU Mem": "0 B",
        "# of Calls": "1",
    }
    assert rows[1]["CPU time avg"] == "1.000ms" and rows[1]["# of Calls"] == "2"
    assert text.splitlines()[-1] == "Self CPU time total: 5.000ms"


def test_table_options():
    book = Book()
    outer = book.add(Kind.OP, "a" * 80, 0, 10)
    book.add(Kind.OP, "small", 1, 2, outer)
    book.add(Kind.OP, "large", 20, 60)
    assert [r["Name"] for r in columns(table_of(book, sort_by="cpu_time", row_limit=1))] == [
        "large"
    ]
    rows = columns(table_of(book, time_unit="ms", max_name_column_width=20))
    assert rows[0]["Name"] == "a" * 17 + "..."
    assert rows[2]["CPU total"] == "0.040ms"
    shown = columns(EventList(book.recording().events).table(top_level_events_only=True))
    assert [r["Name"][:5] for r in shown] == ["aaaaa", "large"]
    assert "HEAD" in table_of(book, header="HEAD")
    with pytest.raises(ValueError, match="sort_by must be one of"):
        table_of(book, sort_by="nonsense")
    with pytest.raises(ValueError, match="time_unit"):
        table_of(book, time_unit="h")


@pytest.mark.parametrize(
    "time, text", [(0.5, "0.500us"), (999.9994, "999.999us"), (1e3, "1.000ms"), (2.5e6, "2.500s")]
)
def test_times_read_well(time, text):
    assert format_time(time) == text


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KB"), (-3 << 20, "-3.00 MB")]
)
def test_bytes_read_well(size, text):
    assert format_memory(size) == text


def test_grouping_by_lines():
    book = Book()
    one, two = book.place(3), book.place(4)
    book.add(Kind.OP, "mul", 0, 1, place=one)
    book.add(Kind.OP, "mul", 2, 3, place=two)
    book.add(Kind.OP, "mul", 4, 5, place=one)
    rows = EventList(book.recording().events).key_averages(group_by_stack_n=1)
    assert [(row.count, row.stack) for row in rows] == [
        (2, ["model.py(3): <module>"]),
        (1, ["model.py(4): <module>"]),
    ]


def test_backward_counts_for_the_forward_line():
    book = Book(profile_memory=True)
    forward, loss = book.place(3, "fc"), book.place(9)
    book.add(Kind.OP, "linear", 0, 10, place=forward, value=1)
    whole = book.add(Kind.CALL, "backward", 20, 100, place=loss, flags=FLAG_BACKWARD)
    node = book.add(
        Kind.NODE, "LinearBackward0", 30, 70, whole, forward, value=1, flags=FLAG_BACKWARD
    )
    book.add(Kind.OP, "mm", 40, 60, node, forward, flags=FLAG_BACKWARD)
    rows = {row.location.line: row for row in _attribution.lines([book.recording()])}
    assert (rows[3].forward_us, rows[3].backward_us, rows[3].calls) == (10, 40, 1)
    assert (rows[9].forward_us, rows[9].backward_us, rows[9].calls) == (0, 40, 0)
    assert sum(row.total_us for row in rows.values()) == 90


def test_modules_hold_what_is_in_them():
    book = Book(profile_memory=True)
    root, block, inner = book.place(1, ""), book.place(2, "blocks.0"), book.place(3, "blocks.0.fc")
    net = book.add(Kind.MODULE, "", 0, 100, place=root)
    call = book.add(Kind.MODULE, "blocks.0", 10, 60, net, block)
    deep = book.add(Kind.MODULE, "blocks.0.fc", 20, 40, call, inner)
    op = book.add(Kind.OP, "linear", 22, 32, deep, inner)
    book.memory(25, 64, 0xA, op, inner)
    book.add(Kind.NODE, "LinearBackward0", 200, 230, place=inner, value=1, flags=FLAG_BACKWARD)
    rows = {row.module: row for row in _attribution.modules([book.recording()])}
    assert set(rows) == {"", "blocks", "blocks.0", "blocks.0.fc"}
    forward = {path: (row.forward_us, row.self_forward_us) for path, row in rows.items()}
    assert forward == {
        "": (100, 50),
        "blocks": (50, 0),  # a list is not called: what its members took
        "blocks.0": (50, 30),
        "blocks.0.fc": (20, 20),
    }
    assert {row.backward_us for row in rows.values()} == {30}
    assert [path for path, row in rows.items() if row.self_backward_us] == ["blocks.0.fc"]
    assert {row.allocated for row in rows.values()} == {64}
    assert rows[""].label == "(Net)"


def peak_book() -> Book:
    book = Book(profile_memory=True, live_bytes=1000)
    for i in range(3):
        at = book.place(48, f"blocks.{i}.attn")
        book.memory(10 + i, 2000, 0x10 + i, place=at)
    head = book.place(60, "head")
    book.memory(20, 500, 0x20, place=head)
    book.memory(21, -500, 0x20)
    book.memory(22, -400, 0x99)  # was there before
    book.memory(23, 950, 0x21, place=head, flags=FLAG_BACKWARD)
    book.memory(24, -2000, 0x10)
    return book


def test_peak_folds_siblings():
    found = _attribution.peak([peak_book().recording()])
    assert (found.bytes, found.before, found.time_us) == (7550, 600, 23)
    assert [(r.label, r.nbytes, r.blocks, r.phase) for r in found.rows] == [
        ("blocks.*.attn, line 48", 6000, 3, "forward"),
        ("head, line 60", 950, 1, "backward"),
        ("what was there before the profile", 600, 0, "before"),
    ]
    assert found.rows[0].share == pytest.approx(6000 / 7550)
    assert "79% is held by blocks.*.attn, line 48" in str(found)


def test_one_sibling_alone_keeps_its_number():
    book = Book(profile_memory=True)
    book.memory(1, 100, 0xA, place=book.place(5, "blocks.2.attn"))
    assert _attribution.peak([book.recording()]).rows[0].label == "blocks.2.attn, line 5"


@pytest.mark.parametrize(
    ("paths", "where"),
    [(["0.1", "1.1"], "Net.*.*"), (["2"], "Net.2"), ([""], "(Net)"), (["head"], "head")],
)
def test_a_path_of_numbers_alone_stands_after_the_class(paths, where):
    book = Book(profile_memory=True)
    for i, path in enumerate(paths):
        book.memory(i, 100, 0xA + i, place=book.place(10, path))
    recordings = [book.recording()]
    assert [r.label for r in _attribution.peak(recordings).rows] == [f"{where}, line 10"]
    if paths[0]:
        assert f" {where} " in str(_attribution.lines(recordings))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("buf = clew.zeros(8)", "buf, "),
        ("self.mask: Tensor = a == b", "self.mask, "),
        ("h[i] = x * 2", "h[i], "),
        ("h.append(x * 2)", ""),
        ("f(a == b)", ""),
        ("a == b", ""),
        ("f(x=3)", ""),
    ],
)
def test_outside_of_modules_the_variable_is_named(source, name):
    location = SimpleNamespace(line=10, source=source)
    row = _attribution.Holder(None, None, location, "forward")
    assert row.label == f"{name}line 10"


def test_peak_before_anything():
    book = Book(profile_memory=True, live_bytes=50)
    book.memory(1, -20, 0xA)
    found = _attribution.peak([book.recording()])
    assert (found.bytes, found.before, len(found.rows)) == (50, 50, 1)


def test_memory_timeline_rows():
    rows = _memory_timeline.rows([peak_book().recording()])
    assert [row.live_bytes for row in rows] == [3000, 5000, 7000, 7500, 7000, 6600, 7550, 5550]
    freed = rows[-1]
    assert (freed.action, freed.nbytes, freed.module) == ("free", 2000, "blocks.0.attn")
    assert freed.location.line == 48
    assert (rows[5].phase, rows[5].location) == ("before", None)


def test_memory_series_adds_up():
    found = _memory_timeline.series([peak_book().recording()])
    assert [sum(row) for row in found.bytes] == [
        1000, 3000, 5000, 7000, 7500, 7000, 6600, 7550, 5550
    ]  # fmt: skip
    assert found.groups[0] == "before the profile"
    assert found.groups[1] == "blocks.*.attn, forward"
    assert found.total(found.peak_index) == 7550


def test_a_long_series_keeps_its_peak():
    book = Book(profile_memory=True)
    for i in range(5000):
        book.memory(i, 10 if i != 3777 else 9999, i, place=-1)
        book.memory(i, -(10 if i != 3777 else 9999), i)
    found = _memory_timeline.series([book.recording()], most_times=50)
    assert len(found.times_us) <= 52 and found.total(found.peak_index) == 9999
