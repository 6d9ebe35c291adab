"""Tables of a profile: the columns of PyTorch's, as plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.autograd._profiler_text import format_memory, format_time, sort_key

__all__ = ["build_table", "plain_table", "scaled_flops", "shorten"]

_FLOP_UNITS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def scaled_flops(largest: float) -> tuple[str, float]:
    """The unit in which counts up to `largest` read best, and its size."""
    size, unit = 1.0, _FLOP_UNITS[0]
    for name in _FLOP_UNITS[1:]:
        if largest < size * 1e3:
            break
        size, unit = size * 1e3, name
    return unit, size


def shorten(text: str, width: int, keep_end: bool = False) -> str:
    """The text in at most `width` characters, dots in place of what is left out."""
    if len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3 :] if keep_end else text[: width - 3] + "..."


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Columns as wide as what they hold, those in `left` adjusted to the left."""
    widths = [max([len(head), *(len(row[i]) for row in rows)]) for i, head in enumerate(heads)]

    def line(cells: Sequence[str]) -> str:
        aligned = (
            cell.ljust(widths[i]) if i in left else cell.rjust(widths[i])
            for i, cell in enumerate(cells)
        )
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([rule, line(heads), rule, *(line(row) for row in rows), rule])


_SOURCE = "Source Location"


def _columns(
    events: Any,
    whole: float,
    source_width: int,
    name_width: int,
    shapes_width: int,
    time_unit: str | None,
    with_memory: bool,
    with_flops: bool,
) -> dict[str, Callable[[Any], str]]:
    """What the cells of each column say of an event, by the columns' heads."""

    def share(time: float) -> str:
        return f"{time / whole * 100:.2f}%" if whole else "--"

    columns: dict[str, Callable[[Any], str]] = {"Name": lambda e: shorten(str(e.key), name_width)}
    if any(event.overload_name for event in events) and not hasattr(events[0], "time_range"):
        columns["Overload Name"] = lambda e: shorten(e.overload_name, name_width)
    columns["Self CPU %"] = lambda e: share(e.self_cpu_time_total)
    columns["Self CPU"] = lambda e: format_time(e.self_cpu_time_total, time_unit)
    columns["CPU total %"] = lambda e: share(e.cpu_time_total)
    columns["CPU total"] = lambda e: format_time(e.cpu_time_total, time_unit)
    columns["CPU time avg"] = lambda e: format_time(e.cpu_time, time_unit)
    if with_memory:
        columns["CPU Mem"] = lambda e: format_memory(e.cpu_memory_usage)
        columns["Self CPU Mem"] = lambda e: format_memory(e.self_cpu_memory_usage)
    columns["# of Calls"] = lambda e: str(e.count)
    if any(event.input_shapes for event in events):
        columns["Input Shapes"] = lambda e: shorten(str(e.input_shapes or "[]"), shapes_width)
    if any(event.stack for event in events):
        columns[_SOURCE] = lambda e: shorten(e.stack[0], source_width, True) if e.stack else ""
    if with_flops:
        unit, size = scaled_flops(max((event.flops for event in events), default=0))
        columns[f"Total {unit}"] = lambda e: f"{e.flops / size:.3f}" if e.flops > 0 else "--"
    return columns


def build_table(
    events: Any,
    *,
    sort_by: str | None,
    row_limit: int,
    max_src_column_width: int,
    max_name_column_width: int,
    max_shapes_column_width: int,
    header: str | None,
    top_level_events_only: bool,
    time_unit: str | None,
    profile_memory: bool,
    with_flops: bool,
) -> str:
    """The text of `EventList.table`."""
    if len(events) == 0:
        return ""
    whole = events.self_cpu_time_total
    shown = sorted(events, key=sort_key(sort_by), reverse=True) if sort_by else list(events)
    if top_level_events_only:
        shown = [event for event in shown if event.cpu_parent is None]
    if row_limit >= 0:
        shown = shown[:row_limit]

    columns = _columns(
        events,
        whole,
        max_src_column_width,
        max_name_column_width,
        max_shapes_column_width,
        time_unit,
        profile_memory,
        with_flops,
    )
    heads = list(columns)
    rows = []
    for event in shown:
        rows.append([cell(event) for cell in columns.values()])
        if _SOURCE in columns:  # the other lines of a stack stand below the first
            at = heads.index(_SOURCE)
            more = [shorten(s, max_src_column_width, True) for s in event.stack[1:]]
            rows += [["" if i != at else text for i in range(len(heads))] for text in more]

    left = [0] + [i for i, head in enumerate(heads) if head == _SOURCE]
    text = plain_table(heads, rows, left)
    width = text.index("\n")
    above = ""
    if header is not None:
        above = f"{'=' * width}\n{header}\n"
    if top_level_events_only:
        above += f"{'=' * width}\nThis report only displays events that lie in no other\n"
    return f"{above}{text}\nSelf CPU time total: {format_time(whole, time_unit)}\n"
