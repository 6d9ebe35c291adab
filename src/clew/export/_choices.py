"""One of several things of Python, chosen by a number of the program."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from clew import Tensor, nn
from clew.export._errors import ExportError, here
from clew.export._ir import Node, Value
from clew.export._journal import _is_number
from clew.export._lists import ScanList
from clew.export._symbols import SYMS, Sym, compute, compute_both

if TYPE_CHECKING:
    from clew.export._control import Control

__all__ = ["Choice", "element"]

_MOST = 64
_LISTS = (list, tuple, nn.ModuleList, nn.Sequential, nn.ParameterList)
_PLAIN = (str, bytes, bool, int, float, type(None))


class Choice:
    """Layers, functions or values of which the program takes one; each use is a branch."""

    __slots__ = ("_keys", "_options", "_parts")

    def __init__(self, parts: tuple[Control, Any, Any], keys: list[Any], options: list[Any]):
        self._parts, self._keys, self._options = parts, keys, options

    def _each(self, use: Callable[[Any], Any]) -> Any:
        control, sym, place = self._parts
        return _chosen(control, sym, self._keys, [_bound(use, o) for o in self._options], place)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        control = self._parts[0]
        return self._each(lambda o: control.call(o, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._picked([getattr(o, name) for o in self._options])

    def __getitem__(self, index: Any) -> Any:
        control = self._parts[0]
        return self._picked([element(control, o, index) for o in self._options])

    def __eq__(self, other: Any) -> Any:
        if not all(isinstance(o, _PLAIN) for o in (*self._options, other)):
            self._fail()
        return self._picked([o == other for o in self._options])

    def __ne__(self, other: Any) -> Any:
        return self._parts[0].not_(self == other)

    def _picked(self, options: list[Any]) -> Any:
        control, sym, place = self._parts
        return picked(control, sym, self._keys, options, place)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise ExportError(
            f"export: what data chose at {self._parts[2]} is used as a whole at {here()}\n"
            f"  Layers and functions that data chooses may be called, and their attributes and "
            f"elements be read: write the rest as `if` and `elif`."
        )

    __bool__ = __iter__ = __len__ = __hash__ = __str__ = __repr__ = _fail
    __contains__ = __int__ = __float__ = __index__ = __lt__ = __gt__ = __le__ = __ge__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _fail
    __setitem__ = _fail


def _bound(use: Callable[[Any], Any], option: Any) -> Callable[[], Any]:
    return lambda: use(option)


def element(control: Control, items: Any, index: Any) -> Any:
    """``items[index]``."""
    if type(index) is Choice:
        return index._picked([items[k] for k in index._options])
    listed = isinstance(items, _LISTS) and not isinstance(items, ScanList)
    if isinstance(index, Tensor) and (listed or type(items) is dict):
        index = control.number(index)
    if type(index) not in SYMS or index.kind == "float":
        return items[index]
    if isinstance(items, np.ndarray):
        return items[index.__index__()]
    place = here()
    if listed:
        keys: list[Any] = list(range(len(items)))
        options = list(items)
        low, high = _bounds(control, index.value)
        if low is None or high is None or low < -len(keys) or high >= len(keys):
            _need(control, index, -len(keys), len(keys) - 1, IndexError, items)
        if low is None or low < 0:
            index = compute("mod", lambda a, b: a % b if b else 0, (index, len(keys)))
    elif type(items) is dict and items and all(type(k) in (int, bool) for k in items):
        keys, options = list(items), list(items.values())
        _need_key(control, index, items)
    else:
        return items[index]
    if len(keys) > _MOST:
        raise ExportError(
            f"export: data chooses among {len(keys)} things of a {type(items).__name__}, at "
            f"{place}; stack what they hold into a tensor and take an element of it"
        )
    return picked(control, index, keys, options, place)


def _need(control: Control, index: Sym, low: int, high: int, error: type, items: Any) -> None:
    """The program checks that an index lies within bounds."""
    control.rec.may_fail(error("list index out of range"))
    for v, active in zip(index.vals, control.rec.active):
        if active and not low <= v <= high:
            items[v]  # raises what the model raises
    number: Any = index
    control.assert_(compute_both(number >= low, number <= high), lambda: "")


def _need_key(control: Control, index: Sym, items: dict[Any, Any]) -> None:
    control.rec.may_fail(KeyError("a key"))
    for v, active in zip(index.vals, control.rec.active):
        if active:
            items[v]
    if index.kind == "bool" and True in items and False in items:
        return
    control.assert_(control.contains(index, list(items)), lambda: "")


def picked(control: Control, sym: Any, keys: list[Any], options: list[Any], place: Any) -> Any:
    """One of the options: a tensor or a number of the program, or a Choice."""
    if all(o is options[0] for o in options):
        return options[0]
    if all(map(_value, options)):
        return _chosen(control, sym, keys, [_bound(_itself, o) for o in options], place)
    if all(isinstance(o, _PLAIN) for o in options) and len(set(map(repr, options))) == 1:
        return options[0]
    return Choice((control, sym, place), keys, options)


def _itself(x: Any) -> Any:
    return x


def _value(x: Any) -> bool:
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        return all(map(_value, x))
    return isinstance(x, Tensor) or _is_number(x)


def _chosen(
    control: Control, sym: Any, keys: list[Any], made: list[Callable[[], Any]], place: Any
) -> Any:
    """``if sym == keys[0]: ... elif sym == keys[1]: ...``, where the last needs no question."""

    def of(k: int) -> Any:
        if k == len(keys) - 1:
            return made[k]()
        asked = sym if keys[k] is True and sym.kind == "bool" else sym == keys[k]
        c = control.condition(asked)
        if type(c) not in SYMS:
            return made[k]() if c else of(k + 1)
        name = ("the result of the choice",)
        return control._branch(c, lambda: (made[k](),), lambda: (of(k + 1),), name, place.line)[0]

    return of(0)


# ---- bounds of numbers ----


def _bounds(control: Control, value: Any, depth: int = 8) -> tuple[Any, Any]:
    """The least and the greatest value of a whole number, as far as its calls tell."""
    if type(value) in (int, bool):
        return int(value), int(value)
    node: Node | None = control.rec.made_by(value) if isinstance(value, Value) else None
    if isinstance(value, Value) and value.kind == "bool":
        return 0, 1
    if node is None or not depth:
        return None, None
    args = node.args
    if node.op in ("py.int", "item", "alias"):
        return _bounds(control, args[0], depth - 1)
    if node.op in ("argmax", "argmin", "Tensor.argmax", "Tensor.argmin"):
        x, dim = args[0], node.kwargs.get("dim", args[1] if len(args) > 1 else None)
        sizes = x.sizes if type(dim) is not int else x.sizes[dim : dim + 1 or None]
        count = 1
        for n in sizes:
            if n is None:
                return 0, None
            count *= n
        return 0, count - 1
    if node.op in ("getitem", "select", "Tensor.select", "squeeze", "max", "reshape", "flatten"):
        return _bounds(control, args[0], depth - 1) if node.op != "max" else (None, None)
    if node.op == "py.mod" and type(args[1]) is int and args[1] > 0:
        return 0, args[1] - 1
    if node.op in ("py.add", "py.sub"):
        (a, b), (c, d) = (_bounds(control, x, depth - 1) for x in args)
        if node.op == "py.sub":
            c, d = (None if d is None else -d), (None if c is None else -c)
        return (None if None in (a, c) else a + c), (None if None in (b, d) else b + d)
    if node.op in ("py.min", "py.max"):
        (a, b), (c, d) = (_bounds(control, x, depth - 1) for x in args)
        lows = [x for x in (a, c) if x is not None]
        highs = [x for x in (b, d) if x is not None]
        if node.op == "py.min":
            return (min(lows) if len(lows) == 2 else None), min(highs, default=None)
        return max(lows, default=None), (max(highs) if len(highs) == 2 else None)
    return None, None


def callable_of(x: Any) -> Any:
    """The Python function behind an object that is called; None where there is none."""
    found = next((vars(c)["__call__"] for c in type(x).__mro__ if "__call__" in vars(c)), None)
    return found if isinstance(found, types.FunctionType) else None
