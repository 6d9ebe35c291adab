"""Operations by name, and operations that take functions."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from clew._registered import _Operation as OpOverload
from clew.ops import _Added as _OpNamespace  # noqa: F401
from clew.ops import _Operation as OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase"]


class OperatorBase(abc.ABC):  # noqa: B024
    """What all operations are, by `isinstance`."""


OperatorBase.register(OpOverload)
OperatorBase.register(OpOverloadPacket)


class HigherOrderOperator(OperatorBase):
    """An operation that takes functions; a kernel registered for the CPU does it.

    Args:
        name: its name.
        cacheable: accepted.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self._kernels: dict[str, Callable[..., Any]] = {}

    def name(self) -> str:
        """Its name."""
        return self._name

    def py_impl(self, k: Any) -> Callable[[Any], Any]:
        """A decorator: the function is the kernel for a key."""

        def register(fn: Any) -> Any:
            self._kernels[str(k)] = fn
            return fn

        return register

    def fallthrough(self, key: Any) -> None:
        """Says that there is no kernel for a key."""

    py_functorch_impl = functionalize_impl = lambda self, fn: fn
    py_autograd_impl = py_functionalize_impl = lambda self, fn: fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for key in ("CompositeExplicitAutograd", "CPU", "CompositeImplicitAutograd"):
            for name, kernel in self._kernels.items():
                if name.endswith(key):
                    return kernel(*args, **kwargs)
        raise NotImplementedError(f"{self._name}: no kernel is registered for the CPU")
