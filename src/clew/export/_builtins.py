"""Functions of Python that rewritten functions call, of numbers and lengths that vary."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import clew
from clew import Tensor
from clew.export._conditions import Conditions, _both, _either, given, varies
from clew.export._errors import ExportError, here
from clew.export._lists import (
    Appender,
    Maybe,
    ScanList,
    SymIter,
    SymRange,
    as_loop,
    has_maybe,
    length_of,
)
from clew.export._ragged import RaggedList
from clew.export._symbols import SYMS, compute
from clew.nn.utils.rnn import pad_sequence

__all__ = ["BUILTINS", "Functions"]


class Functions(Conditions):
    """len(), range(), min() and others."""

    call: Any  # of Control
    converted: Any
    for_: Any
    listed: Any
    generated: Any
    fresh: Any

    def _may_take(self, items: Any) -> None:
        """An iterator is about to go on, which a branch that is not taken must not do."""
        journals = self.rec.journals
        if journals and hasattr(type(items), "__next__") and id(items) not in journals[-1].fresh:
            raise ExportError(
                f"export: an iterator that was made before goes on inside an `if` or a loop that "
                f"data decides, at {here()}; take its elements before"
            )

    def _next(self, items: Any, *default: Any) -> Any:
        self._may_take(items)
        return next(items, *default)

    def _any(self, items: Any) -> Any:
        return self._some(items, any, False)

    def _all(self, items: Any) -> Any:
        return self._some(items, all, True)

    def _some(self, items: Any, function: Any, goes_on: bool) -> Any:
        if isinstance(items, Tensor):
            return function(items)
        if isinstance(items, ScanList):
            rows = items.all_rows() != 0
            return self.condition(rows.all() if goes_on else rows.any())
        found: Any = goes_on
        for x in items:
            if type(x) is Maybe:
                if goes_on:
                    c = self.or_(given(self.not_(x.keep)), given(x.value))
                else:
                    c = self.and_(given(x.keep), given(x.value))
                c = self.condition(c)
            else:
                c = self.condition(x)
            if type(c) not in SYMS:
                if c is not goes_on:
                    return c
            elif goes_on:
                found = c if found is True else compute("both", _both, (found, c))
            else:
                found = c if found is False else compute("either", _either, (found, c))
        return found

    def _print(self, *args: Any, **kwargs: Any) -> None:
        print(*(a.vals[0] if type(a) in SYMS else a for a in args), **kwargs)

    def _len(self, x: Any) -> Any:
        if isinstance(x, Tensor) and id(x) in self.rec.known:
            shape = self.rec.shape(x)
            return shape[0] if len(shape) else len(x)
        if isinstance(x, (SymIter, ScanList)) or type(x) is Appender:
            return x.length()
        if has_maybe(x):
            return length_of(x)
        return len(x)

    def _range(self, *args: Any) -> Any:
        args = tuple(self.number(a) for a in args)
        if any(type(a) in SYMS for a in args):
            start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
            return SymRange(start, stop, step)
        return range(*args)

    def number(self, x: Any) -> Any:
        """An element of a tensor as a number; numbers as they are."""
        if isinstance(x, Tensor) and self.rec._depends((x,)):
            return self.rec.item(x)
        return x

    def _cast(self, kind: type, x: Any = 0, *more: Any) -> Any:
        if more:
            return kind(x, *more)
        x = self.number(x)
        return compute(kind.__name__, kind, (x,)) if type(x) in SYMS else kind(x)

    def _extreme(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and hasattr(type(args[0]), "__next__"):
            args = (list(args[0]),)
        if len(args) == 1 and args[0] is not None and kwargs.keys() == {"key"}:
            return self._extreme_by(function, args[0], kwargs["key"])
        if len(args) == 1 and isinstance(args[0], ScanList) and not kwargs:
            return self._extreme(function, args[0].all_rows())
        several = len(args) == 1 and isinstance(args[0], (tuple, list))
        if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dim() == 1 and not kwargs:
            return args[0].amax(0) if function is max else args[0].amin(0)
        parts = list(args[0]) if several and not isinstance(args[0], ScanList) else list(args)
        if kwargs or not any(type(p) in SYMS or varies(self.rec, p) for p in parts):
            return function(*args, **kwargs)
        if len(parts) > 1 and all(isinstance(p, Tensor) and not p.dim() for p in parts):
            if len({p.dtype for p in parts}) == 1:  # the element that Python would give
                best = parts[0]
                for p in parts[1:]:
                    best = clew.where(p > best if function is max else p < best, p, best)
                return best
        value = self.number(parts[0])
        for p in parts[1:]:
            value = compute(function.__name__, function, (value, self.number(p)))
        return value

    def _extreme_by(self, function: Any, items: Any, key: Any) -> Any:
        """min() or max() by a key: the first of those that are equal."""
        if as_loop(self.rec, items) is not None or has_maybe(items):
            raise ExportError(
                f"export: {function.__name__}(key=...) of what varies in length, at {here()}; "
                f"write it as a `for` statement"
            )
        items = list(items)
        if not items:
            return function(items, key=key)
        best, top = items[0], self.call(key, items[0])
        for x in items[1:]:
            found = self.call(key, x)
            c = self.condition(found > top if function is max else found < top)
            if type(c) not in SYMS:
                best, top = (x, found) if c else (best, top)
                continue
            names = (f"the {function.__name__}imum", "its key")
            sides = given((x, found)), given((best, top))
            best, top = self._branch(c, *sides, names, here().line)
        return best

    def _sum(self, x: Any, *start: Any, **named: Any) -> Any:
        if isinstance(x, ScanList):
            if not (start or named or x.before) and x.joined_rows.dim() > 1:
                self._not_empty(x)
            return self._sum([*x.before, x.joined_rows.sum(0)], *start, **named)
        if hasattr(type(x), "__next__"):
            x = list(x)
        if has_maybe(x):
            total: Any = next(iter([*start, *named.values()]), 0)
            first = x[0].value if type(x[0]) is Maybe else x[0]
            if not (start or named) and isinstance(first, Tensor) and first.dim():
                self._not_empty(x)
            for part in x:
                if type(part) is Maybe:
                    more, same = given((total + part.value,)), given((total,))
                    (total,) = self._branch(part.keep, more, same, ("the sum",), here().line)
                else:
                    total = total + part
            return total
        if not isinstance(x, Tensor) or as_loop(self.rec, x) is None:
            return sum(x, *start, **named)
        return sum([x.sum(0)], *start, **named)

    def _not_empty(self, items: Any) -> None:
        """The sum of no tensors would be the number 0. So where data decide the length of the
        list, the program checks that it is not empty."""
        count = items.length() if isinstance(items, ScanList) else length_of(items)
        if isinstance(items, ScanList) and not items.filtered:
            if type(count) not in SYMS or tuple(count.vals) not in self.rec.by_data:
                return
        if type(count) in SYMS:
            self.rec.guard(compute("gt", operator.gt, (count, 0)), True)

    def _reduce(self, function: Any, items: Any, *start: Any) -> Any:
        """functools.reduce() as the loop that it is."""
        found = as_loop(self.rec, items)
        if found is None:
            found = items
        first = start[0] if start else None
        if not start:
            if not isinstance(found, SymIter):
                return functools.reduce(partial(self.call, function), items)
            count, item = found.length(), found.item
            self.rec.guard(compute("gt", operator.gt, (count, 0)), True)
            first, found = item(0), SymIter(count - 1, lambda i: item(i + 1))

        def body(x: Any, total: Any) -> tuple[Any]:
            return (self.call(function, total, x),)

        return self.for_(found, body, (first,), ("what reduce() gives",), None, here().line)[0]

    def _round(self, x: Any, *digits: Any) -> Any:
        if type(x) in SYMS:
            return compute("round", round, (x, *(d for d in digits if d is not None)))
        return round(x, *digits)

    def _listed(self, kind: Any, *items: Any) -> Any:
        if items and isinstance(items[0], ScanList):
            return items[0]
        if items and as_loop(self.rec, items[0]) is not None:
            return self.listed(items[0], lambda x: x)
        made = kind(*items)
        return self.fresh(made) if kind is list else made

    def _map(self, function: Any, *items: Any) -> Any:
        loops = [x for x in map(partial(as_loop, self.rec), items) if x is not None]
        if len(items) == 1 and loops:
            return self.listed(loops[0], partial(self.call, function))
        if loops:
            return self.listed(self._zip(*items), lambda parts: self.call(function, *parts))
        return map(partial(self.call, function), *items)

    def _filter(self, function: Any, items: Any) -> Any:
        keeps = (lambda x: x) if function is None else partial(self.call, function)
        return self.generated(items, lambda x: x, keeps)

    def _enumerate(self, x: Any, start: int = 0) -> Any:
        found = as_loop(self.rec, x)
        if found is None:
            return enumerate(x, start)
        item = found.item
        return SymIter(found.length(), lambda i: (start + i, item(i)))

    def _reversed(self, x: Any) -> Any:
        found = as_loop(self.rec, x)
        if found is None:
            return reversed(x)
        count, item = found.length(), found.item
        return SymIter(count, lambda i: item(count - 1 - i))

    def _zip(self, *parts: Any, **kwargs: Any) -> Any:
        found = [as_loop(self.rec, p) for p in parts]
        loops = [x for x in found if x is not None]
        if not loops:
            return zip(*parts, **kwargs)
        if len(loops) < len(found) and kwargs.get("strict"):
            return self._zip_strict(parts, found)
        if len(loops) < len(found):
            raise ExportError(f"export: zip() of what varies in length and what does not: {here()}")
        count = loops[0].length()
        for x in loops[1:]:
            if kwargs.get("strict"):
                same = count == x.length()
                if type(same) in SYMS:
                    self.rec.guard(same, True)
            count = self._extreme(min, count, x.length())
        return SymIter(count, lambda i: tuple(x.item(i) for x in loops))

    def _zip_strict(self, parts: Any, found: list[Any]) -> Any:
        """zip() of what varies in length and what does not: the program checks that it is as
        long."""
        fixed = [list(p) for p, x in zip(parts, found) if x is None]
        count = len(fixed[0])
        columns = []
        for x in found:
            if x is None:
                columns.append(fixed.pop(0))
                continue
            same = x.length() == count
            if type(same) in SYMS:
                self.rec.guard(same, True)
            columns.append([x.item(i) for i in range(count)])
        return zip(*columns, strict=True)

    def _pad_sequence(self, sequences: Any, *args: Any, **kwargs: Any) -> Any:
        """pad_sequence(), of a list whose elements data filter, too."""
        if not isinstance(sequences, ScanList) and has_maybe(sequences):
            first = sequences[0]
            like = first.value if type(first) is Maybe else first
            sequences = RaggedList.of(sequences, like.dtype, like.dim())
        return self.converted(pad_sequence)(sequences, *args, **kwargs)


BUILTINS: dict[Any, Callable[..., Any]] = {
    len: Functions._len,
    range: Functions._range,
    int: lambda c, *a: c._cast(int, *a),
    float: lambda c, *a: c._cast(float, *a),
    bool: lambda c, *a: c._cast(bool, *a),
    min: lambda c, *a, **k: c._extreme(min, *a, **k),
    max: lambda c, *a, **k: c._extreme(max, *a, **k),
    round: Functions._round,
    functools.reduce: Functions._reduce,
    sum: Functions._sum,
    enumerate: Functions._enumerate,
    zip: Functions._zip,
    reversed: Functions._reversed,
    next: Functions._next,
    map: Functions._map,
    filter: Functions._filter,
    list: lambda c, *a: c._listed(list, *a),
    tuple: lambda c, *a: c._listed(tuple, *a),
    any: Functions._any,
    all: Functions._all,
    print: Functions._print,
}
