"""Modes that are shown every call: TorchFunctionMode of clew.overrides, and those of clew's own."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar

from clew import _C
from clew._base import overriding as _overriding
from clew._base.makers import MAKERS, hidden
from clew._base.overriding import (
    _BINARY,
    _NOT_CALLS,
    _OPERATORS,
    _PLAIN,
    _PROPERTIES,
    _ask_mode,
    _disabled_torch_function_impl,
    _own,
    _shows_calls,
    _state,
)
from clew._C import Tensor

_before_modes: dict[str, Any] = {}


class TorchFunctionMode:
    """Within it `__torch_function__` of the mode gets every call of an operation, of a tensor's
    method and of a function that makes a tensor; inside of that the mode is off. Operators arrive
    as the methods that PyTorch has for them: `x + y` is `Tensor.add`. Of attributes only those
    arrive that give tensors, such as `x.T`. A function that makes a tensor arrives when it is
    looked up while the mode is on: `clew.zeros`, not a name that was imported before.

    >>> class Counts(clew.overrides.TorchFunctionMode):
    ...     seen = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.seen += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counts() as mode:
    ...     _ = (clew.ones(2) + 1).sum()
    >>> mode.seen
    3
    """

    __module__ = "clew.overrides"

    # Of functions written in Python, whether the operations that they are made of are shown
    # instead of them, all but these; operators then arrive as they are written.
    _sees_parts: ClassVar[bool] = False
    _sees_whole: ClassVar[frozenset[str]] = frozenset()
    # Whether functions that make tensors are shown.
    _sees_makers: ClassVar[bool] = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchFunctionMode: define __torch_function__")

    def __enter__(self) -> Any:
        global _makers_watched
        _state.modes.append(self)
        if _overriding.entered(1) == 1:
            _switch_modes(True)
        if self._sees_makers:
            _makers_watched += 1
            if _makers_watched == 1:
                _hide_makers()
        return self

    def __exit__(self, *exc: Any) -> None:
        global _makers_watched
        _state.modes.remove(self)
        if self._sees_makers:
            _makers_watched -= 1
            if _makers_watched == 0:
                _show_makers()
        if _overriding.entered(-1) == 0:
            _switch_modes(False)


class PartsMode(TorchFunctionMode):
    """A mode of clew's own, which records operations as the core runs them."""

    _sees_parts = True
    _sees_makers = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("PartsMode: define __torch_function__")


BaseTorchFunctionMode = TorchFunctionMode


def _shows_makers() -> bool:
    """Whether it is shown functions that make tensors."""
    return bool(_state.modes) and not _state.disabled and _state.modes[-1]._sees_makers


class _Again:
    """A method or function that first asks the active modes. It equals the original, so that a
    mode finds it in tables that were made while no mode was active.
    """

    def __init__(self, own: Any, name: str, show: Callable[[], bool]) -> None:
        self.own, self.show = own, show
        functools.update_wrapper(self, own)
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.show():
            return self.own(*args, **kwargs)
        return _ask_mode(self.shown(), args, kwargs)

    def shown(self) -> Any:
        """What a mode gets: the function itself, unless others are to be asked after it."""
        return self if len(_state.modes) > 1 and not _state.modes[-1]._sees_parts else self.own

    def wanted(self) -> Any:
        """What this thread gets that looks it up."""
        return self if self.show() else self.own

    def __eq__(self, other: object) -> bool:
        return bool(self.own == getattr(other, "own", other))

    def __hash__(self) -> int:
        return hash(self.own)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


def _any_mode() -> bool:
    return bool(_state.modes) and not _state.disabled


# Methods that modes of clew's own do not see: what they are made of is not to be recorded.
_ONLY_CALLS = frozenset("__repr__ __format__ __array__ __deepcopy__ __reduce_ex__".split())


class _Asking:
    """Stands in Tensor for a method while modes are on."""

    def __init__(self, name: str, raw: Any) -> None:
        self.name, self.raw = name, raw
        self._again: _Again | None = None

    def again(self) -> _Again:
        """The method, asking."""
        if self._again is None:
            if type(self.raw).__name__ == "_LazyMethod":
                self.raw = getattr(importlib.import_module(self.raw.module), self.raw.name)
                if self.name in _before_modes:
                    _before_modes[self.name] = self.raw
            show = _shows_calls if self.name in _ONLY_CALLS else _any_mode
            self._again = _Again(self.raw.__get__(None, Tensor), self.name, show)
        return self._again

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        again = self._again or self.again()
        if instance is None:
            return again if _any_mode() else again.own
        return MethodType(self.call, instance)

    def call(self, instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the method, asking."""
        again = self._again or self.again()
        if not again.show():
            return again.own(instance, *args, **kwargs)
        target = None if _state.modes[-1]._sees_parts else _OPERATORS.get(self.name)
        if target is None or (self.name in _BINARY and not _known_operand(args[0])):
            return _ask_mode(again.shown(), (instance, *args), kwargs)
        return _ask_mode(_standing[target].again().shown(), (instance, *args), kwargs)


def _known_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex)) or _own(type(value)) is not None


class _AskingProperty:
    """The same for an attribute that gives a tensor."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self._again = _Again(raw.__get__, "__get__", _shows_calls)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.raw if instance is None else self._again(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        self.raw.__set__(instance, value)


_standing: dict[str, _Asking] = {}


def _standing_for(name: str, raw: Any) -> _Asking:
    found = _standing.get(name)
    if found is None or found.raw is not raw:
        found = _standing[name] = _Asking(name, raw)
    return found


def _switch_modes(on: bool) -> None:
    """Lets methods and operators of plain tensors ask the modes, or puts them back."""
    if not on:
        for name, own in _before_modes.items():
            setattr(Tensor, name, own)
        _before_modes.clear()
        vars(_C)["_set_any_mode"](False)
        return
    methods = {
        n: v
        for n, v in vars(Tensor).items()
        if not n.startswith("_") and n not in _NOT_CALLS and not isinstance(v, property)
        if callable(v) or type(v).__name__ == "_LazyMethod"
    }
    special = (n for n in (*_OPERATORS, *_PLAIN, *_ONLY_CALLS) if n in vars(Tensor))
    methods |= {n: vars(Tensor)[n] for n in special}
    for name, raw in methods.items():
        _before_modes[name] = raw
        setattr(Tensor, name, _standing_for(name, raw))
    for name in _PROPERTIES:
        raw = _before_modes[name] = vars(Tensor)[name]
        setattr(Tensor, name, _AskingProperty(raw))
    vars(_C)["_start_overriding"](_disabled_torch_function_impl)
    vars(_C)["_set_any_mode"](True)


_makers_watched = 0  # modes entered that see them


def _hide_makers() -> None:
    """Takes them out of the package, which then gives them as each thread's modes want them."""
    package = sys.modules["clew"].__dict__
    for name in MAKERS:
        again = _Again(package.pop(name), name, _shows_makers)
        hidden[name] = again.wanted
    alias = sys.modules.get("torch")
    if alias is not None and hasattr(type(alias), "_forget"):
        alias._forget(MAKERS)


def _show_makers() -> None:
    package = sys.modules["clew"].__dict__
    for name in MAKERS:
        again: Any = hidden.pop(name)
        package.setdefault(name, again.__self__.own)
