"""Lists that a loop fills with tensors of different sizes.

In the program such a list is two tensors: all elements one behind the other, and the shape of each.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import ExportError, here
from clew.export._ir import Block, Value, values_in, written
from clew.export._lists import Maybe, ScanList, one_of
from clew.export._symbols import SYMS, compute, recorder

__all__ = ["RaggedList", "common", "pushed", "rank", "refuse_late_writes", "sizes_of"]

Sizes = tuple[int | None, ...]


def common(many: Iterable[Sizes | None]) -> Sizes | None:
    """The sizes that tensors have in common, None for those that vary; None of no tensors."""
    found: Sizes | None = None
    for sizes in many:
        if sizes is None:
            continue
        if found is not None and len(found) == len(sizes):
            sizes = tuple(a if a == b else None for a, b in zip(found, sizes))
        found = sizes
    return found


def rank(shapes: Tensor) -> int:
    """How many dims each tensor has."""
    return int(recorder().plain_shape(shapes)[1])


def sizes_of(x: Any) -> Sizes | None:
    """The sizes of an element, or of all those that an inner loop has appended."""
    if isinstance(x, RaggedList):
        return x.fixed
    if isinstance(x, ScanList):
        return recorder().held(x.joined_rows).value.sizes[1:]
    value = x.value if type(x) is Maybe else x
    return recorder().held(value).value.sizes if isinstance(value, Tensor) else ()


def pushed(flat: Tensor, shapes: Tensor, x: Any) -> tuple[Tensor, Tensor]:
    """The two tensors of such a list with one more element, a Maybe where data decide."""
    if isinstance(x, ScanList):
        more = RaggedList.of(x, flat.dtype, rank(shapes))
        return clew.cat([flat, more.flat]), clew.cat([shapes, more.shapes])
    if type(x) is Maybe and x.replaces is not False:
        flat, shapes = _without_last(flat, shapes, x.replaces)
        x = x.value if x.keep is True else Maybe(x.value, x.keep, x.place)
    value = x.value if type(x) is Maybe else x
    if not isinstance(value, Tensor):
        value = clew.full((), value, dtype=flat.dtype)
    dims = rank(shapes)
    if value.dtype != flat.dtype or value.dim() != dims:
        raise ExportError(
            f"export: a list grows by {value.dtype.name} of {value.dim()} dims and by "
            f"{flat.dtype.name} of {dims} dims, at {here()}; append elements of one dtype and "
            f"number of dims"
        )
    sizes = [clew.full((1,), n, dtype=clew.int64) for n in recorder().shape(value)]
    longer = clew.cat([flat, value.reshape(-1)])
    row = clew.cat(sizes).unsqueeze(0) if sizes else shapes.new_zeros(1, 0)
    rows = clew.cat([shapes, row])
    if type(x) is Maybe:
        return one_of(x.keep, longer, flat), one_of(x.keep, rows, shapes)
    return longer, rows


def _without_last(flat: Tensor, shapes: Tensor, goes: Any) -> tuple[Tensor, Tensor]:
    """The two tensors without the last element, where it goes."""

    def shorter() -> tuple[Tensor, Tensor]:
        rest = shapes[:-1]
        return flat.narrow(0, 0, recorder().item(rest.prod(1).sum())), rest

    if goes is True:
        return shorter()
    names = ("the elements of a list", "their sizes")
    found = recorder().control._branch(goes, shorter, lambda: (flat, shapes), names, 0)
    return found[0], found[1]


def refuse_late_writes(block: Block, last: list[Value], added: list[Value], place: Any) -> None:
    """Raises where a round of a loop writes into an element that an earlier one has appended: what
    the list holds is a copy.

    Args:
        block: the loop's body, whose results begin with whether it goes on.
        last: its parameters that are the last elements of lists.
        added: what it appends.
        place: of the loop.
    """
    looks_at: dict[int, list[int]] = {}  # what a value may be, or be a view of
    targets: list[tuple[int, Any]] = []

    def may_be(o: Any, *others: Any) -> None:
        for v in others:
            if isinstance(o, Value) and isinstance(v, Value):
                looks_at.setdefault(o.id, []).append(v.id)

    def visit(inner: Block) -> None:
        for n in inner.nodes:
            targets.extend((v.id, n.place) for v in values_in(written(n)))
            for b in n.blocks:
                visit(b)
            if n.shares and n.args:
                for o in n.outputs:
                    may_be(o, n.args[0])
            elif n.op == "if":
                for o, *ends in zip(n.outputs, *(b.results for b in n.blocks)):
                    may_be(o, *ends)
            elif n.op == "loop":
                body = n.blocks[0]
                for o, p, x, e in zip(n.outputs, body.params[1:], n.args[2], body.results[1]):
                    may_be(o, x, e)
                    may_be(p, x, e)

    def reach(v: Any) -> set[int]:
        found: set[int] = set()
        pending = [v.id if isinstance(v, Value) else v]
        while pending:
            k = pending.pop()
            if k not in found:
                found.add(k)
                pending += looks_at.get(k, ())
        return found

    visit(block)
    made = {o.id for n in block.nodes for o in n.outputs}
    listed = set().union(*map(reach, added))
    kept = {v.id for v in last} | (listed - made)
    for p, e in zip(block.params[1:], block.results[1]):
        if isinstance(e, Value) and reach(e) & listed:
            kept.add(p.id)
    for target, where in targets:
        if reach(target) & kept:
            raise ExportError(
                f"export: a tensor that the loop at {place} has appended to a list of tensors of "
                f"different sizes is written to in a later round, at {where}\n"
                f"  Assign the element instead: xs[-1] = xs[-1] + 1."
            )


class RaggedList(ScanList):
    """A list that a loop filled with tensors of different sizes.

    Args:
        flat: the elements of all tensors.
        shapes: int64, (tensors, dims).
        filtered: it may be empty though the loop has run.
        fixed: the sizes that all tensors have, None for those that vary; None if there are none.
    """

    def __init__(
        self, flat: Tensor, shapes: Tensor, filtered: bool = False, fixed: Sizes | None = None
    ) -> None:
        super().__init__([], flat, None, filtered)
        self.flat, self.shapes, self.fixed = flat, shapes, fixed

    @staticmethod
    def of(items: Any, dtype: Any, dims: int) -> RaggedList:
        """What a list holds before the loop."""
        if isinstance(items, RaggedList):
            return items
        flat = clew.zeros(0, dtype=dtype)
        shapes = clew.zeros(0, dims, dtype=clew.int64)
        if isinstance(items, ScanList):
            rows = items.all_rows()
            row = [clew.full((1,), n, dtype=clew.int64) for n in recorder().shape(rows)[1:]]
            one = clew.cat(row).unsqueeze(0) if row else shapes.new_zeros(1, 0)
            fixed = recorder().held(rows).value.sizes[1:]
            shapes = one.expand(rows.shape[0], -1)
            return RaggedList(rows.reshape(-1), shapes, items.filtered, fixed)
        for x in items:
            flat, shapes = pushed(flat, shapes, x)
        return RaggedList(flat, shapes, fixed=common(map(sizes_of, items)))

    def length(self) -> Any:
        return recorder().shape(self.shapes)[0]

    def item(self, index: Any) -> Tensor:
        """One element."""
        rec = recorder()
        if type(index) not in SYMS and index < 0:
            index = self.length() + index
        sizes = self._sizes_of(index)
        count: Any = 1
        for n in sizes:
            count = n * count
        each = self.shapes.prod(1)
        start = rec.item((each.cumsum(0) - each).select(0, index))
        made: Tensor = self.flat.narrow(0, start, count).reshape(sizes)
        return made

    def items(self) -> Any:
        return self.item

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise ExportError(
                f"export: a part of a list whose tensors are of different sizes, at {here()}; run "
                f"over it in a `for` statement"
            )
        return self.item(index)

    def _sizes_of(self, index: Any) -> list[Any]:
        fixed = self.fixed or (None,) * rank(self.shapes)
        row = self.shapes.select(0, index)
        return [
            recorder().item(row.select(0, d)) if n is None else n for d, n in enumerate(fixed)
        ]  # fmt: skip

    def _alike(self, dims: Iterable[int]) -> None:
        """The program checks that all tensors have the same sizes."""
        fixed = self.fixed or (None,) * rank(self.shapes)
        dims = [d for d in dims if fixed[d] is None]
        if dims:
            kept = self.shapes[:, dims]
            same = recorder().item((kept == kept.narrow(0, 0, 1)).all())
            recorder().guard(compute("bool", bool, (same,)), True)

    def _first_sizes(self) -> list[Any]:
        """The sizes of the first element. The program fails, as Python does, for an empty list."""
        rec = recorder()
        rec.guard(compute("gt", operator.gt, (self.length(), 0)), True)
        return self._sizes_of(0)

    def joined(self, op: str, dim: int = 0, *, out: Any = None) -> Tensor:
        sizes = self._first_sizes()
        last = len(sizes) if op == "stack" else len(sizes) - 1
        at = dim if dim >= 0 else dim + last + 1
        rec = recorder()
        if op == "stack":
            self._alike(range(len(sizes)))
            rows: Tensor = self.flat.reshape([self.length(), *sizes])
            return rows if at == 0 else rows.movedim(0, at)
        self._alike(d for d in range(len(sizes)) if d != at)
        if at == 0:
            whole: Tensor = self.flat.reshape(
                [rec.item(self.shapes.select(1, 0).sum()), *sizes[1:]]
            )
            return whole
        first = self.item(0).narrow(at, 0, 0)
        found = rec.control._staged(
            self.length(), None, lambda i, v: (clew.cat([v[0], self.item(i)], at),), None,
            (first,), ("the list",), (),
        )  # fmt: skip
        made: Tensor = found[0]
        return made

    def padded(self, batch_first: bool, padding_value: Any, side: str) -> Tensor:
        """What pad_sequence() gives."""
        rec = recorder()
        rest = self._first_sizes()[1:]
        lengths = self.shapes.select(1, 0)
        longest = rec.item(lengths.amax(0))
        rows = self.flat.reshape([rec.item(lengths.sum()), *rest])
        steps = clew.arange(longest).unsqueeze(0)
        ends = lengths.unsqueeze(1)
        there = steps < ends if side == "right" else steps >= longest - ends
        shape = [self.length(), longest, *rest]
        there = there.reshape(shape[:2] + [1] * len(rest)).expand(shape)
        whole = clew.full(shape, padding_value, dtype=self.flat.dtype).masked_scatter(there, rows)
        return whole if batch_first else whole.transpose(0, 1)

    def of_numbers(self) -> bool:
        return False

    def all_rows(self) -> Tensor:
        raise ExportError(
            f"export: a list whose tensors are of different sizes is used as one tensor, at "
            f"{here()}\n  Its len(), elements, append(), a `for` statement over it, clew.stack(), "
            f"clew.cat() and pad_sequence() are kept."
        )

    def _add(self, x: Any) -> None:
        self.flat, self.shapes = pushed(self.flat, self.shapes, x)
        self.fixed = common([self.fixed, sizes_of(x)])
        self.joined_rows = self.flat

    def pop(self, index: Any = -1) -> Any:
        self._refused()

    def reverse(self) -> None:
        self._refused()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._refused()

    def spoil(self, place: Any) -> None:
        super().spoil(place)
        self.flat = self.shapes = self.joined_rows

    def _with(self, other: Any, in_front: bool) -> ScanList:
        more = RaggedList.of(other, self.flat.dtype, rank(self.shapes))
        a, b = (more, self) if in_front else (self, more)
        flat, shapes = clew.cat([a.flat, b.flat]), clew.cat([a.shapes, b.shapes])
        fixed = common([self.fixed, more.fixed])
        return RaggedList(flat, shapes, self.filtered and more.filtered, fixed)
