"""tqdm, or what stands for it."""

from __future__ import annotations

from typing import Any


class _Plain:
    """What stands for tqdm where that is not installed: it counts, and shows nothing.

    Args:
        iterable: what to go through.
        total: how many steps there are.
        options: how it would be shown; there is nothing to show.
    """

    def __init__(self, iterable: Any = None, *, total: Any = None, **options: Any) -> None:
        self.iterable, self.total, self.n = iterable, total, 0

    def __iter__(self) -> Any:
        for value in self.iterable:
            yield value
            self.n += 1

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def update(self, n: int = 1) -> None:
        """Counts."""
        self.n += n

    def close(self) -> None:
        """Nothing is open."""


def find_tqdm() -> Any:
    """tqdm's class, or one that shows nothing where it is not installed."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return _Plain
    return tqdm
