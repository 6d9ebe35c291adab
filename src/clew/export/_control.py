"""What rewritten functions ask: branches, loops and calls, plain or kept in the program."""

from __future__ import annotations

import functools
import math
import operator
import os
import types
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.autograd import Function
from clew.export._builtins import BUILTINS
from clew.export._cells import Cells
from clew.export._choices import callable_of, element
from clew.export._conditions import given
from clew.export._errors import ExportError, here, is_library, is_standard
from clew.export._inline import inlined, program_of
from clew.export._ir import Block, Node
from clew.export._journal import UNBOUND, Journal, KindChanges
from clew.export._lists import Maybe, ScanList, SymRange, as_loop
from clew.export._merge import ELEMENT, Merger
from clew.export._perhaps import Perhaps, implied, known
from clew.export._record import Recorder
from clew.export._rewrite import convert
from clew.export._scopes import Cell
from clew.export._statements import Statements
from clew.export._symbols import SYMS, Poison, SymBool, compute, settle
from clew.nn import Module
from clew.nn.utils.rnn import pad_sequence

__all__ = ["Control"]


class Control(Cells, Statements):
    """The functions behind `if`, `while`, `for` and calls, for one recording."""

    def __init__(self, rec: Recorder, listed: frozenset[types.CodeType] = frozenset()) -> None:
        self.rec = rec
        self._listed_codes = listed  # generators that are to return lists
        rec.control = self
        self._made: dict[Any, Any] = {}
        self._depth = 0
        self._lists: list[Any] = []  # that a first round may change
        self._local: dict[int, list[Any]] = {}  # lists made outside of any branch
        self._globals: dict[Any, tuple[Cell, Any]] = {}  # what they were before
        self._owned: dict[Any, tuple[Cell, int]] = {}  # since how many open branches they exist
        self._seen: list[tuple[int, set[Any]]] = []  # what open branches keep, by their depth

    # ---- calls ----

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call of the user's program."""
        if any(type(a) is Perhaps for a in (function, *args, *kwargs.values())):
            function, args, kwargs = known(function), known(args), known(kwargs)
            if not self._takes_none(function):
                for a in (*args, *kwargs.values()):
                    if type(a) is Perhaps:
                        a._fail()
        made = self._called(function, args, kwargs)
        if self.rec.journals and hasattr(type(made), "__next__"):
            return self.fresh(made)
        return made

    def _takes_none(self, function: Any) -> bool:
        """Whether a function is the user's, which may ask whether an argument is None."""
        if isinstance(function, Module):
            return True
        inner = getattr(function, "__func__", function)
        if not isinstance(inner, types.FunctionType):
            return False
        return not is_library(inner.__code__.co_filename)

    def _called(self, function: Any, args: Any, kwargs: Any) -> Any:
        function = self.rec.stand_ins.get(id(function), function)
        kind = type(function)
        if kind is types.FunctionType:
            if function is pad_sequence:
                return self._pad_sequence(*args, **kwargs)
            return self.converted(function)(*args, **kwargs)
        if kind is functools.partial:
            return self.call(function.func, *function.args, *args, **function.keywords, **kwargs)
        if kind is types.MethodType:
            owner = function.__self__
            if isinstance(owner, type) and issubclass(owner, Function):
                return self._applied(owner, function, args, kwargs)
            inner = function.__func__
            if type(inner) is types.FunctionType:
                return self.converted(inner)(function.__self__, *args, **kwargs)
            return function(*args, **kwargs)
        if any(type(a) in SYMS for a in args) and str(
            getattr(kind if kind is np.ufunc else function, "__module__", "")
        ).startswith("numpy"):  # it takes a number for an object of its own
            args = tuple(settle(a, "its value") if type(a) in SYMS else a for a in args)
        if kind is types.BuiltinFunctionType or kind is type:
            special = BUILTINS.get(function) if _hashable(function) else None
            if special is not None:
                return special(self, *args, **kwargs)
            if function is dict:
                return self.fresh(function(*args, **kwargs))
            if kind is types.BuiltinFunctionType:
                owner = function.__self__
                if self.rec.journals and isinstance(owner, (list, dict, set)):
                    self._container(function, owner, args)
                math_name = f"math.{function.__name__}" if owner is math else ""
                if math_name and any(type(a) in SYMS for a in args):
                    return compute(math_name, function, args)
            return function(*args, **kwargs)
        if isinstance(function, Module):
            program = program_of(function)
            if program is not None:
                return inlined(self, program, args, kwargs)
        else:
            if getattr(kind, "_clew_wraps", False):  # jit.script's
                return self.call(function.__wrapped__, *args, **kwargs)
            code = callable_of(function)
            if code is not None:
                return self.converted(code)(function, *args, **kwargs)
        return function(*args, **kwargs)

    def _applied(self, owner: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """``Own.apply(x)`` of an autograd.Function, whose forward() is rewritten meanwhile."""
        forward = owner.forward
        own = vars(owner).get("forward")
        if function.__name__ != "apply" or type(forward) is not types.FunctionType:
            return function(*args, **kwargs)
        owner.forward = staticmethod(self.converted(forward))
        try:
            return function(*args, **kwargs)
        finally:
            if own is None:
                del owner.forward
            else:
                owner.forward = own

    def item(self, items: Any, index: Any) -> Any:
        """``items[index]``."""
        return element(self, known(items), known(index))

    def converted(self, function: types.FunctionType) -> Any:
        """The function, rewritten if it is not a library's."""
        key = function
        made = self._made.get(key)
        if made is None:
            file = function.__code__.co_filename
            own = is_library(file) and not file.startswith(_KEPT)
            if own or is_standard(file):
                made = function
            else:
                made = convert(function, self, function.__code__ in self._listed_codes)
            self._made[key] = made
        return made

    # ---- branches ----

    def if_(
        self, test: Any, then: Any, other: Any, vals: Any, names: tuple[str, ...], line: int,
        cells: tuple[Cell, ...] = (),
    ) -> Any:  # fmt: skip
        """Both branches as functions of the variables that they assign."""
        c = self.condition(test)
        if type(c) not in SYMS:
            return (then if c else other)(*vals)
        return self._branch(c, lambda: then(*vals), lambda: other(*vals), names, line, cells)

    def if_return(
        self, test: Any, then: Any, other: Any, vals: Any, line: int, cells: tuple[Cell, ...] = ()
    ) -> Any:
        """Branches that end the function."""
        c = self.condition(test)
        if type(c) not in SYMS:
            return (then if c else other)(*vals)
        got = self._branch(
            c, lambda: (then(*vals),), lambda: (other(*vals),), ("the function's result",), line,
            cells,
        )  # fmt: skip
        return got[0]

    def _branch(
        self, c: SymBool, then: Any, other: Any, names: tuple[str, ...], line: int,
        cells: tuple[Cell, ...] = (),
    ) -> tuple[Any, ...]:  # fmt: skip
        if cells:
            vals = [x.get() for x in cells]
            then, other = (self._with_cells(f, cells, vals) for f in (then, other))
            with self._seeing(cells):
                got = self._branch(c, then, other, (*names, *(x.name for x in cells)), line)
            return self._leave_cells(got, cells)
        rec = self.rec
        place = here()
        takes = [bool(v) for v in c.vals]
        before = list(rec.active)
        self._depth += 1
        if self._depth > 60:
            raise ExportError(
                f"export: data decides how deep a recursion goes, at {place}; "
                f"write it as a loop over an array of nodes"
            )
        sides = []
        try:
            for wanted, function in ((True, then), (False, other)):
                rec.active = [a and t == wanted for a, t in zip(before, takes)]
                sides.append(self._side(c, wanted, function, takes, place))
        finally:
            rec.active = before
            self._depth -= 1
        if sides[0][2] is not None or sides[1][2] is not None:
            # A branch that only raises: the program checks that it is not taken.
            k = 1 if sides[0][2] is not None else 0
            rec.guard(c, k == 0)
            rec.blocks[-1].nodes += sides[k][0].nodes
            sides[k][3].leave(rec.journals, place)
            for grown, added in sides[k][3].grown():
                for x in added:
                    certain = x.keep is True and x.replaces is False
                    self.grow(grown, x.value if certain else x)
            left: Any = sides[k][1]
            return tuple(left)
        for outer in rec.journals:
            for _, _, _, journal, _ in sides:
                for key, (root, old) in journal.before.items():
                    outer.before.setdefault(key, (root, old))
        node = Node("if", (c.value,), place=place, blocks=[sides[0][0], sides[1][0]])
        merger = Merger(rec, node, takes, place)
        results: Any = (sides[0][1], sides[1][1])
        pairs = (_as_left(a, b, sides[0][4], sides[1][4]) for a, b in zip(*results))
        merged = tuple(merger.merge(a, b, name) for (a, b), name in zip(pairs, names))
        grown = self._merged_growth(merger, *(side[3] for side in sides))
        rec.emit(node)
        for _, _, _, journal, _ in sides:
            journal.leave(rec.journals, place)
        for target, x in grown:
            self.grow(target, x)
        return merged

    def _side(
        self, c: SymBool, wanted: bool, function: Any, takes: list[bool], place: Any
    ) -> tuple[Block, Any, BaseException | None, Journal, dict[int, Any]]:
        """Records one side of a branch: its calls, its result or what it raised, its changes, and
        what lists hold that append() has made longer.
        """
        rec = self.rec
        journal = Journal({})
        block = Block()
        rec.blocks.append(block)
        rec.journals.append(journal)
        rec.present.append(implied(rec, c.value, wanted))
        error: BaseException | None = None
        result = None
        try:
            result = known(function())
        except ExportError:
            raise
        except Exception as e:
            if getattr(e, "_clew_raised", False):
                rec.may_fail(e)
            if any(rec.active) or not getattr(e, "_clew_raised", False):
                if any(rec.active):
                    raise
                raise ExportError(
                    f"export: the branch at {place} that the example does not take "
                    f"fails on it: {type(e).__name__}: {e}"
                ) from e
            error = e
        finally:
            rec.blocks.pop()
            rec.journals.pop()
            rec.present.pop()
        journal.swap(_takers(takes, wanted))
        left_with: dict[int, Any] = {}
        for grown, added in journal.grown():
            if type(grown) is list:
                left_with[id(grown)] = list(grown)
                del grown[len(grown) - len(added) :]
            else:
                left_with[id(grown)] = grown.left(journal.states[id(grown)])
        return block, result, error, journal, left_with

    def _merged_growth(
        self, merger: Merger, then: Journal, other: Journal
    ) -> list[tuple[Any, Any]]:
        """The elements by which lists have grown in a branch, or may have."""
        found = []
        lists = {id(x): x for x, _ in (*then.grown(), *other.grown())}
        for key, target in lists.items():
            if key in then.lists or key in other.lists:
                continue  # a loop in the branch has made another list of it
            nothing = Maybe(UNBOUND, False)
            for a, b in zip_longest(then.added(key), other.added(key), fillvalue=nothing):
                value = merger.merge(a.value, b.value, ELEMENT)
                if isinstance(value, Poison):
                    value._fail()
                keep = merger.merge(a.keep, b.keep, ELEMENT)
                place = b.place if a is nothing else a.place
                goes = merger.merge(a.replaces, b.replaces, ELEMENT)
                certain = keep is True and goes is False
                found.append((target, value if certain else Maybe(value, keep, place, goes)))
        return found

    # ---- loops ----

    def while_(
        self, test: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None, line: int,
        grows: tuple[str, ...] = (), cells: tuple[Cell, ...] = (),
    ) -> Any:  # fmt: skip
        """A loop whose condition may be data."""
        vals = tuple(vals)
        rounds = 0
        while True:
            c = self.condition(test(*vals))
            if type(c) in SYMS:
                return self._staged(
                    None, c, lambda i, v: body(*v), lambda v: self.condition(test(*v)), vals, names,
                    grows, cells,
                )  # fmt: skip
            if not c:
                return vals
            vals = tuple(body(*vals))
            rounds += 1
            if rounds > 100_000:
                raise ExportError(f"export: more than 100,000 rounds of a plain loop at {here()}")

    def for_(
        self, items: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None,
        line: int, grows: tuple[str, ...] = (), cells: tuple[Cell, ...] = (),
    ) -> Any:  # fmt: skip
        """A loop over something whose length may be a size."""
        items = known(items)
        vals = tuple(vals)
        found = as_loop(self.rec, items)
        if found is not None:
            return self._staged_range(found, body, vals, names, broke, grows, cells)
        self._may_take(items)
        iterator = iter(items)
        left = items if type(items) is range else None
        for done, item in enumerate(iterator):
            if broke is not None:
                b = vals[broke]
                if type(b) in SYMS or isinstance(b, Tensor):
                    if left is not None and len(left) - done > 8:
                        rest = left[done:]
                        return self._staged_range(
                            SymRange(rest.start, rest.stop, rest.step), body, vals, names,
                            broke, grows, cells,
                        )  # fmt: skip
                    goes_on = self.not_(b)
                    if type(item) is Maybe:
                        goes_on = self.and_(given(goes_on), given(item.keep))
                        item = item.value
                    vals = self.if_(
                        goes_on, lambda *v, x=item: body(x, *v), lambda *v: v, vals,
                        names, line, cells,
                    )  # fmt: skip
                    continue
                if b:
                    break
            if type(item) is Maybe:
                vals = self.if_(
                    item.keep, lambda *v, x=item.value: body(x, *v), lambda *v: v, vals,
                    names, line, cells,
                )  # fmt: skip
                continue
            vals = tuple(body(item, *vals))
        return vals

    def _staged_range(
        self, items: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None,
        grows: tuple[str, ...], cells: tuple[Cell, ...],
    ) -> Any:  # fmt: skip
        count, item = items.length(), items.item
        if broke is None:
            return self._staged(
                count, None, lambda i, v: body(item(i), *v), None, vals, names, grows, cells
            )  # fmt: skip
        before = self.condition(vals[broke])
        if type(before) not in SYMS and before:
            return vals
        if type(before) not in SYMS:
            start: Any = self.rec.constant_sym(True)
        else:
            start = self.not_(before)

        def goes_on(v: Any) -> Any:
            return self.not_(v[broke])

        return self._staged(
            count, start, lambda i, v: body(item(i), *v), goes_on, vals, names, grows, cells
        )

    def _staged(
        self, trip: Any, cond: Any, body: Any, test: Any, vals: Any, names: tuple[str, ...],
        grows: tuple[str, ...], cells: tuple[Cell, ...] = (),
    ) -> Any:  # fmt: skip
        from clew.export._loops import Staged

        if cells:
            body = self._with_cells(body, cells)
            test = test and self._with_cells(test, cells)
            vals, names = (*vals, *(x.get() for x in cells)), (*names, *(x.name for x in cells))
            with self._seeing(cells):
                got = self._staged(trip, cond, body, test, vals, names, grows)
            return self._leave_cells(got, cells)
        loop = Staged(self, trip, cond, body, test, tuple(vals), names, grows)
        try:
            return loop.run()
        except KindChanges:
            if not all(loop.entered(run) for run, a in enumerate(self.rec.active) if a):
                raise
        # `total = 0` or `h = None` before the loop: the first round is recorded on its own, and
        # the program checks that there is one.
        if trip is not None:
            more = compute("gt", operator.gt, (trip, 0)) if type(trip) in SYMS else trip > 0
            if type(more) in SYMS:
                self.rec.guard(more, True)
            trip = trip - 1
        if cond is not None:
            self.rec.guard(cond, True)
        lists = [list(v) if n in grows and type(v) is list else v for v, n in zip(vals, names)]
        for x in lists:
            if type(x) is list:
                self.fresh(x)
        self._lists += lists
        vals_before = vals
        try:
            vals = tuple(body(0, lists))
        finally:
            del self._lists[len(self._lists) - len(lists) :]
        for old, made in zip(vals_before, lists):
            if old is not made:
                for journal in self.rec.journals:
                    journal.before_change(old)
                Journal.spoil(old, loop.place)
        if test is not None:
            cond = test(list(vals))
            if type(cond) not in SYMS:
                if not cond:
                    return vals
                cond = self.rec.constant_sym(True)
        return Staged(
            self, trip, cond, lambda i, v: body(i + 1, v), test, vals, names, grows
        ).run()  # fmt: skip


def _as_left(a: Any, b: Any, held_a: Any, held_b: Any) -> tuple[Any, Any]:
    """A variable's values after the two branches. Where one branch replaced its list, the other's
    value is the list as append() has left it there."""
    if type(a) is list and isinstance(b, ScanList):
        a = held_a.get(id(a), a)
    if type(b) is list and isinstance(a, ScanList):
        b = held_b.get(id(b), b)
    if a is not b and isinstance(a, ScanList):
        a = held_a.get(id(a), a)
    if a is not b and isinstance(b, ScanList):
        b = held_b.get(id(b), b)
    return a, b


def _takers(takes: list[bool], wanted: bool) -> Callable[[int], bool]:
    return lambda run: takes[run] == wanted


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


# Functions of the library that decide by sizes; they are kept like the user's.
_KEPT = tuple(
    os.path.join(os.path.dirname(clew.__file__), *parts)
    for parts in (("distributions", ""), ("nn", "utils", "rnn.py"))
)
