"""Variables that are None after one branch and a tensor or a number after the other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from clew.export._errors import Place
from clew.export._ir import Node, Value
from clew.export._symbols import Poison, recorder

__all__ = ["Perhaps", "implied", "known"]


class Perhaps(Poison):
    """What such a variable is: None, unless data say so. Behind ``if x is not None`` it is its
    value; elsewhere it may only be asked whether it is None, and be passed on.

    Args:
        value: the value; where it is None, something of its kind.
        present: whether it is not None.
        name: of the variable.
        place: of the `if`.
    """

    __slots__ = ("name", "place", "present", "value")
    value: Any
    present: Any
    name: str
    place: Place

    def __init__(self, value: Any, present: Any, name: str, place: Place) -> None:
        super().__init__(
            f"export: {name!r} may be None, as the `if` at {place} says, and is used as if it were "
            f"not; ask `if {name if name.isidentifier() else 'x'} is not None` before"
        )
        for key, x in (("value", value), ("present", present), ("name", name), ("place", place)):
            object.__setattr__(self, key, x)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        self._known()
        raise AssertionError("a value that is known was not taken")

    def _known(self) -> Any:
        """The value; fails unless the program has checked that there is one."""
        found = known(self)
        if found is self:
            Poison._fail(self)
        return found

    def __bool__(self) -> bool:
        return bool(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Any:
        return iter(self._known())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._known()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(name)
        return getattr(self._known(), name)


def _of_value(name: str) -> Callable[..., Any]:
    def method(self: Perhaps, *args: Any) -> Any:
        return getattr(operator, name)(self._known(), *args)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    def method(self: Perhaps, other: Any) -> Any:
        return getattr(operator, name)(other, self._known())

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_"):
    _slot = _name.strip("_")
    setattr(Perhaps, f"__{_slot}__", _of_value(_name))
    setattr(Perhaps, f"__r{_slot}__", _reflected(_name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "abs", "invert", "getitem", "setitem"):
    setattr(Perhaps, f"__{_name}__", _of_value(_name))
Perhaps.__hash__ = None  # type: ignore[assignment]


def known(x: Any) -> Any:
    """A value that may be None, as itself where it is known that it is not; other things as they
    are, and tuples, lists and dicts with such values in them."""
    if type(x) is Perhaps:
        if type(x.present) is bool:
            return known(x.value) if x.present else x
        number = x.present.value.id
        return known(x.value) if any(number in found for found in recorder().present) else x
    if type(x) in (tuple, list) and any(type(p) in (Perhaps, tuple, list, dict) for p in x):
        return type(x)(map(known, x))
    if type(x) is dict and any(type(p) in (Perhaps, tuple, list, dict) for p in x.values()):
        return {k: known(v) for k, v in x.items()}
    return x


def implied(rec: Any, value: Any, truth: bool) -> set[int]:
    """Numbers of the values that are true where a condition is true, or false."""
    if not isinstance(value, Value):
        return set()
    found = {value.id} if truth else set()
    node: Node | None = rec.made_by(value)
    if node is None:
        return found
    if node.op == "py.not":
        found |= implied(rec, node.args[0], not truth)
    elif node.op in ("py.bool", "alias"):
        found |= implied(rec, node.args[0], truth)
    elif node.op == ("py.both" if truth else "py.either"):
        found |= implied(rec, node.args[0], truth) | implied(rec, node.args[1], truth)
    elif node.op == "if":
        at = node.outputs.index(value)
        ends = [b.results[at] for b in node.blocks]
        for k in (0, 1):  # the other branch would give something else
            if ends[1 - k] is (not truth):
                found |= implied(rec, node.args[0], k == 0) | implied(rec, ends[k], truth)
    return found
