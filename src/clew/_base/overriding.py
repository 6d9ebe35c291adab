"""The implementation of `__torch_function__`; clew.overrides is its public part."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from clew import _C
from clew._base.tasks import of_tasks
from clew._C import Tensor

if TYPE_CHECKING:
    from clew._base.function_modes import TorchFunctionMode

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


def _answer(
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What the first class that answers the function gives; NotImplemented where none does."""
    relevant = _relevant(relevant_args)
    types = tuple(map(type, relevant))
    for one in relevant:
        answer = type(one).__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    return NotImplemented


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
    answer = _answer(public_api, relevant_args, args, kwargs)
    if answer is not NotImplemented:
        return answer
    types = tuple(map(type, _relevant(relevant_args)))
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
        if name in ("__eq__", "__ne__"):  # where nobody answers, objects are equal to themselves
            return _answer(getattr(Tensor, target), asked, (self, *args), kwargs)
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


def entered(more: int) -> int:
    """Counts modes that are entered, or left.

    Args:
        more: how many.

    Returns: how many are entered now, in all threads.
    """
    global _entered
    _entered += more
    return _entered


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


def _get_current_function_mode() -> Any:
    return _state.modes[-1] if _state.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(_state.modes)
