"""What became of the operations of a region: which ran together, and what ended the waiting."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from clew import _C

__all__ = ["Call", "End", "Pass", "Report", "last_report"]


@dataclass(frozen=True)
class Call:
    """One operation: its name, and the line that called it."""

    operation: str
    place: str


@dataclass(frozen=True)
class Pass:
    """Operations that ran together, from one end of their tensors to the other.

    Attributes:
        calls: the operations in order.
        bytes_saved: bytes of results that were never written to memory.
        why_ended: why the operation after the last one is not part of it; None where none followed.
    """

    calls: tuple[Call, ...]
    bytes_saved: int
    why_ended: str | None

    @property
    def fused(self) -> bool:
        """Whether there are several."""
        return len(self.calls) > 1


@dataclass(frozen=True)
class End:
    """A moment when what waited was run.

    Attributes:
        why: "observed": something asked for values; "end of the region"; "many calls": no more may
            wait; "elsewhere": another thread asked, or memory was about to be written.
        calls: how many operations ran then.
        place: the line that asked; "" where none did.
    """

    why: str
    calls: int
    place: str


@dataclass(frozen=True)
class Report:
    """The account of one region.

    Attributes:
        passes: what ran together.
        ends: when it ran, and why then.
        complete: False where there was more than is kept (16,384 operations).
        result: what the function returned that :meth:`explain` called.
    """

    passes: tuple[Pass, ...]
    ends: tuple[End, ...]
    complete: bool = True
    result: Any = field(default=None, repr=False, compare=False)

    @property
    def calls(self) -> int:
        """How many operations waited."""
        return sum(len(p.calls) for p in self.passes)

    @property
    def bytes_saved(self) -> int:
        """Bytes of results that were never written to memory."""
        return sum(p.bytes_saved for p in self.passes)

    def __str__(self) -> str:
        fused = [p for p in self.passes if p.fused]
        together = sum(len(p.calls) for p in fused)
        lines = [
            f"{self.calls} operations waited: {together} ran in {len(fused)} fused passes, "
            f"{self.calls - together} alone; {_size(self.bytes_saved)} of results never became "
            "memory."
        ]
        for number, each in enumerate(self.passes, 1):
            lines.append("")
            saved = f", {_size(each.bytes_saved)} saved" if each.bytes_saved else ""
            kind = f"fused, {len(each.calls)} operations{saved}" if each.fused else "alone"
            lines.append(f"pass {number} ({kind})")
            width = max(len(c.operation) for c in each.calls)
            before = None
            for call in each.calls:
                place = '"' if call.place == before else call.place
                lines.append(f"  {call.operation:<{width}}  {place}".rstrip())
                before = call.place
            if each.why_ended:
                lines.append(f"  ends here: of the next operation, {each.why_ended}")
        lines += ["", *_ends(self)]
        if not self.complete:
            lines.append("there was more; only the beginning was kept")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for number, each in enumerate(self.passes, 1):
            for call in each.calls:
                cells = (number, call.operation, call.place)
                rows.append("".join(f"<td>{html.escape(str(c))}</td>" for c in cells))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        first = html.escape(str(self).splitlines()[0])
        ends = "".join(f"<li>{html.escape(line)}</li>" for line in _ends(self))
        head = "<tr><th>pass</th><th>operation</th><th>line</th></tr>"
        return f"<p>{first}</p><table>{head}{body}</table><ul>{ends}</ul>"


def _ends(report: Report) -> list[str]:
    return [
        f"ran {e.calls} operations: {e.why}{f' at {e.place}' if e.place else ''}"
        for e in report.ends
    ]


def _size(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} bytes"


def last_report(result: Any = None) -> Report:
    """What became of the operations of the region that began last, of any thread.

    Args:
        result: what to keep as the report's ``result``.
    Returns:
        the report; without passes where nothing waited.

    >>> x = clew.ones(100_000)
    >>> with clew.deferred():
    ...     y = (x * 2 + 1).sqrt()
    >>> report = clew.compiler.last_report()
    >>> [call.operation for call in report.passes[0].calls]
    ['mul', 'add', 'sqrt']
    >>> report.bytes_saved
    800000
    """
    passes, ends, cut_short = _C._program_report()
    return Report(
        tuple(
            Pass(tuple(Call(*c) for c in calls), saved, why if calls else None)
            for saved, why, calls in passes
        ),
        tuple(End(*e) for e in ends),
        not cut_short,
        result,
    )
