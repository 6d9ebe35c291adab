"""Tables of a profile: the columns of PyTorch's, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
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

    with_stack = any(event.stack for event in events)
    with_shapes = any(event.input_shapes for event in events)
    with_overloads = any(event.overload_name for event in events) and not hasattr(
        events[0], "time_range"
    )
    flop_unit, flop_size = scaled_flops(max((event.flops for event in events), default=0))

    heads = ["Name"]
    if with_overloads:
        heads.append("Overload Name")
    heads += ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if profile_memory:
        heads += ["CPU Mem", "Self CPU Mem"]
    heads.append("# of Calls")
    if with_shapes:
        heads.append("Input Shapes")
    if with_stack:
        heads.append("Source Location")
    if with_flops:
        heads.append(f"Total {flop_unit}")

    def share(time: float) -> str:
        return f"{time / whole * 100:.2f}%" if whole else "--"

    rows = []
    for event in shown:
        row = [shorten(str(event.key), max_name_column_width)]
        if with_overloads:
            row.append(shorten(event.overload_name, max_name_column_width))
        row += [
            share(event.self_cpu_time_total),
            format_time(event.self_cpu_time_total, time_unit),
            share(event.cpu_time_total),
            format_time(event.cpu_time_total, time_unit),
            format_time(event.cpu_time, time_unit),
        ]
        if profile_memory:
            row += [
                format_memory(event.cpu_memory_usage),
                format_memory(event.self_cpu_memory_usage),
            ]
        row.append(str(event.count))
        if with_shapes:
            row.append(shorten(str(event.input_shapes or "[]"), max_shapes_column_width))
        more: list[str] = []
        if with_stack:
            lines = [shorten(s, max_src_column_width, True) for s in event.stack] or [""]
            row.append(lines[0])
            more = lines[1:]
        if with_flops:
            row.append(f"{event.flops / flop_size:.3f}" if event.flops > 0 else "--")
        rows.append(row)
        # The other lines of a stack stand below the first.
        at = heads.index("Source Location") if with_stack else 0
        rows += [["" if i != at else text for i in range(len(heads))] for text in more]

    left = [0] + [i for i, head in enumerate(heads) if head == "Source Location"]
    text = plain_table(heads, rows, left)
    width = text.index("\n")
    above = ""
    if header is not None:
        above = f"{'=' * width}\n{header}\n"
    if top_level_events_only:
        above += f"{'=' * width}\nThis report only displays events that lie in no other\n"
    return f"{above}{text}\nSelf CPU time total: {format_time(whole, time_unit)}\n"
