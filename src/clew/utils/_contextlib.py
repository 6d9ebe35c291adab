"""Context managers that are decorators, too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager:
    """Base class: an instance may decorate a function, which then runs in a block of its own."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(orig_func):

            @functools.wraps(orig_func)
            def generate(*args: Any, **kwargs: Any) -> Any:
                made = orig_func(*args, **kwargs)
                sent: Any = None
                while True:  # the block is left while the caller has control
                    with self.clone():
                        try:
                            value = made.send(sent)
                        except StopIteration as end:
                            return end.value
                    sent = yield value

            return generate

        @functools.wraps(orig_func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return call

    def clone(self) -> Any:
        """One like this, for a call."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Such a class without parameters: the class itself is a decorator, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
