"""What the package's top level and Tensor get beyond the ops: functions and methods in Python."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from clew import _C
from clew._namespace import _LAZY_METHODS


def fill(namespace: dict[str, Any]) -> None:
    """Puts the Python-written functions into the package's namespace and the methods on Tensor."""
    from clew._tensor import methods as _tensor

    _tensor.install()
    from clew._ops import functions as _functions

    for name, method in _functions.METHODS.items():
        setattr(_C.Tensor, name, method)
    for operation in (_C.functions["add"], vars(_C.Tensor)["add"]):
        type(operation).__signature__ = _OpSignature()
    for name, path in _LAZY_METHODS.items():
        setattr(_C.Tensor, name, _LazyMethod(name, path))
    for module in sources():
        for name in module.__all__:
            namespace[name] = getattr(module, name)


def sources() -> tuple[ModuleType, ...]:
    """Modules whose public functions appear at the top level, in order."""
    from clew._ops import creation as _creation
    from clew._ops import distances as _distances
    from clew._ops import einsum as _einsum
    from clew._ops import functions as _functions
    from clew._ops import shaping as _shaping

    return _creation, _functions, _distances, _einsum, _shaping


class _OpSignature:
    """What `inspect.signature` asks of a native operation; the types themselves have none."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            raise AttributeError("__signature__")
        from clew._ops import signatures as _signatures

        return _signatures.signature_of(instance)


class _LazyMethod:
    """Stands for a method until it is first looked up; then the function (or class method) of that
    name in the module takes its place.
    """

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = getattr(importlib.import_module(self.module), self.name)
        setattr(_C.Tensor, self.name, function)
        return function.__get__(instance, owner)
