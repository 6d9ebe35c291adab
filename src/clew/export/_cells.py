"""Variables that inner functions and the module share with a rewritten function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.export._errors import ExportError, here
from clew.export._journal import UNBOUND
from clew.export._scopes import Cell

__all__ = ["Cells"]


class Cells:
    """Where such variables are, before and after a branch or a loop."""

    rec: Any
    _globals: dict[Any, tuple[Cell, Any]]  # what they were before
    _owned: dict[Any, tuple[Cell, int]]  # since how many open branches they exist
    _seen: list[tuple[int, set[Any]]]  # what open branches keep, by their depth

    def cell(self, name: str, reads: Callable[[], Any]) -> Cell:
        """Where a variable is that an inner function or the module has, too."""
        made = Cell(name, reads, UNBOUND)
        if made.worldwide:
            self._globals.setdefault(made.key, (made, made.get()))
        return made

    def restore_globals(self) -> None:
        """Variables after `global` are what they were before the recording."""
        for cell, value in self._globals.values():
            cell.set(value)

    def owns(self, cells: tuple[Cell, ...]) -> None:
        """A call begins whose variables inner functions may assign."""
        for x in cells:
            self._owned[x.key] = (x, len(self.rec.journals))

    def moves(self, cells: tuple[Cell, ...]) -> None:
        """A variable of a function around this one, or of the module, is about to be assigned."""
        for x in cells:
            _, since = self._owned.get(x.key, (x, 0))
            seen = {depth for depth, keys in self._seen if x.key in keys}
            if seen.issuperset(range(since, len(self.rec.journals))):
                continue
            raise ExportError(
                f"export: {x.name!r}, a variable of another function or of the module, is assigned "
                f"inside an `if` or a loop that data decides, at {here()}\n"
                f"  The function of that `if` or loop cannot see it: return the value, and assign "
                f"it there."
            )

    @contextmanager
    def _seeing(self, cells: tuple[Cell, ...]) -> Iterator[None]:
        self._seen.append((len(self.rec.journals), {x.key for x in cells}))
        try:
            yield
        finally:
            self._seen.pop()

    def _with_cells(self, function: Any, cells: tuple[Cell, ...], vals: Any = None) -> Any:
        """A function of variables, the last of which are in cells, as are its last results."""

        def run(*args: Any) -> Any:
            given = list(args[-1] if vals is None else vals)
            first = len(given) - len(cells)
            for x, v in zip(cells, given[first:]):
                x.set(v)
            made = function(*args[:-1], given[:first]) if vals is None else function()
            if not isinstance(made, (tuple, list)):  # a condition
                return made
            return (*made, *(x.get() for x in cells))

        return run

    @staticmethod
    def _leave_cells(got: Any, cells: tuple[Cell, ...]) -> Any:
        """Gives the cells their values, which are the last; returns the others."""
        first = len(got) - len(cells)
        for x, v in zip(cells, got[first:]):
            x.set(v)
        return tuple(got[:first])
