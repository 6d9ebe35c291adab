"""What a rule found, and how it is told."""

from __future__ import annotations

import re
from typing import NamedTuple

from clew._insight.debug.place import Place
from clew._tensor.html import as_printed

__all__ = ["Finding", "made", "report"]


class Finding(NamedTuple):
    """One mistake that the doctor found.

    Args:
        mistake: what it is, in a few words.
        place: the line of the program, with its text.
        evidence: what was seen, with numbers.
        change: what to write instead.
        file: of the line.
        line: its number; 0 where no line is known.
    """

    mistake: str
    place: str
    evidence: str
    change: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        at = f"\n  at {self.place}" if self.place else ""
        return f"{self.mistake}{at}\n  seen: {self.evidence}\n  change: {self.change}"

    def _repr_html_(self) -> str:
        return as_printed(self)


def made(mistake: str, place: Place | None, evidence: str, change: str) -> Finding:
    """A finding at a place that may be unknown."""
    if place is None:
        return Finding(mistake, "", evidence, change)
    return Finding(mistake, place.text, evidence, change, place.file, place.line)


def report(findings: list[Finding]) -> str:
    """The findings as text; empty where there are none."""
    if not findings:
        return ""
    many = f"{len(findings)} mistakes" if len(findings) > 1 else "a mistake"
    return "\n".join([f"clew doctor: found {many}", *map(_numbered, range(1, 1000), findings)])


def _numbered(number: int, finding: Finding) -> str:
    return re.sub(r"\n", "\n   ", f"{number}. {finding}")
