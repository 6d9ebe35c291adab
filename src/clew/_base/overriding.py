"""The implementation of `__torch_function__`; clew.overrides is its public part."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, ClassVar, TypeVar

from clew import _C
from clew._base.makers import MAKERS, hidden
from clew._base.tasks import of_tasks
from clew._C import Tensor

_disabled_torch_function_impl = vars(_C)["_disabled_torch_function_impl"]


F = TypeVar("F", bound=Callable[..., Any])


class _State(threading.local):
    disabled = False

    def __init__(self) -> None:
        self.modes: list[TorchFunctionMode] = []


_state = of_tasks(_State())


def modes_are_on() -> bool:
    """Whether a mode is shown each operation of this thread."""
    return bool(_state.modes)


class DisableTorchFunctionSubclass:
    """Within it no ``__torch_function__`` is called.

    >>> with clew.DisableTorchFunctionSubclass():
    ...     clew.ones(1) + 1
    tensor([2.])
    """

    __module__ = "clew.overrides"

    def __enter__(self) -> None:
        self._before = _state.disabled
        _state.disabled = True

    def __exit__(self, *args: Any) -> None:
        _state.disabled = self._before


DisableTorchFunction = DisableTorchFunctionSubclass


def _own(kind: type) -> Any:
    """The class's own __torch_function__; None when there is none that decides anything."""
    found = getattr(kind, "__torch_function__", None)
    plain = kind is Tensor or getattr(found, "__func__", found) is _disabled_torch_function_impl
    return None if plain else found


def _relevant(args: Iterable[Any]) -> list[Any]:
    """Arguments whose class has a say, one of each class, subclasses before their bases."""
    found: list[Any] = []
    for arg in args:
        kind = type(arg)
        if isinstance(arg, (tuple, list)) and not hasattr(kind, "__torch_function__"):
            nested = _relevant(arg)
        else:
            nested = [] if kind is Tensor or _own(kind) is None else [arg]
        for one in nested:
            if any(type(one) is type(other) for other in found):
                continue
            at = next((i for i, o in enumerate(found) if isinstance(one, type(o))), len(found))
            found.insert(at, one)
    return found


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's class has a say.

    Args:
        relevant_args: the arguments.

    >>> clew.overrides.has_torch_function((clew.ones(1), 2))
    False
    """
    return not _state.disabled and bool(_relevant(relevant_args))


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor or a class that takes calls over.

    Args:
        inp: anything.

    >>> clew.overrides.is_tensor_like(clew.ones(1)), clew.overrides.is_tensor_like(1)
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Lets the arguments' classes answer a call, the first that does not say NotImplemented.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments whose classes are asked.
        args: its arguments.
        kwargs: its named arguments.

    Returns:
        what the first `__torch_function__` gave that is not NotImplemented.

    Raises:
        TypeError: if all of them give NotImplemented.

    Example:
        >>> class Logged:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return f"{func.__name__} of {len(args)}"
        >>> x = Logged()
        >>> clew.overrides.handle_torch_function(clew.add, (x,), x, 1)
        'add of 2'
    """
    relevant = _relevant(relevant_args)
    types = tuple(map(type, relevant))
    for one in relevant:
        answer = type(one).__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    module = getattr(public_api, "__module__", "")
    name = f"{module}.{public_api.__name__}" if module else public_api.__name__
    raise TypeError(
        f"no implementation found for '{name}': every __torch_function__ said NotImplemented; "
        f"asked {[t.__name__ for t in types]}"
    )


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """A decorator that lets classes take over calls of a function written in Python.

    Args:
        dispatcher: takes the function's arguments and returns those whose classes are asked.

    >>> @clew.overrides.wrap_torch_function(lambda a: (a,))
    ... def twice(a):
    ...     return a + a
    >>> twice(clew.ones(1))
    tensor([2.])
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            asked = dispatcher(*args, **kwargs)
            if has_torch_function(asked):
                return handle_torch_function(wrapped, asked, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def _takes_over(kind: type, name: str) -> bool:
    """Whether a class answers a function as a whole. Ragged and sparse tensors mostly have rules
    for the operations that functions are made of.
    """
    return not hasattr(kind, "_rules") or name in getattr(kind, "_whole", ())


def asks_classes(
    function: F, spread: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
) -> F:
    """Lets modes and classes take over calls of a function written in Python, as they do an
    operation's.

    Args:
        function: what to decorate.
        spread: gives the arguments as modes and classes are to get them.
    """

    def ask_spread(asking: Any, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        assert spread is not None
        return _asked(asking, function, spread(args), kwargs)

    asking: Any = _C.Asking(function, _asked if spread is None else ask_spread)
    return asking


def _asked(
    asking: Callable[..., Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A call that a mode or a class may take over."""
    if _entered and _shows_calls(asking.__name__):
        return _ask_mode(asking, args, kwargs)
    if not _state.disabled:
        asked = (*args, *kwargs.values())
        if any(_takes_over(type(one), function.__name__) for one in _relevant(asked)):
            return handle_torch_function(asking, asked, *args, **kwargs)
    return function(*args, **kwargs)


