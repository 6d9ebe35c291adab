"""Module.summary, a method whose name parts of a module may also have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .module import Module


class Yielding:
    """A method that gives way to a parameter, buffer or child of its name: PyTorch has no such
    method, and its programs have children called "summary".
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, module: Module | None, owner: Any = None) -> Any:
        if module is None:
            return self.function
        name = self.function.__name__
        for table in ("_parameters", "_buffers", "_modules"):
            own = module.__dict__.get(table)
            if own is not None and name in own:
                return own[name]
        return self.function.__get__(module, owner)


def is_taken(module: Module, name: str) -> bool:
    """Whether the module has an attribute that a new part of the name would hide."""
    if not hasattr(module, name):
        return False
    return getattr(getattr(module, name), "__func__", None) is not summary


def summary(
    module: Module, *input: Any, depth: int | None = None, fold: bool = True, **kwargs: Any
) -> Any:
    """Runs the module once and tells of each layer in it: output shapes, parameters, FLOPs, and
    the memory kept for backward.

    The mode (training or not) stays as it is, operations are recorded; random state and buffers
    are afterwards what they were. A module of which a part is frozen runs a second time, since
    what wants no gradient is not recorded. Inputs on the meta device cost no computation if the
    parameters lie there, too.

    Args:
        input: the arguments of the call.
        depth: levels below this module that are shown; None shows all.
        fold: whether consecutive numbered modules of equal structure share a row, with their
            sums.
        kwargs: the keyword arguments of the call; those of the module that are called `depth` or
            `fold` can only be given by position.

    Returns: an object that prints as a table; `summary["layer.path"]` is a row, with `.shapes`,
    `.parameters`, `.flops` and `.held` (bytes kept for backward).

    Raises:
        ValueError: `depth` is negative.

    >>> from clew import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> table = model.summary(clew.ones(2, 4))
    >>> table.parameters, table["0"].shapes, table["0"].flops
    (49, ((2, 8),), 128)
    """
    from clew._insight.graph.model import summarize

    return summarize(module, input, kwargs, depth, fold)
