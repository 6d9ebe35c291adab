"""TorchScript's names for programs that use them: everything stays a Python program.

Decorators and `script` return what they are given; it runs as it is, with the same results. Files
of compiled programs are neither written nor read.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

from clew.nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class TracerWarning(Warning):
    """What a tracer would warn of; nothing is traced here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: there are no such warnings."""


class ScriptFunction:
    """A compiled function: there are none."""


class CompilationUnit:
    """Compiled functions: there are none."""


def _same(fn: Any) -> Any:
    return fn


_overload = _overload_method = _script_if_tracing = _same


class Attribute(NamedTuple):
    """A value and the type that a compiler would take it for."""

    value: Any
    type: Any


class ScriptModule(Module):
    """A Module; its methods run as Python."""


class RecursiveScriptModule(ScriptModule):
    """A compiled module: none is made here."""


class TopLevelTracedModule(ScriptModule):
    """A traced module: none is made here."""


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """The function, class or module itself.

    Args:
        obj: what would be compiled.
        optimize: accepted; there is no compiler.
        example_inputs: likewise.

    >>> @clew.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(clew.ones(1))
    tensor([2.])
    """
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or module itself, called once with the examples, so that mistakes show.

    What depends on data in Python goes on depending on it.

    Args:
        func: what would be traced.
        example_inputs: a tensor or a tuple of arguments.
        args: accepted; there is no tracer.
        kwargs: likewise, but example_kwarg_inputs is a dict of arguments.
    """
    import clew

    named = kwargs.get("example_kwarg_inputs") or {}
    if example_inputs is not None or named:
        given = example_inputs if builtins.isinstance(example_inputs, (tuple, list)) else None
        if given is None:
            given = () if example_inputs is None else (example_inputs,)
        with clew.no_grad():
            func(*given, **named)
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """The module itself, each method called once with its examples.

    Args:
        mod: the module.
        inputs: the name of a method and its arguments.
        args: accepted; there is no tracer.
        kwargs: likewise.
    """
    for name, given in inputs.items():
        trace(mod if name == "forward" else getattr(mod, name), given)
    return mod


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that returns the function itself."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """The function itself."""
    return fn


def export(fn: Any) -> Any:
    """The function itself."""
    return fn


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def script_if_tracing(fn: Any) -> Any:
    """The function itself."""
    return fn


def interface(obj: Any) -> Any:
    """The class itself."""
    return obj


def is_scripting() -> bool:
    """False: nothing is compiled."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether obj is of a type, or of the class that a generic type such as list[int] is of."""
    import typing

    kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    plain: Any = tuple(typing.get_origin(k) or k for k in kinds)
    return builtins.isinstance(obj, plain)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself, which must be in evaluation mode."""
    if mod.training:
        raise RuntimeError("freeze: the module must be in evaluation mode; call .eval() first")
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself."""
    return mod


class _Done:
    """The result of a call that has happened."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """The result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """True."""
        return True


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls the function at once; the result is what `wait` returns."""
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of a fork."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises: compiled programs are not written; save the state dict."""
    raise NotImplementedError("jit.save: clew writes no compiled programs; save m.state_dict()")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Raises: compiled programs are not read."""
    raise NotImplementedError("jit.load: clew reads no compiled programs; load a state dict")


def is_script_module(obj: Any) -> bool:
    """False: nothing is compiled."""
    return False


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing: there is nothing to fuse."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: there are no compiled graphs."""


def onednn_fusion_enabled() -> bool:
    """False: there are no compiled graphs."""
    return False


_state = None


def _get_trace_graph(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: nothing is traced to graphs of scripts."""
    raise NotImplementedError("jit._get_trace_graph: use fx.symbolic_trace to record a program")
