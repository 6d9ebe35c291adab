"""Traced modules that are called with other kinds of arguments than their example's.

PyTorch's traces take any number of dims and any sizes; a program takes those of its example, so
that others need a program of their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from clew import _C


class Source:
    """What a traced module was made from.

    Args:
        func: the function or module.
        trace: takes it and arguments, positional and named, and gives a traced module.
    """

    most = 8  # programs that are kept beside the first

    def __init__(self, func: Any, trace: Callable[..., Any]) -> None:
        self.func: Any = func
        self._trace = trace
        is_module = isinstance(func, _C.ModuleBase)
        inside: list[Any] = list(self.func.modules()) if is_module else []
        self.training = [(module, module.training) for module in inside]
        self.others: list[Any] = []

    def call(self, first: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the program that takes the arguments.

        Args:
            first: the traced module of the example, whose parameters and buffers are used.
            args: the arguments.
            kwargs: those that are named.
        """
        from clew.export._module import OtherArguments

        try:
            return first._inner.forward(*args, **kwargs)
        except OtherArguments as e:
            mismatch = e
        for traced in self.others:
            with contextlib.suppress(OtherArguments):
                return _with_tensors_of(first, traced).forward(*args, **kwargs)
        traced = self._retraced(args, kwargs, mismatch)
        return _with_tensors_of(first, traced).forward(*args, **kwargs)

    def _retraced(self, args: tuple[Any, ...], kwargs: dict[str, Any], mismatch: Exception) -> Any:
        """A module traced anew for other arguments, in the first one's training modes. Raises the
        first one's error if that cannot be traced."""
        from clew.export import ExportError

        now = [(module, module.training) for module, _ in self.training]
        try:
            for module, mode in self.training:
                module.training = mode
            made = self._trace(self.func, args, kwargs)
        except ExportError as e:
            raise mismatch from e
        finally:
            for module, mode in now:
                module.training = mode
        self.others = [made, *self.others[: self.most - 1]]
        return made


def check(func: Any, made: Any, inputs: Any, tolerance: float) -> None:
    """Compares a traced module with what it was made from, on further arguments.

    Args:
        func: the function or module.
        made: the traced module.
        inputs: arguments, each a tuple or the only one.
        tolerance: relative.

    Raises:
        ExportError: they differ.
    """
    from clew.autograd.grad_mode import no_grad
    from clew.export._errors import ExportError
    from clew.export._prove import difference_of

    for args in inputs:
        args = args if isinstance(args, (tuple, list)) else (args,)
        with no_grad():
            a, b = func(*args), made(*args)
        parts = [r if isinstance(r, (tuple, list)) else [r] for r in (a, b)]
        for x, y in zip(*parts):
            found = difference_of(x, y, tolerance)
            if found:
                raise ExportError(f"jit.trace: the program differs on check_inputs: {found}")


def _with_tensors_of(first: Any, traced: Any) -> Any:
    """What runs a program, with the parameters and buffers that the first has now."""
    inner = traced._inner
    for name, module in first.named_modules():
        try:
            other = inner.get_submodule(name)
        except AttributeError:
            continue  # nothing of it is used with these arguments
        for table in ("_parameters", "_buffers"):
            theirs = other.__dict__[table]
            theirs.update({k: v for k, v in module.__dict__[table].items() if k in theirs})
    return inner
