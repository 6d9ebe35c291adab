"""What rewritten functions ask: branches, loops and calls, plain or kept in the program."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import math
import operator
import os
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

import clew
from clew import Tensor
from clew.export._choices import callable_of, element
from clew.export._errors import ExportError, Place, here, is_library, is_standard
from clew.export._inline import inlined, program_of
from clew.export._ir import Block, Node, Value
from clew.export._journal import UNBOUND, Journal, KindChanges, _is_number, _kind
from clew.export._lists import Appender, ScanList, SymIter, SymRange, as_loop
from clew.export._record import Recorder, _shape_of, unseen
from clew.export._rewrite import convert
from clew.export._symbols import SYMS, Poison, SymBool, SymFloat, SymInt, compute, settle
from clew.nn import Module

__all__ = ["Control"]


_KINDS = {"int": SymInt, "float": SymFloat, "bool": SymBool}


class Control:
    """The functions behind `if`, `while`, `for` and calls, for one recording."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        rec.control = self
        self._made: dict[Any, Any] = {}
        self._depth = 0
        self._lists: list[Any] = []  # that a first round may change

    # ---- pieces of expressions ----

    @staticmethod
    def ld(get: Callable[[], Any]) -> Any:
        """A variable's value, or UNBOUND."""
        try:
            return get()
        except NameError:
            return UNBOUND

    @staticmethod
    def unbound() -> Any:
        """A variable without a value."""
        return UNBOUND

    def condition(self, test: Any) -> Any:
        """A plain bool, or a SymBool when data or a size decides."""
        if type(test) in SYMS:
            return test if type(test) is SymBool else compute("bool", bool, (test,))
        if isinstance(test, Tensor):
            if self.rec._depends((test,)):
                found = self.rec.item(test)
                return self.condition(found)
            return builtins.bool(self.rec.quietly(Tensor.__bool__, (test,), {}))
        return builtins.bool(test)

    def not_(self, x: Any) -> Any:
        """``not x``."""
        c = self.condition(x)
        return compute("not", operator.not_, (c,)) if type(c) in SYMS else not c

    def same(self, a: Any, b: Any) -> Any:
        """``a is b``."""
        if type(b) in SYMS and type(a) not in SYMS:
            a, b = b, a
        if type(a) is SymBool and isinstance(b, bool):
            return a if b is True else self.not_(a)
        if type(a) in SYMS and type(b) in (bool, int, float, *SYMS) and a is not b:
            raise ExportError(
                f"export: `is` compares a number that varies, at {here()}; write `==`"
            )
        if a is not b and isinstance(a, Tensor) and isinstance(b, Tensor):
            if {id(t) for t in self._sources(a)} & {id(t) for t in self._sources(b)}:
                raise ExportError(
                    f"export: `is` asks at {here()} which tensor a branch chose that data decides; "
                    f"keep a number that says so"
                )
        return a is b

    def _sources(self, t: Tensor) -> list[Tensor]:
        """A tensor, and those that it may be after a branch."""
        found = self.rec.merged.get(id(t), ())
        return [t, *(s for part in found for s in self._sources(part))]

    def and_value(self, *parts: Callable[[], Any]) -> Any:
        """``a and b`` where more counts than whether it is true."""
        return self._value_of(parts, True)

    def or_value(self, *parts: Callable[[], Any]) -> Any:
        """``a or b``, likewise."""
        return self._value_of(parts, False)

    def _value_of(self, parts: tuple[Callable[[], Any], ...], goes_on: bool) -> Any:
        value = parts[0]()
        rest = parts[1:]
        if not rest:
            return value
        if not _varies(self.rec, value):
            return self._value_of(rest, goes_on) if bool(value) is goes_on else value
        c = self.condition(value)
        name = ("the result of `and`" if goes_on else "the result of `or`",)

        def more() -> Any:
            return (self._value_of(rest, goes_on),)

        then, other = (more, lambda: (value,)) if goes_on else (lambda: (value,), more)
        return self._branch(c, then, other, name, here().line)[0]

    def and_(self, *parts: Callable[[], Any]) -> Any:
        """``a and b`` in a condition; parts that are numbers of the program are all computed."""
        value: Any = True
        for i, part in enumerate(parts):
            if i == 0:
                value = part()
                continue
            if not _varies(self.rec, value):
                if not value:
                    return value
                value = part()
                continue
            kept = self.condition(value)
            value = self._second(part, kept, "both", _both)
        return value

    def or_(self, *parts: Callable[[], Any]) -> Any:
        """``a or b`` in a condition."""
        value: Any = False
        for i, part in enumerate(parts):
            if i == 0:
                value = part()
                continue
            if not _varies(self.rec, value):
                if value:
                    return value
                value = part()
                continue
            kept = self.condition(value)
            value = self._second(part, kept, "either", _either)
        return value

    def _second(self, part: Any, kept: Any, name: str, function: Any) -> Any:
        other = self.condition(part())
        if type(other) not in SYMS:
            other = bool(other)
        return compute(name, function, (kept, other))

    def ifexp(self, test: Any, a: Callable[[], Any], b: Callable[[], Any], line: int) -> Any:
        """``a if test else b``."""
        c = self.condition(test)
        if type(c) not in SYMS:
            return a() if c else b()
        return self._branch(c, lambda: (a(),), lambda: (b(),), ("the result of if-else",), line)[0]

    def chain(self, names: str, *parts: Callable[[], Any]) -> Any:
        """``a < b < c``."""
        ops = [_COMPARE[n] for n in names.split()]
        left, value = parts[0](), True
        for op, part in zip(ops, parts[1:]):
            if not _varies(self.rec, value) and not value:
                return value
            right = part()
            found = op(left, right)
            value = found if value is True else self.and_(_given(value), _given(found))
            left = right
        return value

    def assert_(self, test: Any, message: Callable[[], Any]) -> None:
        """``assert test, message``."""
        c = self.condition(test)
        if type(c) in SYMS:
            self.rec.may_fail(AssertionError())
            self.rec.guard(c, True)
            if not all(v for v, a in zip(c.vals, self.rec.active) if a):
                raise AssertionError(message())
        elif not c:
            raise AssertionError(message())

    def trying(self, kinds: Callable[[], Any]) -> Any:
        """The block of a `try` statement that catches these exceptions."""
        return self._trying(kinds(), here())

    @contextmanager
    def _trying(self, kinds: Any, place: Place) -> Iterator[None]:
        self.rec.tries.append((kinds, place))
        try:
            yield
        except ExportError as e:
            self.rec.refusal = self.rec.refusal or e  # the model's `except` may catch it
            raise
        except Exception as e:
            if type(e).__name__ == "LinAlgError":  # of a matrix, not of how it is asked for
                try:
                    self.rec.may_fail(e)
                except ExportError as refused:
                    self.rec.refusal = refused
            raise
        finally:
            self.rec.tries.pop()

    def entered(self, manager: Any) -> Any:
        """The manager of a `with` block; contextlib.suppress() makes a `try` of it."""
        return self._suppressing(manager, here()) if type(manager) is suppress else manager

    @contextmanager
    def _suppressing(self, manager: Any, place: Place) -> Iterator[None]:
        with manager, self._trying(manager._exceptions, place):
            yield

    @staticmethod
    def raised(error: Any) -> Any:
        """Marks an exception as the user's own."""
        made = error() if isinstance(error, type) else error
        if isinstance(made, BaseException):
            try:
                made._clew_raised = True  # type: ignore[attr-defined]
            except AttributeError:
                pass
        return made

    def may_store(self, target: Any, name: str | None) -> Any:
        """An object whose attribute or element is about to be assigned."""
        if id(target) in (self.rec.journals[-1].fresh if self.rec.journals else ()):
            return target
        if self.rec.journals and not isinstance(target, Tensor):
            if isinstance(target, types.ModuleType) or name is not None or isinstance(
                target, (list, dict)
            ):  # fmt: skip
                what = f"attribute {name!r}" if name else "element"
                raise ExportError(
                    f"export: the {what} of a {type(target).__name__} is assigned inside an `if` "
                    f"or a loop that data decides, at {here()}\n"
                    f"  Only local variables can be kept: assign one, and store it afterwards."
                )
        return target

    def put(self, target: Any, index: Any, value: Any, how: str | None) -> Any:
        """``target[index] = value``, or ``+=`` and the like; returns what the variable then is."""
        if type(target) is Appender:
            raise target.refused("an element is assigned")
        if how is not None:
            value = _AUGMENTED[how](target[index], value)
        journals = self.rec.journals
        if not journals or type(target) not in (list, dict) or id(target) in journals[-1].fresh:
            self.may_store(target, None)[index] = value
            return target
        if type(index) in SYMS:
            raise ExportError(
                f"export: the element of a {type(target).__name__} whose number varies is assigned "
                f"at {here()}; write into a tensor instead"
            )
        made = target.copy()
        made[index] = value
        for journal in journals:
            journal.before_change(target)
        Journal.spoil(target, here())
        return made

    def extended(self, target: Any, added: Any) -> Any:
        """``target += added``; returns what the variable then is."""
        journals = self.rec.journals
        if type(target) is Appender:
            for x in added:
                target.append(x)
            return target
        if not journals or type(target) is not list or id(target) in journals[-1].fresh:
            target += added
            return target
        made = [*target, *added]
        for journal in journals:
            journal.before_change(target)
        Journal.spoil(target, here())
        return self.fresh(made)

    def fresh(self, made: Any) -> Any:
        """A list or dict that was just made."""
        if self.rec.journals:
            self.rec.journals[-1].fresh[id(made)] = made
        return made

    def contains(self, x: Any, items: Any) -> Any:
        """``x in items``."""
        x = self.number(x)
        listed = isinstance(items, (tuple, list, set, frozenset, dict)) and not isinstance(
            items, ScanList
        )
        if type(x) not in SYMS or not listed or not all(map(_is_number, items)):
            return x in items
        found: Any = False
        for k in items:
            found = compute("either", _either, (found, x == k))
        return found

    def listed(self, items: Any, each: Any) -> Any:
        """``[each(x) for x in items]``."""
        found = as_loop(self.rec, items)
        if found is None:
            return self.fresh([each(x) for x in items])

        def body(i: Any, v: Any) -> Any:
            v[0].append(each(found.item(i)))
            return v

        name = ("the list",)
        return self._staged(found.length(), None, body, None, ([],), name, name)[0]

    # ---- calls ----

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call of the user's program."""
        made = self._called(function, args, kwargs)
        if self.rec.journals and hasattr(type(made), "__next__"):
            return self.fresh(made)
        return made

    def _called(self, function: Any, args: Any, kwargs: Any) -> Any:
        kind = type(function)
        if kind is types.FunctionType:
            return self.converted(function)(*args, **kwargs)
        if kind is functools.partial:
            return self.call(function.func, *function.args, *args, **function.keywords, **kwargs)
        if kind is types.MethodType:
            inner = function.__func__
            if type(inner) is types.FunctionType:
                return self.converted(inner)(function.__self__, *args, **kwargs)
            return function(*args, **kwargs)
        if any(type(a) in SYMS for a in args) and str(
            getattr(kind if kind is np.ufunc else function, "__module__", "")
        ).startswith("numpy"):  # it takes a number for an object of its own
            args = tuple(settle(a, "its value") if type(a) in SYMS else a for a in args)
        if kind is types.BuiltinFunctionType or kind is type:
            special = _BUILTINS.get(function) if _hashable(function) else None
            if special is not None:
                return special(self, *args, **kwargs)
            if function is list or function is dict:
                return self.fresh(function(*args, **kwargs))
            if kind is types.BuiltinFunctionType:
                owner = function.__self__
                if self.rec.journals and isinstance(owner, (list, dict, set)):
                    self._container(function, owner)
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

    def item(self, items: Any, index: Any) -> Any:
        """``items[index]``."""
        return element(self, items, index)

    def _container(self, function: Any, owner: Any) -> None:
        if function.__name__ in ("append", "extend", "insert", "pop", "update", "clear", "remove",
                                 "add", "setdefault"):  # fmt: skip
            if id(owner) in self.rec.journals[-1].fresh or id(owner) in map(id, self._lists):
                return
            raise ExportError(
                f"export: a {type(owner).__name__} changes inside an `if` or a loop that data "
                f"decides ({function.__name__}), at {here()}\n"
                f"  A list may grow by one append() in each round of a loop; otherwise write into "
                f"a tensor, or use clew.where()."
            )

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
                made = convert(function, self)
            self._made[key] = made
        return made

    # ---- branches ----

    def if_(
        self, test: Any, then: Any, other: Any, vals: Any, names: tuple[str, ...], line: int
    ) -> Any:
        """Both branches as functions of the variables that they assign."""
        c = self.condition(test)
        if type(c) not in SYMS:
            return (then if c else other)(*vals)
        return self._branch(c, lambda: then(*vals), lambda: other(*vals), names, line)

    def if_return(self, test: Any, then: Any, other: Any, vals: Any, line: int) -> Any:
        """Branches that end the function."""
        c = self.condition(test)
        if type(c) not in SYMS:
            return (then if c else other)(*vals)
        got = self._branch(
            c, lambda: (then(*vals),), lambda: (other(*vals),), ("the function's result",), line
        )
        return got[0]

    def _branch(
        self, c: SymBool, then: Any, other: Any, names: tuple[str, ...], line: int
    ) -> tuple[Any, ...]:
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
                journal = Journal()
                rec.active = [a and t == wanted for a, t in zip(before, takes)]
                block = Block()
                rec.blocks.append(block)
                rec.journals.append(journal)
                error: BaseException | None = None
                result = None
                try:
                    result = function()
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
                active = rec.active
                written = journal.swap(_takers(takes, wanted))
                sides.append((block, result, error, journal, written, active))
        finally:
            rec.active = before
            self._depth -= 1
        if sides[0][2] is not None or sides[1][2] is not None:
            # A branch that only raises: the program checks that it is not taken.
            k = 1 if sides[0][2] is not None else 0
            rec.guard(c, k == 0)
            rec.blocks[-1].nodes += sides[k][0].nodes
            sides[k][3].leave(rec.journals, place)
            got: Any = sides[k][1]
            return tuple(got)
        for outer in rec.journals:
            for _, _, _, journal, _, _ in sides:
                for key, (root, old) in journal.before.items():
                    outer.before.setdefault(key, (root, old))
        node = Node("if", (c.value,), place=place, blocks=[sides[0][0], sides[1][0]])
        merger = _Merger(rec, node, takes, place)
        results: Any = (sides[0][1], sides[1][1])
        merged = tuple(merger.merge(a, b, name) for a, b, name in zip(*results, names))
        rec.emit(node)
        for _, _, _, journal, _, _ in sides:
            journal.leave(rec.journals, place)
        return merged

    # ---- loops ----

    def while_(
        self, test: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None, line: int,
        grows: tuple[str, ...] = (),
    ) -> Any:  # fmt: skip
        """A loop whose condition may be data."""
        vals = tuple(vals)
        rounds = 0
        while True:
            c = self.condition(test(*vals))
            if type(c) in SYMS:
                return self._staged(
                    None, c, lambda i, v: body(*v), lambda v: self.condition(test(*v)), vals, names,
                    grows,
                )  # fmt: skip
            if not c:
                return vals
            vals = tuple(body(*vals))
            rounds += 1
            if rounds > 100_000:
                raise ExportError(f"export: more than 100,000 rounds of a plain loop at {here()}")

    def for_(
        self, items: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None,
        line: int, grows: tuple[str, ...] = (),
    ) -> Any:  # fmt: skip
        """A loop over something whose length may be a size."""
        vals = tuple(vals)
        found = as_loop(self.rec, items)
        if found is None:
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
                                broke, grows,
                            )  # fmt: skip
                        vals = self.if_(
                            self.not_(b), lambda *v, x=item: body(x, *v), lambda *v: v, vals,
                            names, line,
                        )  # fmt: skip
                        continue
                    if b:
                        break
                vals = tuple(body(item, *vals))
            return vals
        return self._staged_range(found, body, vals, names, broke, grows)

    def _staged_range(
        self, items: Any, body: Any, vals: Any, names: tuple[str, ...], broke: int | None,
        grows: tuple[str, ...],
    ) -> Any:  # fmt: skip
        count, item = items.length(), items.item
        if broke is None:
            return self._staged(
                count, None, lambda i, v: body(item(i), *v), None, vals, names, grows
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
            count, start, lambda i, v: body(item(i), *v), goes_on, vals, names, grows
        )

    def _staged(
        self, trip: Any, cond: Any, body: Any, test: Any, vals: Any, names: tuple[str, ...],
        grows: tuple[str, ...],
    ) -> Any:  # fmt: skip
        from clew.export._loops import Staged

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

    # ---- functions of Python ----

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
        found: Any = goes_on
        for x in items:
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
        if isinstance(x, (SymIter, ScanList)):
            return x.length()
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
        several = len(args) == 1 and isinstance(args[0], (tuple, list))
        if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dim() == 1 and not kwargs:
            return args[0].amax(0) if function is max else args[0].amin(0)
        parts = list(args[0]) if several and not isinstance(args[0], ScanList) else list(args)
        if kwargs or not any(type(p) in SYMS or _varies(self.rec, p) for p in parts):
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

    def _sum(self, x: Any, *start: Any, **named: Any) -> Any:
        if isinstance(x, ScanList):
            return sum([*x.before, x.rows("stack").sum(0)], *start, **named)
        if not isinstance(x, Tensor) or as_loop(self.rec, x) is None:
            return sum(x, *start, **named)
        return sum([x.sum(0)], *start, **named)

    def _round(self, x: Any, *digits: Any) -> Any:
        if type(x) in SYMS:
            return compute("round", round, (x, *(d for d in digits if d is not None)))
        return round(x, *digits)

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
        if len(loops) < len(found):
            raise ExportError(f"export: zip() of what varies in length and what does not: {here()}")
        count = loops[0].length()
        for x in loops[1:]:
            count = self._extreme(min, count, x.length())
        return SymIter(count, lambda i: tuple(x.item(i) for x in loops))


