"""What rewritten functions ask where they assign, and of lists that grow."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from clew import Tensor
from clew.export._builtins import Functions
from clew.export._conditions import given
from clew.export._errors import ExportError, Place, here
from clew.export._journal import UNBOUND, Journal
from clew.export._lists import Appender, Maybe, ScanList, as_loop
from clew.export._merge import ELEMENT
from clew.export._symbols import SYMS

__all__ = ["Statements"]


class Statements(Functions):
    """Assignments of attributes and elements, lists, and what a `try` catches."""

    _lists: list[Any]  # that a first round may change
    _local: dict[int, list[Any]]  # lists made outside of any branch
    _staged: Any  # of Control

    # ---- statements ----

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
                how = "assign one, and store it afterwards"
                if isinstance(target, dict):
                    how = "a cache is computed anew in each run, without asking what it holds"
                raise ExportError(
                    f"export: the {what} of a {type(target).__name__} is assigned inside an `if` "
                    f"or a loop that data decides, at {here()}\n"
                    f"  Only local variables can be kept: {how}."
                )
        return target

    def put(self, target: Any, index: Any, value: Any, how: str | None) -> Any:
        """``target[index] = value``, or ``+=`` and the like; returns what the variable then is."""
        if how is not None:
            value = _AUGMENTED[how](target[index], value)
        if type(target) is Appender:
            if type(index) is not int or index != -1:
                raise target.refused("an element is assigned")
            target.replace_last(value)
            return target
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

    def augmented(self, target: Any, name: str, value: Any, how: str) -> None:
        """``target.name += value``; a tensor that is written in place stays the attribute."""
        old = getattr(target, name)
        made = _AUGMENTED[how](old, value)
        if made is not old or not isinstance(old, Tensor):
            setattr(self.may_store(target, name), name, made)

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
        elif type(made) is list:
            self._local[id(made)] = made
        return made

    def _is_local(self, x: Any) -> bool:
        """Whether a list was made in this run of the model, which nobody else sees."""
        return id(x) in self._local or any(id(x) in j.fresh for j in self.rec.journals)

    def listed(self, items: Any, each: Any, keeps: Any = None) -> Any:
        """``[each(x) for x in items if keeps(x)]``."""
        found = as_loop(self.rec, items)
        if found is None:
            return self.fresh(list(self._filtered(items, each, keeps)))

        def body(i: Any, v: Any) -> Any:
            for made in self._filtered([found.item(i)], each, keeps):
                v[0].append(made)
            return v

        name = ("the list",)
        return self._staged(found.length(), None, body, None, ([],), name, name)[0]

    def flattened(self, items: Any, each: Any, keeps: Any = None) -> Any:
        """``[f(x, y) for x in items if keeps(x) for y in g(x)]``: each() gives a list of x."""

        def part(x: Any) -> Any:
            c = True if keeps is None else self.condition(keeps(x))
            if type(c) in SYMS or type(x) is Maybe:
                raise ExportError(
                    f"export: data decide in a comprehension of several `for`, at {here()}, "
                    f"before the last of them; write `for` statements and append()"
                )
            return each(x) if c else []

        found = as_loop(self.rec, items)
        if found is None:
            whole: Any = []
            for x in items:
                whole = whole + part(x)
            return self.fresh(whole) if type(whole) is list else whole

        def body(i: Any, v: Any) -> Any:
            made = part(found.item(i))
            if isinstance(made, ScanList):
                v[0].extend(made)
            else:
                for x in made:
                    v[0].append(x)
            return v

        name = ("the list",)
        return self._staged(found.length(), None, body, None, ([],), name, name)[0]

    def spread(self, *parts: Any) -> Any:
        """``[*a, *b]``."""
        parts = tuple(self._listed(list, p) if as_loop(self.rec, p) else p for p in parts)
        if not any(isinstance(p, ScanList) for p in parts):
            return self.fresh([x for p in parts for x in p])
        whole: Any = []
        for p in parts:
            whole = whole + (p if isinstance(p, ScanList) else list(p))
        return whole

    def generated(self, items: Any, each: Any, keeps: Any = None) -> Any:
        """``(each(x) for x in items if keeps(x))``."""
        if as_loop(self.rec, items) is not None:
            return self.listed(items, each, keeps)
        return self.fresh(self._filtered(iter(items), each, keeps))

    def _filtered(self, items: Any, each: Any, keeps: Any) -> Iterator[Any]:
        for x in items:
            item, there = (x.value, x.keep) if type(x) is Maybe else (x, True)
            asked = True if keeps is None else self.condition(keeps(item))
            c: Any = self.and_(given(there), given(asked))
            if type(c) not in SYMS:
                if c:
                    yield each(item)
                continue
            then = functools.partial(_alone, each, item)
            (made,) = self._branch(c, then, given((UNBOUND,)), (ELEMENT,), here().line)
            yield Maybe(made, c)

    def _container(self, function: Any, owner: Any, args: Any) -> None:
        if function.__name__ in ("append", "extend", "insert", "pop", "update", "clear", "remove",
                                 "add", "setdefault"):  # fmt: skip
            journal = self.rec.journals[-1]
            if id(owner) in journal.fresh:
                return
            grows = function.__name__ == "append" and journal.growth is not None
            if grows and self._is_local(owner):
                journal.grow(owner, args[0])
            elif id(owner) not in map(id, self._lists):
                raise self._changes(owner, function.__name__)

    @staticmethod
    def _changes(owner: Any, how: str) -> ExportError:
        return ExportError(
            f"export: a {type(owner).__name__} changes inside an `if` or a loop that data "
            f"decides ({how}), at {here()}\n"
            f"  A list may grow by append() in a loop or in a branch; otherwise write into "
            f"a tensor, or use clew.where()."
        )

    def grow(self, target: Any, x: Any) -> None:
        """A list, or what stands for it in a loop, grows by an element."""
        journals = self.rec.journals
        if isinstance(target, (Appender, ScanList)):
            target.append(x)
            return
        if journals and id(target) not in journals[-1].fresh:
            if journals[-1].growth is not None:
                journals[-1].grow(target, x)
            elif id(target) not in map(id, self._lists):
                raise self._changes(target, "append")
        target.append(x)


def _alone(function: Any, x: Any) -> tuple[Any]:
    return (function(x),)


_AUGMENTED: dict[str, Callable[..., Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "MatMult": operator.imatmul, "BitAnd": operator.iand, "BitOr": operator.ior,
    "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip
