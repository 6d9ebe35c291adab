"""Live bytes over time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BEFORE", "OTHERS", "Series"]

BEFORE, OTHERS = "before the profile", "others"


@dataclass
class Series:
    """Live bytes over time, divided by what holds them.

    Attributes:
        groups: names of the parts, the largest at the peak first.
        times_us: microseconds from the profile's start.
        bytes: for each time the bytes of each part.
        peak_index: the time at which most is alive.
    """

    groups: list[str]
    times_us: list[float]
    bytes: list[list[int]]
    peak_index: int

    def total(self, index: int) -> int:
        """All bytes alive at one of the times."""
        return sum(self.bytes[index])
