"""Lists and ranges whose length is known only when the program runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor
from clew.export._errors import ExportError, here
from clew.export._symbols import SYMS, Poison, compute, recorder

__all__ = [
    "SPLITS",
    "Appender",
    "Maybe",
    "ScanList",
    "SymIter",
    "SymRange",
    "as_loop",
    "fixed_sizes",
    "has_maybe",
    "joined",
    "last_of",
    "length_of",
    "one_of",
    "split_by",
]


class SymIter:
    """Items by number, as many as a size says."""

    def __init__(self, count: Any, item: Callable[[Any], Any], whole: Tensor | None = None) -> None:
        self._count, self.item = count, item
        self.whole = whole  # the tensor whose elements these are

    def length(self) -> Any:
        """How many there are."""
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            raise ExportError(f"export: a part of what is as long as a size, at {here()}")
        return self.item(index if type(index) in SYMS or index >= 0 else self.length() + index)

    def __iter__(self) -> Any:
        raise ExportError(
            f"export: something as long as a size is run through at {here()} where no loop can be "
            f"kept; write a `for` statement"
        )


SPLITS = frozenset(("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"))


def split_by(x: Tensor, sizes: Any, dim: int = 0) -> SymIter:
    """split() into as many parts as there are numbers in what tolist() has made."""
    rec, whole = recorder(), sizes.whole
    if whole is None:
        raise ExportError(f"export: split() by a list of varying length at {here()}")
    total = rec.item(whole.sum())
    same = compute("eq", operator.eq, (total, rec.shape(x)[dim]))
    if type(same) in SYMS:
        rec.guard(same, True)
    starts = whole.cumsum(0) - whole
    return SymIter(
        sizes.length(), lambda i: x.narrow(dim, rec.item(starts.select(0, i)), sizes.item(i))
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
        return SymIter(items.length(), items.items())
    if isinstance(items, Tensor) and id(items) in rec.known and items.dim():
        n = rec.shape(items)[0]
        if type(n) in SYMS:
            return SymIter(n, lambda i: items.select(0, i))
    return None


class Maybe(Poison):
    """An element of a list that is only there if data say so.

    Args:
        value: the element; where it is not there, something of its kind.
        keep: whether it is there.
        replaces: whether the element before it goes.
    """

    __slots__ = ("keep", "place", "replaces", "value")
    keep: Any
    place: Any
    replaces: Any
    value: Any

    def __init__(self, value: Any, keep: Any, place: Any = None, replaces: Any = False) -> None:
        super().__init__(
            f"export: data decide which elements a list has, since {place or here()}, and it is "
            f"used as one of a known length\n  Its len(), sum(), any() and all(), a `for` "
            f"statement over it, clew.stack() and clew.cat() are kept."
        )
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "keep", keep)
        object.__setattr__(self, "place", place or here())
        object.__setattr__(self, "replaces", replaces)


def has_maybe(items: Any) -> bool:
    """Whether data decide which elements a list or a tuple has."""
    return isinstance(items, (list, tuple)) and any(type(x) is Maybe for x in tuple(items))


def keep_of(x: Any) -> Any:
    """Whether an element is there."""
    return x.keep if type(x) is Maybe else True


def length_of(items: Any) -> Any:
    """How many elements such a list has."""
    count: Any = sum(type(x) is not Maybe for x in items)
    for x in items:
        if type(x) is Maybe:
            count = count + compute("int", int, (x.keep,))
    return count


def joined(
    op: str, tensors: Any, dim: int = 0, *, out: Any = None, may_be_empty: bool = False
) -> Tensor:
    """stack() or cat() of such a list."""
    items = tensors
    if out is not None:
        raise ExportError(f"export: {op}() with out= of a list that data filter, at {here()}")
    values = [x.value if type(x) is Maybe else x for x in items]
    keeps = [x.keep if type(x) is Maybe else True for x in items]
    last = values[0].dim() if op == "stack" else values[0].dim() - 1
    at = dim if dim >= 0 else dim + last + 1
    varying = [v for v, k in zip(values, keeps) if k is not True and _varies(v, op, at)]
    if not may_be_empty:
        if not any(k is True for k in keeps):
            recorder().guard(compute("gt", operator.gt, (length_of(items), 0)), True)
    elif varying:
        fixed_sizes(varying[0], at if op == "cat" else None)
    if varying:
        return _joined_varying(op, values, keeps, at)
    whole = getattr(clew, op)(values, dim)
    masks = [
        clew.full((1 if op == "stack" else v.shape[at],), k) for v, k in zip(values, keeps)
    ]  # fmt: skip
    return whole.movedim(at, 0)[clew.cat(masks)].movedim(0, at)


def _varies(x: Any, op: str, at: int) -> bool:
    """Whether sizes of an element vary that it must have in common with the others."""
    sizes = list(recorder().held(x).value.sizes) if isinstance(x, Tensor) else []
    if op == "cat":
        del sizes[at]
    return None in sizes


def _joined_varying(op: str, values: list[Any], keeps: list[Any], at: int) -> Tensor:
    """stack() or cat() of elements whose sizes are known only when the program runs. An element
    that is absent is replaced by an empty one, sized like an element that is present."""
    parts = [v.unsqueeze(at) if op == "stack" else v for v in values]
    certain = [p for p, k in zip(parts, keeps) if k is True]
    like, known = (certain or parts)[0], True if certain else keeps[0]
    for part, keep in zip(parts[1:], keeps[1:]):
        if known is not True:
            like = one_of(known, like, part)
            known = compute("either", lambda a, b: bool(a or b), (known, keep))
    nothing = like.narrow(at, 0, 0)
    return clew.cat([p if k is True else one_of(k, p, nothing) for p, k in zip(parts, keeps)], at)


def one_of(keep: Any, value: Tensor, other: Tensor) -> Tensor:
    """The first tensor where it is there, else the other."""
    names = ("the element that a list grows by",)
    found: Tensor = recorder().control._branch(
        keep, lambda: (value,), lambda: (other,), names, 0
    )[0]  # fmt: skip
    return found


def fixed_sizes(x: Any, but: int | None = None) -> None:
    """Raises where an element that may be there has sizes that vary: what stands for it where it
    is not there must have the same."""
    sizes = list(recorder().held(x).value.sizes) if isinstance(x, Tensor) else []
    if but is not None:
        del sizes[but]
    if None in sizes:
        raise ExportError(
            f"export: data decide whether a list has a tensor whose sizes vary ({sizes}), at "
            f"{here()}\n  Fix these sizes, or append in both branches, with a mask beside it."
        )


def last_of(items: Any) -> Any:
    """The last element of a list before a loop, if it is a tensor; else None."""
    if type(items) is list and items and isinstance(items[-1], Tensor):
        return items[-1]
    return None


class Appender:
    """A list inside a loop that is kept: it can only grow."""

    def __init__(self, before: Any, owner: Any, number: int) -> None:
        self.before, self.owner, self.number = before, owner, number
        self.added: list[Any] = []  # a Maybe where data decide
        self.last = last_of(before)
        self.count: Any = None  # how many elements the loop has added so far, where that is asked

    def append(self, x: Any) -> None:
        """Adds one element, once a round."""
        rec = self.owner.rec
        if len(rec.blocks) != self.owner.level:
            if rec.journals[-1].growth is not None:
                rec.journals[-1].grow(self, x)
                self._follow(x)
                return
            raise ExportError(
                f"export: append() to a list of another loop, at {here()}; give the inner loop a "
                f"list of its own, and append what is stacked of it"
            )
        self.added.append(x)
        self._follow(x)

    def _follow(self, x: Any) -> None:
        """The last element and the length behind an append()."""
        if type(x) is Maybe and x.keep is True:
            self.last = x.value
        elif type(x) is Maybe and self.last is not None:
            self.last = one_of(x.keep, x.value, self.last)
        else:
            self.last = None if type(x) is Maybe else x
        if self.count is not None:
            self.count = self.count + length_of([x])
            if type(x) is Maybe and x.replaces is not False:
                self.count = self.count - compute("int", int, (x.replaces,))

    def replace_last(self, x: Any) -> None:
        """``xs[-1] = x``."""
        if not isinstance(self.last, Tensor):
            raise self.refused("an element is assigned")
        level = len(self.owner.rec.blocks) == self.owner.level
        if level and self.added and not isinstance(self.added[-1], (Maybe, ScanList)):
            self.added[-1] = self.last = x
        else:
            self.append(Maybe(x, True, replaces=True))

    def left(self, before: Any) -> None:
        """A branch ends: what it has read is as it was before it."""
        self.last, self.count = before

    def state(self) -> Any:
        """What a branch may change."""
        return self.last, self.count

    def length(self) -> Any:
        """Its length so far."""
        self.owner.counted.add(self.number)
        if self.count is None:
            raise self.refused("len")
        outer = self.owner.outer.get(self.number)
        if outer is not None:
            return outer.length() + self.count
        before = self.before
        return (before.length() if isinstance(before, ScanList) else length_of(before)) + self.count

    def extend(self, made: ScanList) -> None:
        """Adds what an inner loop has appended."""
        if len(self.owner.rec.blocks) != self.owner.level:
            raise ExportError(
                f"export: a loop in a branch that data decide appends to a list of a loop around "
                f"it, at {here()}; give it a list of its own, and append what is stacked of it"
            )
        self.added.append(made)
        self.last = None
        if self.count is not None:
            self.count = self.count + made.length()

    def refused(self, name: str) -> ExportError:
        """What is said of any other use."""
        return ExportError(
            f"export: a list that grows in a loop is used ({name}) inside it, at {here()}; only "
            f"append() and the last element are kept there: carry what is needed in a variable"
        )

    def __getattr__(self, name: str) -> Any:
        raise self.refused(name)

    def __iter__(self) -> Any:
        raise self.refused("iteration")

    def __len__(self) -> int:
        raise self.refused("len")

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and index == -1 and self.last is not None:
            return self.last
        raise self.refused("an element")


class ScanList(list):
    """A list that a loop filled, as the tensor of its elements one behind the other."""

    def __init__(self, before: list[Any], rows: Tensor, count: Any, filtered: bool = False) -> None:
        super().__init__(before)
        self.joined_rows: Any = rows
        self.before, self._count = before, count
        self.filtered = filtered  # it may be empty though the loop has run
        self._depth = len(recorder().journals)  # the branches and loops around it

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ExportError(f"export: {func} of a list that grew in a loop, at {here()}")

    def length(self) -> Any:
        """Its length."""
        count = self._count
        if count is None:
            count = recorder().shape(self.joined_rows)[0]
        return count + length_of(self.before)

    def joined(self, op: str, dim: int = 0, *, out: Any = None) -> Tensor:
        """stack() or cat() of the elements."""
        rows = self.rows(op, dim)
        last = rows.dim() - 1 if op != "stack" else rows.dim()
        at = dim + last if dim < 0 else dim
        if op == "stack":
            whole = rows if at == 0 else rows.movedim(0, at)
            if self.before:
                whole = clew.cat([self._first("stack", at), whole], at)
            return whole
        moved = rows if at == 0 else rows.movedim(0, at)
        whole = moved.flatten(at, at + 1)
        return clew.cat([self._first("cat", at), whole], at) if self.before else whole

    def _first(self, op: str, at: int) -> Tensor:
        """The elements from before the loop."""
        if has_maybe(self.before):
            return joined(op, self.before, at, may_be_empty=True)
        made: Tensor = getattr(clew, op)(self.before, at)
        return made

    def rows(self, op: str, dim: int = 0) -> Tensor:
        """The elements that the loop made. Where there are none, the loop cannot say of what size
        they would be; those before it can."""
        rows = self.joined_rows
        if self.filtered and (not self.before or has_maybe(self.before)):
            recorder().guard(compute("gt", operator.gt, (self.length(), 0)), True)
        if not self.before:
            return rows
        first = self.before[0]
        sizes = list((first.value if type(first) is Maybe else first).shape)
        if op != "stack" and sizes:
            at = dim % len(sizes)
            sizes[at] = rows.shape[1 + at]
        return self.rows_like(sizes)

    def rows_like(self, sizes: Any) -> Tensor:
        """The elements that the loop made, of these sizes even where there are none."""
        made: Tensor = self.joined_rows.reshape(self.joined_rows.shape[0], *sizes)
        return made

    def __getitem__(self, index: Any) -> Any:
        rows = self.all_rows()
        if isinstance(index, slice):
            cut = rows.flip(0) if index == slice(None, None, -1) else rows[index]
            return ScanList([], cut, recorder().shape(cut)[0], True)
        return rows[index]

    def items(self) -> Callable[[Any], Any]:
        """What gives an element by its number."""
        rows = self.all_rows()
        return lambda i: rows[i]

    def padded(self, batch_first: bool, padding_value: Any, side: str) -> Tensor:
        """What pad_sequence() gives: all elements are of one size."""
        return self.joined("stack", 0 if batch_first else 1)

    def of_numbers(self) -> bool:
        """Whether its elements have no dims."""
        values = [x.value if type(x) is Maybe else x for x in self.before]
        parts = all(isinstance(v, Tensor) and v.dim() == 0 for v in values)
        return parts and isinstance(self.joined_rows, Tensor) and self.joined_rows.dim() == 1

    def all_rows(self) -> Tensor:
        """The elements, as many as there are."""
        if not self.before:
            found: Tensor = self.joined_rows
            return found
        values = [x.value if type(x) is Maybe else x for x in self.before]
        if not all(isinstance(v, Tensor) for v in values):
            raise ExportError(f"export: a list that grew in a loop is run through at {here()}")
        return clew.cat([self._first("stack", 0), self.rows_like(values[0].shape)])

    def __iter__(self) -> Any:
        raise ExportError(
            f"export: a list that grew in a loop is run through at {here()}; use clew.stack() or "
            f"clew.cat() on it, or a `for` statement"
        )

    def __len__(self) -> int:
        return int(self.length().__index__())

    def append(self, x: Any) -> None:
        """One more element, behind the loop."""
        self.may_change(x)
        self._add(x)

    def may_change(self, *added: Any, loop: bool = False) -> None:
        """Raises where the list cannot change: a branch can append to it, nothing else.

        Args:
            added: what append() adds.
            loop: whether another loop is about to do so.
        """
        journals = recorder().journals
        if len(journals) == self._depth and not (loop and journals):
            return
        if loop or not added or journals[-1].growth is None:
            raise ExportError(
                f"export: a list that grew in a loop grows again in another loop, or changes in an "
                f"`if`, that data decides, at {here()}; give that a list of its own"
            )
        for x in added:
            journals[-1].grow(self, x)

    def _add(self, x: Any) -> None:
        more = self._with([x], False)
        self.joined_rows, self._count = more.joined_rows, more._count
        self.before, self.filtered = [], type(x) is Maybe and self.filtered
        super().clear()

    def state(self) -> Any:
        """What append() changes."""
        return dict(self.__dict__), list.copy(self)

    def left(self, before: Any) -> ScanList:
        """A branch ends, and the list is what it was before it: gives what the branch has made."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        list.extend(made, list.copy(self))
        self.__dict__.update(before[0])
        list.clear(self)
        list.extend(self, before[1])
        return made

    def pop(self, index: Any = -1) -> Any:
        """Takes the last element."""
        if type(index) is not int or index != -1:
            self._refused()
        self.may_change()
        recorder().guard(compute("gt", operator.gt, (self.length(), 0)), True)
        rows = self.all_rows()
        last, rest = rows[-1], rows[:-1]
        self._become(rest)
        return last

    def reverse(self) -> None:
        """The elements in the other order."""
        self.may_change()
        self._become(self.all_rows().flip(0))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            self._refused()
        self.may_change()
        rows = self.all_rows().clone()
        if isinstance(value, Tensor) and (
            value.dtype != rows.dtype or value.dim() != rows.dim() - 1
        ):
            raise ExportError(
                f"export: an element of a list that grew in a loop is replaced by one of another "
                f"dtype or number of dims, at {here()}"
            )
        rows[index] = value
        self._become(rows)

    def _become(self, rows: Tensor) -> None:
        """The elements are others."""
        self.joined_rows, self._count = rows, recorder().shape(rows)[0]
        self.before, self.filtered = [], True
        super().clear()

    def spoil(self, place: Any) -> None:
        """Reading it raises from now on: another loop has made another list of it."""
        self.joined_rows = Poison(
            f"export: a list that grows in a second loop, at {place}, is read through another "
            f"name; use the variable that is appended to"
        )

    def extend(self, items: Any) -> None:
        """Further elements."""
        for x in items:
            self.append(x)

    def __add__(self, other: Any) -> Any:
        return self._with(other, False)

    def __radd__(self, other: Any) -> Any:
        return self._with(other, True)

    def __iadd__(self, other: Any) -> Any:
        return self._with(other, False)

    def _with(self, other: Any, in_front: bool) -> ScanList:
        """A list of these elements and of others."""
        rows = self.all_rows()
        if isinstance(other, ScanList):
            more = other.all_rows()
        else:
            values = [x.value if type(x) is Maybe else x for x in other]
            parts = [x if isinstance(x, Tensor) else clew.full((), x) for x in values]
            if not parts:
                return self
            more = clew.stack(parts)
            if has_maybe(other):  # what stands for one that is not there has none of its sizes
                for part, x in zip(parts, other):
                    if type(x) is Maybe:
                        fixed_sizes(part)
                more = more[clew.cat([clew.full((1,), keep_of(x)) for x in other])]
        if more.dtype != rows.dtype:
            raise ExportError(
                f"export: a list that grew in a loop gets elements of another dtype, at {here()}"
            )
        if not isinstance(other, ScanList):  # of what size rows are that are not there
            rows = rows.reshape(rows.shape[0], *more.shape[1:])
        both = clew.cat([more, rows] if in_front else [rows, more])
        return ScanList([], both, recorder().shape(both)[0])

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise ExportError(
            f"export: a list that grew in a loop is used in another way than to append, to index, "
            f"to add, to stack or in a `for` statement, at {here()}"
        )

    insert = remove = clear = sort = index = count = copy = _refused
    __contains__ = __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _refused
    __mul__ = __rmul__ = __imul__ = __delitem__ = __reversed__ = _refused
    __hash__ = None