def _dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the core asks of a call: the answer, or NotImplemented when nobody has a say."""
    if _state.disabled:
        return NotImplemented
    if _state.modes:
        return _ask_mode(func, args, kwargs)
    asked = (*args, *kwargs.values())
    if not _relevant(asked):
        return NotImplemented
    return handle_torch_function(func, asked, *args, **kwargs)


def _converted(value: Any, cls: type) -> Any:
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else value.as_subclass(cls)
    if isinstance(value, (tuple, list)) and not isinstance(value, _C.Size):
        parts = [_converted(v, cls) for v in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def _default(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the function and gives tensors among its results the class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return _converted(func(*args, **(kwargs or {})), cls)


# Operators arrive as the methods that PyTorch has for them, the rest as themselves.
_OPERATORS = {
    "__abs__": "abs",
    "__add__": "add",
    "__ge__": "ge",
    "__gt__": "gt",
    "__iadd__": "add_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__imul__": "mul_",
    "__ipow__": "pow_",
    "__isub__": "sub_",
    "__itruediv__": "div_",
    "__le__": "le",
    "__lt__": "lt",
    "__matmul__": "matmul",
    "__mod__": "remainder",
    "__mul__": "mul",
    "__ne__": "ne",
    "__neg__": "neg",
    "__pos__": "positive",
    "__pow__": "pow",
    "__radd__": "add",
    "__rand__": "bitwise_and",
    "__rmul__": "mul",
    "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
    "__sub__": "sub",
    "__truediv__": "div",
}
_PLAIN = {
    *("__eq__", "__floordiv__", "__rfloordiv__", "__rsub__", "__rtruediv__", "__rpow__"),
    *("__rmod__", "__rmatmul__", "__invert__", "__lshift__", "__rshift__", "__rlshift__"),
    *("__rrshift__", "__ilshift__", "__irshift__", "__and__", "__or__", "__xor__"),
    *("__iand__", "__ior__", "__ixor__"),
    *("__getitem__", "__setitem__", "__len__", "__bool__", "__float__", "__int__", "__index__"),
    *("__complex__", "__contains__", "__reversed__", "__repr__"),
}
_NOT_CALLS = {"as_subclass", "register_hook", "register_post_accumulate_grad_hook"}
_PROPERTIES = ("T", "mT", "H", "mH", "real", "imag", "data")


# The methods without a second operand; where another one returns NotImplemented, Python asks the
# second operand's class.
_UNARY = {
    *("__abs__", "__neg__", "__pos__", "__invert__", "__len__", "__bool__", "__float__", "__int__"),
    *("__index__", "__complex__", "__contains__", "__reversed__", "__repr__"),
    *("__getitem__", "__setitem__"),
}
_BINARY = (_OPERATORS.keys() | _PLAIN) - _UNARY


def _taken_over(name: str, target: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = getattr(Tensor, name)
        if _state.disabled:
            return own(self, *args, **kwargs)
        if _state.modes:
            return _ask_mode(getattr(Tensor, target), (self, *args), kwargs)
        asked = (self, *args, *kwargs.values())
        if not _relevant(asked):
            return own(self, *args, **kwargs)
        return handle_torch_function(getattr(Tensor, target), asked, self, *args, **kwargs)

    def operator(self: Any, other: Any) -> Any:
        known = isinstance(other, (Tensor, int, float, complex))
        if known or _state.disabled or _own(type(self)) is None or _own(type(other)) is not None:
            return method(self, other)
        # Something else: the answer may be NotImplemented.
        kind = type(self)
        return kind.__torch_function__(getattr(Tensor, name), (kind,), (self, other), {})

    taken = operator if name in _BINARY else method
    taken.__name__ = taken.__qualname__ = name
    return taken


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        own = vars(Tensor)[name]
        if _state.disabled or _own(type(self)) is None:
            return own.__get__(self)
        return handle_torch_function(own.__get__, (self,), self)

    def set_(self: Any, value: Any) -> None:
        vars(Tensor)[name].__set__(self, value)

    return property(get, set_)


def _iter(self: Any) -> Any:
    return iter(self.unbind(0)) if self.dim() else Tensor.__iter__(self)


def _by_dispatch(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of a class that has `__torch_dispatch__` alone."""
    return cls._dispatch_lowered(func, types, args, kwargs or {})


