"""Modes and classes that see operations below the public functions.

A `TorchDispatchMode` gets the operations that the calls in its context are made of, each as
`clew.ops.aten` names it; a subclass of Tensor with `__torch_dispatch__` gets those that its
instances meet. Where they differ from PyTorch's: a gradient's own operations do not arrive, since
backward runs natively; a function such as `zeros` arrives when it is looked up while the mode is on
(`torch.zeros`, not a name that was imported before); and what a function runs is recorded, so that
results need no autograd above.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from clew import Tensor
from clew._base.function_modes import PartsMode
from clew._base.overriding import _relevant, _state

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


def _send(handler: Any, types: tuple[Any, ...]) -> Any:
    """What gives the operations of a lowered call to `__torch_dispatch__`."""
    from clew.ops import _overload_of

    def send(name: str, overload: str, *args: Any, _function: Any = None, **kwargs: Any) -> Any:
        operation = _overload_of(name, overload, _function)
        return handler(operation, types, args, kwargs)

    return send


@classmethod  # type: ignore[misc]
def _dispatch_lowered(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """What a call of a class that has `__torch_dispatch__` alone gives: a method of Tensor."""
    from clew._torch._lowering import lower

    return lower(func, args, kwargs, _send(cls.__torch_dispatch__, tuple(types)))


class _Bridge(PartsMode):
    """Gives a dispatch mode the operations of the calls that a function mode sees."""

    _sees_makers = True
    _sees_whole = frozenset(
        "asarray bartlett_window blackman_window empty_permuted fftfreq hamming_window hann_window "
        "kaiser_window normal polar rfftfreq".split()
    )

    def __init__(self, mode: TorchDispatchMode) -> None:
        self.mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from clew._torch._lowering import lower

        kinds = tuple(types)
        return lower(func, args, kwargs or {}, _send(self.mode.__torch_dispatch__, kinds))


class TorchDispatchMode:
    """Within it `__torch_dispatch__` of the mode gets every operation; inside of that the mode is
    off. Modes entered later are asked first.

    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = Tensor([[1.0, 2.0]])
    >>> with Names():
    ...     y = x @ x.t()
    aten.t.default
    aten.mm.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchDispatchMode: define __torch_dispatch__")

    def __enter__(self) -> Any:
        bridges = self.__dict__.setdefault("_bridges", [])
        bridges.append(_Bridge(self).__enter__())
        return self

    def __exit__(self, *exc: Any) -> None:
        self._bridges.pop().__exit__(*exc)  # type: ignore[attr-defined]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is of a class that is taken apart by `__tensor_flatten__`.

    Args:
        t: anything.
    """
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Any, outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A tensor of such a class with other parts.

    Args:
        t: the tensor.
        callback: gives for (name, part) the new part.
        outer_size: the new size; that of `t` when not given.
        outer_stride: the new strides; those of `t` when not given.
    """
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.shape if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(parts, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What an operation of such a class gives: for one in place its first argument, else `out`.

    Args:
        func: the operation.
        args: its arguments.
        kwargs: its named arguments.
        out: the result.
    """
    name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
    if name.endswith("_") and not name.endswith("__") and args:
        return args[0]
    return out


def _get_current_dispatch_mode() -> Any:
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return [mode.mode for mode in _state.modes if isinstance(mode, _Bridge)]


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Within it no mode is asked."""
    before = list(_state.modes)
    _state.modes[:] = [m for m in before if not isinstance(m, _Bridge)]
    try:
        yield [m.mode for m in before if isinstance(m, _Bridge)]
    finally:
        _state.modes[:] = before


def ask(operation: Any, args: Any, kwargs: Any) -> Any:
    """The answer to a call of an operation of the mode or class that has a say; NotImplemented when
    none has.

    Args:
        operation: an overload.
        args: its arguments.
        kwargs: its named arguments.
    """
    if _state.modes and isinstance(_state.modes[-1], _Bridge):
        bridge: Any = _state.modes.pop()
        try:
            kinds = tuple({type(a) for a in _relevant((*args, *kwargs.values()))})
            return bridge.mode.__torch_dispatch__(operation, kinds, args, kwargs)
        finally:
            _state.modes.append(bridge)
    for one in _relevant((*args, *kwargs.values())):
        handler = getattr(type(one), "__torch_dispatch__", None)
        if handler is not None and isinstance(one, Tensor):
            answer = handler(operation, (type(one),), args, kwargs)
            if answer is not NotImplemented:
                return answer
    return NotImplemented
