"""TorchScript's names, in their roles: `trace` makes a program that `save` stores.

A traced module runs, trains and is stored without its source (`clew.export`); branches and loops
that data decides stay what they are. What `script` returns runs as Python; its program is made
when it is asked for, on the arguments of its first call. The other decorators return what they are
given.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from clew._scripted import Example, ScriptFunction, source
from clew.jit._marks import (
    annotate,
    export,
    ignore,
    interface,
    isinstance,
    script_if_tracing,
    script_method,
    unused,
)
from clew.jit._modules import (
    RecursiveScriptModule,
    ScriptModule,
    TopLevelTracedModule,
    _guess,
    is_tracing,
    load,
    save,
)

# Pickles name these here.
from clew.jit._modules import _Loaded as _Loaded
from clew.jit._modules import _see as _see
from clew.jit._modules import _TracedFunction as _TracedFunction
from clew.jit._modules import _unpickled as _unpickled
from clew.jit._traced import _Method, trace, trace_module
from clew.nn import Module, Parameter

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
    """What PyTorch's tracer warns of; here such a trace raises."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: there are no such warnings."""


class CompilationUnit:
    """PyTorch's table of compiled functions. clew compiles nothing, so it is empty.

    Example:
        >>> unit = clew.jit.CompilationUnit()
    """


def _same(fn: Any) -> Any:
    return fn


_overload = _overload_method = _script_if_tracing = _same


class Attribute(NamedTuple):
    """A value and the type that a compiler would take it for."""

    value: Any
    type: Any


class _Scripted(RecursiveScriptModule):
    """What `script` makes of a module: the same attributes, and a program once it was called."""

    _own: Any  # the module's class
    _kept: Example
    _calls: dict[str, Example]  # of methods that are exported, too

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the module's own forward()."""
        if not (self._kept._asked or is_tracing()):
            self._kept.see(args, kwargs)
        return super().forward(*args, **kwargs)

    def _program(self) -> Any:
        plain = _plain(self)
        _guess(self._kept, plain)
        made = self._kept.program_of(plain, self.original_name)
        made.__dict__["_original_name"] = self.original_name
        for name, example in self._calls.items():
            if example.args is not None:
                method = example.program_of(_Method(plain, name), name)
                made._add_method(name, method)
                made._exported._methods[name] = method._exported._program
        return made

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        made = super()._apply(fn, recurse)
        for example in (self._kept, *self._calls.values()):
            example.convert(fn)
        return made

    @property
    def code(self) -> str:
        """The text of the module's forward()."""
        return source(type(_plain(self)).forward)

    def __reduce__(self) -> Any:
        return script, (_plain(self),)

    def __deepcopy__(self, memo: Any) -> Any:
        made = script(copy.deepcopy(_plain(self), memo))
        kind: Any = type(made)
        kind._kept.__set__(made, copy.copy(self._kept))
        kind._calls.__set__(made, {k: copy.copy(v) for k, v in self._calls.items()})
        return made


def _plain(module: Any) -> Any:
    """The module that was scripted: an object of its class with the same attributes."""
    made = object.__new__(module._own)
    made.__dict__ = module.__dict__
    return made


def _scripted(module: Any) -> Any:
    own = type(module)
    if own not in _kinds:
        table = {"__slots__": ("_kept", "_calls"), "_own": own, "__doc__": own.__doc__}
        table |= {n: _seen(n, f) for n, f in _exported(own).items()}
        table |= {"__module__": own.__module__, "__qualname__": own.__qualname__}
        _kinds[own] = type(own.__name__, (_Scripted, own), table)
    made: Any = object.__new__(_kinds[own])
    made.__dict__ = module.__dict__
    type(made)._kept.__set__(made, Example())
    type(made)._calls.__set__(made, {})
    return made


def _exported(kind: type) -> dict[str, Any]:
    """The methods of a class that `jit.export` marks."""
    every = {n: f for c in reversed(kind.__mro__) for n, f in vars(c).items()}
    return {n: f for n, f in every.items() if getattr(f, "_clew_exported", False)}


