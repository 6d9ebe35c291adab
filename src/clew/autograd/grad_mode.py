"""Switching recording on and off: contexts that are decorators too."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from clew import _C
from clew._base.arguments import need_bools

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Mode(_C.GradMode):
    """A context manager that, called with a function, wraps it.

    Entering and leaving are native: an exception of a signal handler, such as Ctrl-C, comes before
    or after, never between the change of a mode and the note of what it was.
    """

    if TYPE_CHECKING:

        def __enter__(self) -> None: ...
        def __exit__(self, *exc: object) -> None: ...
    else:
        __exit__ = _C.GradMode._leave

    def clone(self) -> _Mode:
        """Another one with the same mode."""
        return type(self)()

    def __call__(self, function: F) -> F:
        import inspect

        if inspect.isclass(function):
            warnings.warn(
                f"{type(self).__name__}: of a class only the call is decorated, not its methods, "
                "and the result is a function; decorate __init__ or the methods",
                FutureWarning,
                stacklevel=2,
            )
            function = functools.partial(function)  # type: ignore[assignment]
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    def _wrap_generator(self, function: Any) -> Any:
        # The mode holds while the generator runs, never while its consumer does.
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    item = generator.send(None)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as e:
                        with self.clone():
                            item = generator.throw(e)
                    else:
                        with self.clone():
                            item = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapper


class _Recording(_Mode):
    """A mode without arguments, whose class is a decorator, too."""

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __init__(self) -> None:
        self._before: list[object] = []


class no_grad(_Recording):
    """Operations inside are not recorded; a context manager and a decorator.

    Args:
        function: a function to decorate.

    >>> x = clew.ones(1, requires_grad=True)
    >>> with clew.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    if not TYPE_CHECKING:
        __enter__ = _C.GradMode._enter_off


class enable_grad(_Recording):
    """Operations inside are recorded, also within no_grad; a context manager and a decorator.

    Args:
        function: a function to decorate.

    >>> x = clew.ones(1, requires_grad=True)
    >>> with clew.no_grad(), clew.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    if not TYPE_CHECKING:
        __enter__ = _C.GradMode._enter_on


class set_grad_enabled(_Mode):
    """Sets recording on or off, at once; as a context, until its end.

    Args:
        mode: whether operations are recorded.

    >>> with clew.set_grad_enabled(False):
    ...     clew.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        if mode is not True and mode is not False:
            need_bools("set_grad_enabled", mode=mode)
        self.mode = bool(mode)
        self._before = _C._set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def clone(self) -> set_grad_enabled:
        """Another one with the same mode."""
        return type(self)(self.mode)

    def __call__(self, function: F) -> F:
        _C._set_grad_enabled(
            self._before
        )  # as a decorator it takes effect only inside the function
        return super().__call__(function)


class inference_mode(_Mode):
    """No recording, and results that can never take part in it; a context manager and a decorator.

    Args:
        mode: False records again within such a block; or a function to decorate.

    >>> with clew.inference_mode():
    ...     y = clew.ones(1) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        inference_mode.__init__(self)
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool]] = []

    if not TYPE_CHECKING:
        __enter__ = _C.GradMode._enter_inference

    def clone(self) -> inference_mode:
        """Another one with the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled:
    """Accepted: backward runs in the thread that calls it, whatever the mode.

    Args:
        mode: True or False.

    >>> with clew.autograd.set_multithreading_enabled(False):
    ...     pass
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        """Another one with the same mode."""
        return type(self)(self.mode)