def _take_dispatch(cls: Any) -> None:
    """Has a class with `__torch_dispatch__` asked; its own __torch_function__ goes before."""
    own = getattr(cls.__torch_function__, "__func__", cls.__torch_function__)
    if own is _disabled_torch_function_impl or own is vars(Tensor)["__torch_function__"].__func__:
        cls.__torch_function__ = classmethod(_by_dispatch)


def _prepare(cls: type) -> None:
    """Makes a new subclass's methods ask its __torch_function__."""
    if _own(cls) is None or any(_own(b) for b in cls.__mro__[1:] if issubclass(b, Tensor)):
        return
    public = [
        n
        for n, v in vars(Tensor).items()
        if not n.startswith("_") and n not in _NOT_CALLS and not isinstance(v, property)
        if callable(v) or type(v).__name__ == "_LazyMethod"
    ]
    taken: dict[str, Any] = {n: _taken_over(n, n) for n in public}
    taken |= {n: _taken_over(n, t) for n, t in _OPERATORS.items()}
    taken |= {n: _taken_over(n, n) for n in _PLAIN if hasattr(Tensor, n)}
    taken |= {n: _property(n) for n in _PROPERTIES}
    taken["__iter__"] = _iter
    inherited = cls.__mro__[1 : cls.__mro__.index(Tensor)]
    for name, value in taken.items():
        if name not in vars(cls) and not any(name in vars(b) for b in inherited):
            setattr(cls, name, value)
    if vars(cls).get("__hash__") is None:  # a class with __eq__ loses the one it inherits
        setattr(cls, "__hash__", Tensor.__hash__)  # noqa: B010
    vars(_C)["_start_overriding"](_disabled_torch_function_impl)


# ---- modes ----

_entered = 0  # modes entered in all threads
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
        global _entered, _makers_watched
        _state.modes.append(self)
        _entered += 1
        if _entered == 1:
            _switch_modes(True)
        if self._sees_makers:
            _makers_watched += 1
            if _makers_watched == 1:
                _hide_makers()
        return self

    def __exit__(self, *exc: Any) -> None:
        global _entered, _makers_watched
        _state.modes.remove(self)
        if self._sees_makers:
            _makers_watched -= 1
            if _makers_watched == 0:
                _show_makers()
        _entered -= 1
        if _entered == 0:
            _switch_modes(False)


class PartsMode(TorchFunctionMode):
    """A mode of clew's own, which records operations as the core runs them."""

    _sees_parts = True
    _sees_makers = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("PartsMode: define __torch_function__")


BaseTorchFunctionMode = TorchFunctionMode


def _ask_mode(func: Any, args: Any, kwargs: Any) -> Any:
    """The innermost mode's answer; it is off meanwhile."""
    mode = _state.modes.pop()
    try:
        kinds = tuple({type(a) for a in _relevant((*args, *kwargs.values()))})
        return mode.__torch_function__(func, kinds, args, kwargs)
    finally:
        _state.modes.append(mode)


def _shows_calls(name: str = "") -> bool:
    """Whether the innermost mode of this thread is shown a function written in Python."""
    if not _state.modes or _state.disabled:
        return False
    return not _state.modes[-1]._sees_parts or name in _state.modes[-1]._sees_whole


def _shows_makers() -> bool:
    """Whether it is shown functions that make tensors."""
    return bool(_state.modes) and not _state.disabled and _state.modes[-1]._sees_makers


def aside(function: Callable[..., Any], *args: Any) -> Any:
    """Calls something that PyTorch has no call for: only modes of clew's own see what it does.

    Args:
        function: what to call.
        args: its arguments.
    """
    if not _entered:
        return function(*args)
    before = _state.modes
    _state.modes = [mode for mode in before if not mode._sees_makers]
    try:
        return function(*args)
    finally:
        _state.modes = before


def sees_operations() -> bool:
    """Whether a mode is to be asked about operations that a program adds. One of
    `__torch_dispatch__` is asked in another way.
    """
    return bool(_state.modes) and not _state.disabled and not hasattr(_state.modes[-1], "mode")


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


# ---- functions that make tensors ----

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


def _get_current_function_mode() -> Any:
    return _state.modes[-1] if _state.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(_state.modes)