def _seen(name: str, function: Any) -> Any:
    """A method whose first call is its example."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            self._calls.setdefault(name, Example()).see(args, kwargs)
        return function(self, *args, **kwargs)

    return method


_kinds: dict[type, type] = {}


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """A function or a module that runs as Python, and has a program once it was called.

    Parameters, buffers and attributes are the module's own. The arguments of the first call are
    the example on which `save` and `graph` record the program. Classes and other objects are
    returned as they are; with example_inputs, the program is recorded at once.

    Args:
        obj: a function, a Module or a class.
        optimize: accepted; there is no compiler.
        example_inputs: a list of tuples of arguments, of which the first is taken.

    >>> @clew.jit.script
    ... def double(x):
    ...     return 2 * x
    >>> double(clew.ones(1))
    tensor([2.])
    """
    if example_inputs is not None:
        return trace(obj, next(iter(example_inputs)))
    if builtins.isinstance(obj, types.FunctionType):
        return ScriptFunction(obj)
    if builtins.isinstance(obj, Module) and not builtins.isinstance(obj, ScriptModule):
        return _scripted(obj)
    return obj


def is_scripting() -> bool:
    """Whether the code runs compiled: always False, for it runs as Python.

    >>> clew.jit.is_scripting()
    False
    """
    return False


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """A copy of a module whose parameters are constants: what it gives requires no grad.

    Args:
        mod: a module in evaluation mode; it stays as it is, and the copy shares its elements.
        preserved_attrs: not used: all attributes stay.
        optimize_numerics: not used.

    Raises:
        RuntimeError: if the module is in training mode.

    >>> net = clew.nn.Linear(2, 1).eval()
    >>> clew.jit.freeze(net)(clew.ones(2)).requires_grad
    False
    """
    if mod.training:
        raise RuntimeError("freeze: the module must be in evaluation mode; call .eval() first")
    shared: dict[int, Any] = {id(b): b for b in mod.buffers()}
    for p in mod.parameters():
        shared[id(p)] = Parameter(p.detach(), requires_grad=False)
    return copy.deepcopy(mod, shared)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module frozen, as by :func:`freeze`, in evaluation mode; nothing else is optimized.

    Args:
        mod: a module.
        other_methods: not used.

    >>> net = clew.nn.Linear(2, 1)
    >>> clew.jit.optimize_for_inference(net)(clew.ones(2)).requires_grad
    False
    """
    return freeze(mod.eval())


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


def _unwrap_optional(x: Any) -> Any:
    """A value that is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function at once; `wait` returns its result.

    Args:
        func: the function.
        args: its arguments.
        kwargs: its named arguments.

    Returns:
        An object for `wait`. Unlike PyTorch's, the call has ended by then.

    >>> clew.jit.wait(clew.jit.fork(clew.add, clew.ones(1), 2))
    tensor([3.])
    """
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """The result of a `fork`.

    Args:
        future: what `fork` returned.

    >>> clew.jit.wait(clew.jit.fork(lambda x: 2 * x, clew.ones(1)))
    tensor([2.])
    """
    return future.wait()


_fork, _wait = fork, wait


def export_opnames(m: Any) -> list[str]:
    """The operations that a program calls, by TorchScript's names, in order.

    Args:
        m: what `script`, `trace` or `load` returned.

    >>> clew.jit.export_opnames(clew.jit.trace(clew.nn.ReLU(), clew.ones(2)))
    ['aten::relu']
    """
    if not builtins.isinstance(m, ScriptModule):
        raise TypeError(f"jit.export_opnames: expected a ScriptModule; got {type(m).__name__}")
    kinds = {n.kind() for n in m.graph.findAllNodes()}
    return sorted(k for k in kinds if not k.startswith("prim::"))


def is_script_module(obj: Any) -> bool:
    """Whether something is what `script`, `trace` or `load` return.

    Args:
        obj: anything.
    """
    return builtins.isinstance(obj, ScriptModule)


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing: there is nothing to fuse."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing: there are no compiled graphs."""


def onednn_fusion_enabled() -> bool:
    """False: there are no compiled graphs."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Changes nothing: programs run as they are.

    Args:
        should_optimize: accepted.
    """
    yield


_state = None


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """Runs a module or a function, and gives the graph of that run and what came out.

    Args:
        f: what is called.
        args: its arguments.
        kwargs: its named arguments.
        strict: both ways are one here.
        return_inputs: whether to give the arguments, too, behind both.
    """
    from clew._trace_graph import trace_graph

    if _force_outplace or _return_inputs_states:
        raise NotImplementedError(
            "jit._get_trace_graph: _force_outplace and _return_inputs_states are not supported"
        )
    given = tuple(args) if builtins.isinstance(args, (tuple, list)) else (args,)
    graph, out = trace_graph(f, given, kwargs or {})
    return (graph, out, given) if return_inputs else (graph, out)