def _both(a: Any, b: Any) -> bool:
    return bool(a) and bool(b)


def _either(a: Any, b: Any) -> bool:
    return bool(a) or bool(b)


def _given(x: Any) -> Callable[[], Any]:
    return lambda: x


def _takers(takes: list[bool], wanted: bool) -> Callable[[int], bool]:
    return lambda run: takes[run] == wanted


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _varies(rec: Recorder, x: Any) -> bool:
    return type(x) in SYMS or (isinstance(x, Tensor) and rec._depends((x,)))


_BUILTINS: dict[Any, Callable[..., Any]] = {
    len: Control._len,
    range: Control._range,
    int: lambda c, *a: c._cast(int, *a),
    float: lambda c, *a: c._cast(float, *a),
    bool: lambda c, *a: c._cast(bool, *a),
    min: lambda c, *a, **k: c._extreme(min, *a, **k),
    max: lambda c, *a, **k: c._extreme(max, *a, **k),
    round: Control._round,
    sum: Control._sum,
    enumerate: Control._enumerate,
    zip: Control._zip,
    reversed: Control._reversed,
    next: Control._next,
    any: Control._any,
    all: Control._all,
    print: Control._print,
}
_AUGMENTED: dict[str, Callable[..., Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "MatMult": operator.imatmul, "BitAnd": operator.iand, "BitOr": operator.ior,
    "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip
_COMPARE = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
}  # fmt: skip
# Functions of the library that decide by sizes; they are kept like the user's.
_KEPT = os.path.join(os.path.dirname(clew.__file__), "distributions", "")


class _Merger:
    """Makes one value of what a variable is after either branch."""

    def __init__(self, rec: Recorder, node: Node, takes: list[bool], place: Place) -> None:
        self.rec, self.node, self.takes, self.place = rec, node, takes, place

    def merge(self, a: Any, b: Any, name: str) -> Any:
        """The variable's value after the `if`."""
        if a is b:
            return a
        a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
        if name.startswith("_clew_value") and (a is UNBOUND or b is UNBOUND):
            # A value to return, where nothing is returned: anything of its kind will do.
            from clew.export._loops import placeholder

            block = self.node.blocks[0 if a is UNBOUND else 1]
            self.rec.blocks.append(block)
            try:
                stand_in = placeholder(self.rec, b if a is UNBOUND else a)
            finally:
                self.rec.blocks.pop()
            a, b = (stand_in, b) if a is UNBOUND else (a, stand_in)
        ta, tb = isinstance(a, Tensor), isinstance(b, Tensor)
        if ta and tb:
            return self._tensors(a, b, name)
        na, nb = _is_number(a), _is_number(b)
        if na and nb:
            if type(a) not in SYMS and type(b) not in SYMS and type(a) is type(b) and a == b:
                return a
            return self._numbers(a, b, name)
        if (ta and nb) or (na and tb):
            like = a if ta else b
            block = self.node.blocks[1 if ta else 0]
            self.rec.blocks.append(block)
            try:
                number = b if ta else a
                made = clew.full((), number, dtype=like.dtype).expand(like.shape)
            finally:
                self.rec.blocks.pop()
            return self._tensors(a if ta else made, made if ta else b, name)
        for kind in (tuple, list):
            if isinstance(a, kind) and isinstance(b, kind) and len(a) == len(b):
                parts = [self.merge(x, y, name) for x, y in zip(a, b)]
                if type(a) is type(b) and hasattr(a, "_fields"):
                    return type(a)(*parts)
                return parts if kind is list else tuple(parts)
        if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            return {k: self.merge(a[k], b[k], name) for k in a}
        if dataclasses.is_dataclass(a) and type(a) is type(b) and not isinstance(a, type):
            fields = [f.name for f in dataclasses.fields(a) if f.init]
            merged = {f: self.merge(getattr(a, f), getattr(b, f), name) for f in fields}
            return dataclasses.replace(a, **merged)
        if not _is_number(a) and not ta and type(a) is type(b) and _same(a, b):
            return a
        if name == "the function's result" or name.startswith("the result"):
            raise ExportError(
                f"export: {name} is {_kind(a)} in one branch and {_kind(b)} in the other, of the "
                f"`if` at {self.place}; give both the same structure, of tensors and numbers"
            )
        return Poison(
            f"export: {name!r} is {_kind(a)} after one branch and {_kind(b)} after the other, of "
            f"the `if` at {self.place}; give it a value of one kind before the `if`"
        )

    def _tensors(self, a: Tensor, b: Tensor, name: str) -> Any:
        rec = self.rec
        ha, hb = rec.held(a), rec.held(b)
        if a.dtype != b.dtype or a.dim() != b.dim():
            return Poison(
                f"export: {name!r} is {a.dtype.name} of {a.dim()} dims after one branch and "
                f"{b.dtype.name} of {b.dim()} dims after the other, of the `if` at {self.place}; "
                f"give both the same dtype and number of dims"
            )
        runs = []
        with unseen(rec):
            for run, taken in enumerate(self.takes):
                source = ha.runs[run] if taken else hb.runs[run]
                runs.append(source.detach() if source.requires_grad else source.view_as(source))
            columns = [tuple(_shape_of(h.runs[r]) for r in range(rec.runs)) for h in (ha, hb)]
            loose = set(ha.loose | hb.loose)
            for ca, cb in zip(zip(*columns[0]), zip(*columns[1])):
                if ca != cb:
                    loose |= {ca, cb, tuple(
                        x if t else y for x, y, t in zip(ca, cb, self.takes))}  # fmt: skip
            value = rec.tensor_value(runs, loose=frozenset(c for c in loose if len(set(c)) == 1))
        self._output(value, ha.value, hb.value)
        rec.merged[id(runs[0])] = (a, b)
        return runs[0]

    def _numbers(self, a: Any, b: Any, name: str) -> Any:
        rec = self.rec
        kinds = [x.kind if type(x) in SYMS else type(x).__name__ for x in (a, b)]
        kind = kinds[0] if kinds[0] == kinds[1] else _wider(*kinds)
        vals = []
        cast = {"int": int, "float": float, "bool": bool}[kind]
        for run, taken in enumerate(self.takes):
            source = a if taken else b
            vals.append(cast(source.vals[run] if type(source) in SYMS else source))
        value = rec.new_value(kind, vals)
        sides = [rec.stored(x) if type(x) in SYMS else cast(x) for x in (a, b)]
        for k, side in enumerate(sides):
            if isinstance(side, Value) and side.kind != kind:
                made = rec.new_value(kind, [cast(v) for v in rec.concrete[side.id]])
                self.node.blocks[k].nodes.append(
                    Node(f"py.{kind}", (side,), outputs=[made], place=self.place)
                )
                sides[k] = made
        self._output(value, *sides)
        return _KINDS[kind](value, vals)

    def _output(self, value: Value, a: Any, b: Any) -> None:
        self.node.outputs.append(value)
        self.node.blocks[0].results.append(a)
        self.node.blocks[1].results.append(b)


def _wider(a: str, b: str) -> str:
    return "float" if "float" in (a, b) else "int"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:
        return False
