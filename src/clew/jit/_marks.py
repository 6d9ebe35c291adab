"""Marks of TorchScript's that programs put on functions and classes, which here run as Python."""

from __future__ import annotations

import builtins
from typing import Any

__all__ = [
    "annotate",
    "export",
    "ignore",
    "interface",
    "isinstance",
    "script_if_tracing",
    "script_method",
    "unused",
]


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function itself: nothing is compiled, so nothing has to be left out.

    Args:
        drop: the function; with another value this is a decorator.
        kwargs: not used.

    >>> @clew.jit.ignore
    ... def twice(x):
    ...     return 2 * x
    >>> twice(clew.ones(1))
    tensor([2.])
    """
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """Returns the function itself: nothing is compiled, so nothing has to be left out.

    >>> @clew.jit.unused
    ... def twice(x):
    ...     return 2 * x
    >>> twice(clew.ones(1))
    tensor([2.])
    """
    return fn


def export(fn: Any) -> Any:
    """Marks a method that stands in the file of a scripted module, too, if it was called.

    Args:
        fn: the method, which is returned.

    >>> class Net(clew.nn.Linear):
    ...     @clew.jit.export
    ...     def twice(self, x):
    ...         return 2 * self(x)
    >>> net = clew.jit.script(Net(2, 1))
    >>> _ = net(clew.ones(1, 2)), net.twice(clew.ones(1, 2))
    >>> net.save("net.pt")
    >>> clew.jit.load("net.pt").twice(clew.ones(3, 2)).shape
    clew.Size([3, 1])
    """
    try:
        fn._clew_exported = True
    except AttributeError:  # of a builtin
        pass
    return fn


def script_method(fn: Any) -> Any:
    """Returns the method itself; it runs as Python.

    >>> class Net(clew.jit.ScriptModule):
    ...     @clew.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Net()(clew.ones(1))
    tensor([2.])
    """
    return fn


def script_if_tracing(fn: Any) -> Any:
    """Returns the function itself: `trace` keeps branches and loops without it.

    >>> @clew.jit.script_if_tracing
    ... def twice(x):
    ...     return 2 * x
    >>> twice(clew.ones(1))
    tensor([2.])
    """
    return fn


def interface(obj: Any) -> Any:
    """Returns the class itself; nothing checks it.

    >>> @clew.jit.interface
    ... class Scales:
    ...     def forward(self, x): ...
    >>> Scales.__name__
    'Scales'
    """
    return obj


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value; the type is for readers and type checkers.

    Args:
        the_type: its type.
        the_value: anything.

    >>> clew.jit.annotate(list[int], [])
    []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type; of one such as list[int] only the class is compared.

    Args:
        obj: anything.
        target_type: a class, a generic type, or a tuple of them.

    >>> clew.jit.isinstance([1, 2], list[int]), clew.jit.isinstance((1, 2), list[int])
    (True, False)
    """
    import typing

    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    plain: Any = tuple(typing.get_origin(k) or k for k in kinds)
    return builtins.isinstance(obj, plain)


for mark in (annotate, export, ignore, interface, isinstance, script_if_tracing):
    mark.__module__ = "clew.jit"
for mark in (script_method, unused):
    mark.__module__ = "clew.jit"
