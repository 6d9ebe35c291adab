"""Lists and ranges whose length is known only when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import ExportError, here
from clew.export._symbols import SYMS, compute

__all__ = ["Appender", "ScanList", "SymIter", "SymRange", "as_loop"]


class SymIter:
    """Items by number, as many as a size says."""

    def __init__(self, count: Any, item: Callable[[Any], Any]) -> None:
        self._count, self.item = count, item

    def length(self) -> Any:
        """How many there are."""
        return self._count

    def __iter__(self) -> Any:
        raise ExportError(
            f"export: something as long as a size is run through at {here()} where no loop can be "
            f"kept; write a `for` statement"
        )


class SymRange(SymIter):
    """A range with a bound that varies."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        if type(step) in SYMS or step == 0:
            raise ExportError(f"export: a range whose step varies at {here()}")
        self.start, self.stop, self.step = start, stop, step
        super().__init__(None, lambda i: start + i * step)

    def length(self) -> Any:
        n = self.stop - self.start if self.step > 0 else self.start - self.stop
        by = abs(self.step)
        if by != 1:
            n = (n + (by - 1)) // by
        return compute("max", max, (n, 0)) if type(n) in SYMS else max(n, 0)


def as_loop(rec: Any, items: Any) -> SymIter | None:
    """What a loop runs through, when its length varies."""
    if isinstance(items, SymIter):
        return items
    if isinstance(items, ScanList):
        if items.before:
            raise ExportError(f"export: a list that grew in a loop is run through at {here()}")
        return SymIter(items.length(), lambda i: items.joined_rows[i])
    if isinstance(items, Tensor) and id(items) in rec.known and items.dim():
        n = rec.shape(items)[0]
        if type(n) in SYMS:
            return SymIter(n, lambda i: items.select(0, i))
    return None


class Appender:
    """A list inside a loop that is kept: it can only grow."""

    def __init__(self, before: list[Any], owner: Any) -> None:
        self.before, self.owner = before, owner
        self.added: list[Any] = []

    def append(self, x: Any) -> None:
        """Adds one element, once a round."""
        if len(self.owner.rec.blocks) != self.owner.level:
            raise ExportError(
                f"export: append() in an `if` inside a loop that is kept, at {here()}: each round "
                f"must add one element; add a neutral one instead (zeros, a masked one)"
            )
        self.added.append(x)

    def refused(self, name: str) -> ExportError:
        """What is said of any other use."""
        return ExportError(
            f"export: a list that grows in a loop is used ({name}) inside it, at {here()}; only "
            f"append() is kept there: carry what is needed in a variable"
        )

    def __getattr__(self, name: str) -> Any:
        raise self.refused(name)

    def __iter__(self) -> Any:
        raise self.refused("iteration")

    def __len__(self) -> int:
        raise self.refused("len")

    def __getitem__(self, index: Any) -> Any:
        raise self.refused("an element")


class ScanList(list):
    """A list that a loop filled, as the tensor of its elements one behind the other."""

    def __init__(self, before: list[Any], rows: Tensor, count: Any) -> None:
        super().__init__(before)
        self.before, self.joined_rows, self._count = before, rows, count

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ExportError(f"export: {func} of a list that grew in a loop, at {here()}")

    def length(self) -> Any:
        """Its length."""
        return self._count + len(self.before)

    def joined(self, op: str, dim: int = 0, *, out: Any = None) -> Tensor:
        """stack() or cat() of the elements."""
        rows = self.rows(op, dim)
        last = rows.dim() - 1 if op != "stack" else rows.dim()
        at = dim + last if dim < 0 else dim
        if op == "stack":
            whole = rows if at == 0 else rows.movedim(0, at)
            if self.before:
                whole = clew.cat([clew.stack(self.before, at), whole], at)
            return whole
        moved = rows if at == 0 else rows.movedim(0, at)
        whole = moved.flatten(at, at + 1)
        return clew.cat([*self.before, whole], at) if self.before else whole

    def rows(self, op: str, dim: int = 0) -> Tensor:
        """The elements that the loop made. Where there are none, the loop cannot say of what size
        they would be; those before it can."""
        rows = self.joined_rows
        if not self.before:
            return rows
        sizes = list(self.before[0].shape)
        if op != "stack" and sizes:
            at = dim % len(sizes)
            sizes[at] = rows.shape[1 + at]
        return rows.reshape(rows.shape[0], *sizes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and index < 0:
            return self.joined_rows[index]
        if self.before or not isinstance(index, int):
            raise ExportError(f"export: an element of a list that grew in a loop, at {here()}")
        return self.joined_rows[index]

    def __iter__(self) -> Any:
        raise ExportError(
            f"export: a list that grew in a loop is run through at {here()}; use clew.stack() or "
            f"clew.cat() on it, or a `for` statement"
        )

    def __len__(self) -> int:
        return int(self.length().__index__())

    def append(self, x: Any) -> None:
        raise ExportError(f"export: a list that grew in a loop grows again, at {here()}")
