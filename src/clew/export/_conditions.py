"""Conditions of rewritten functions: plain ones, or numbers of the program."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

from clew import Tensor
from clew.export._errors import ExportError, here
from clew.export._ir import Block, Node, values_in
from clew.export._journal import UNBOUND, Journal, _is_number
from clew.export._lists import Appender, ScanList, has_maybe, length_of
from clew.export._matching import Matching
from clew.export._perhaps import Perhaps, implied, known
from clew.export._record import Recorder
from clew.export._symbols import SYMS, SymBool, compute

__all__ = ["Conditions", "given", "varies"]


class Conditions(Matching):
    """What `not`, `and`, `or`, comparisons and if-else ask."""

    rec: Recorder
    _branch: Any  # of Control
    number: Any

    @staticmethod
    def ld(get: Callable[[], Any]) -> Any:
        """A variable's value, or UNBOUND."""
        try:
            return get()
        except NameError:
            return UNBOUND

    @staticmethod
    def given(value: Any) -> Callable[[], Any]:
        """The first part of an `and` or an `or`, where it assigns a variable."""
        return lambda: value

    @staticmethod
    def unbound() -> Any:
        """A variable without a value."""
        return UNBOUND

    def condition(self, test: Any) -> Any:
        """A plain bool, or a SymBool when data or a size decides."""
        test = known(test)
        if type(test) in SYMS:
            return test if type(test) is SymBool else compute("bool", bool, (test,))
        if isinstance(test, ScanList) or type(test) is Appender:
            return self.condition(test.length())
        if has_maybe(test):
            return self.condition(length_of(test))
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
        a, b = known(a), known(b)
        for x, other in ((a, b), (b, a)):
            if type(x) is Perhaps and other is None:
                return self.not_(x.present)
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
        """A tensor, and the tensors of the branches that it may stand for."""
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
        if not varies(self.rec, value):
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
            if not varies(self.rec, value):
                if not value:
                    return value
                value = part()
                continue
            value = self._second(part, self.condition(value), True)
        return value

    def or_(self, *parts: Callable[[], Any]) -> Any:
        """``a or b`` in a condition."""
        value: Any = False
        for i, part in enumerate(parts):
            if i == 0:
                value = part()
                continue
            if not varies(self.rec, value):
                if value:
                    return value
                value = part()
                continue
            value = self._second(part, self.condition(value), False)
        return value

    def _second(self, part: Callable[[], Any], first: SymBool, both: bool) -> Any:
        """``first and part()``, or ``or``: where the first part decides alone, the second must not
        run, as in ``i < len(x) and x[i] > 0``, unless it is a mere computation."""
        rec = self.rec
        block, active, journal = Block(), rec.active, Journal()
        rec.blocks.append(block)
        rec.journals.append(journal)
        rec.active = [a and bool(v) is both for a, v in zip(active, first.vals)]
        rec.present.append(implied(rec, first.value, both))
        other: Any = None
        try:
            other = self.condition(part())
            plain = all(map(_cannot_fail, block.nodes))
        except ExportError:
            raise
        except Exception:
            plain = False  # of the run in which it does not run
        finally:
            rec.blocks.pop()
            rec.journals.pop()
            rec.present.pop()
            rec.active = active
            journal.swap(lambda run: False)
        if plain:
            for node in block.nodes:
                rec.emit(node)
            other = other if type(other) in SYMS else bool(other)
            name, function = ("both", _both) if both else ("either", _either)
            return compute(name, function, (first, other))
        told = (f"the result of `{'and' if both else 'or'}`",)
        more, ends = (lambda: (self.condition(part()),)), given((not both,))
        sides = (more, ends) if both else (ends, more)
        return self._branch(first, *sides, told, here().line)[0]

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
            if not varies(self.rec, value) and not value:
                return value
            right = part()
            found = op(left, right)
            value = found if value is True else self.and_(given(value), given(found))
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


_PLAIN_CALLS = frozenset(
    """
    item size numel alias sum mean abs any all norm linalg.vector_norm neg isnan isfinite isinf
    logical_not Tensor.any Tensor.all eq ne lt le gt ge mul add sub
    """.split()
)
_MAY_FAIL = ("py.truediv", "py.floordiv", "py.mod", "py.pow", "py.lshift", "py.rshift", "py.math.")


def _cannot_fail(node: Node) -> bool:
    """Whether a call runs whatever the values are, and is cheap."""
    if node.op.startswith("py."):
        return not node.op.startswith(_MAY_FAIL)
    tensors = [v for v in values_in((node.args, node.kwargs)) if v.kind == "tensor"]
    return node.op in _PLAIN_CALLS and len(tensors) < 2


def _both(a: Any, b: Any) -> bool:
    return bool(a) and bool(b)


def _either(a: Any, b: Any) -> bool:
    return bool(a) or bool(b)


def given(x: Any) -> Callable[[], Any]:
    return lambda: x


def varies(rec: Recorder, x: Any) -> bool:
    if isinstance(x, ScanList) or type(x) is Appender or has_maybe(x):
        return True
    return type(x) in SYMS or (isinstance(x, Tensor) and rec._depends((x,)))


_COMPARE = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
}  # fmt: skip
