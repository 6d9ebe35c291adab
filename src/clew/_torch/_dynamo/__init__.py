"""The names by which programs steer PyTorch's compiler. Without a backend of the program's own
nothing is compiled through them: what they are given runs as Python, and questions whether
something is being compiled are answered with no.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clew._torch._dynamo import config as config
from clew._torch._dynamo.eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "is_inductor_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "substitute_in_graph",
]


def _same(fn: Any) -> Any:
    return fn


allow_in_graph = disallow_in_graph = forbid_in_graph = _same
assume_constant_result = nonstrict_trace = run = _same


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """The function itself, or a decorator that returns it."""
    return _same if fn is None else fn


def optimize(backend: Any = "inductor", **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that compiles a function with a backend.

    Args:
        backend: a name, or a function that takes a GraphModule and example inputs.
        kwargs: accepted.
    """
    from clew._program.compiled import compile

    return functools.partial(compile, backend=backend)


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that returns the function itself."""
    return _same


@dataclass
class ExplainOutput:
    """What `explain` tells: how many graphs a compiler made of a call."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[Any]
    op_count: int
    ops_per_graph: list[Any] | None = None
    out_guards: list[Any] | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        return (
            f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\n"
            f"Op Count: {self.op_count}\nBreak Reasons:\nOps per Graph:\nOut Guards:\n"
        )


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that calls f and tells what a compiler made of it: no graphs and no breaks, for
    f runs as Python. Where arguments follow f, it is called with them at once.
    """

    def told(*args: Any, **kwargs: Any) -> ExplainOutput:
        f(*args, **kwargs)
        return ExplainOutput([], 0, 0, [], 0, [], [])

    return told(*args, **kwargs) if args or kwargs else told


def export(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises: programs are not exported."""
    raise NotImplementedError("_dynamo.export: use fx.symbolic_trace to record a program")


def graph_break(msg: str = "") -> None:
    """Does nothing: there is no graph."""


def is_compiling() -> bool:
    """False."""
    return False


def is_dynamo_supported() -> bool:
    """False: there is no such compiler."""
    return False


def is_inductor_supported() -> bool:
    """False: there is no such compiler."""
    return False


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of backends that were registered.

    Args:
        exclude_tags: accepted.
    """
    from clew._torch._dynamo._graphs import backends

    return sorted(backends)


def register_backend(compiler_fn: Any = None, name: Any = None, tags: Any = ()) -> Any:
    """Gives a backend a name, by which `compile` finds it.

    Args:
        compiler_fn: takes a GraphModule and example inputs, gives a function; None for a decorator.
        name: its name; the function's own if None.
        tags: accepted.
    """
    from clew._torch._dynamo import _graphs

    return _graphs.register_backend(compiler_fn, name, tags)


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of a name; a function itself.

    Args:
        compiler_fn: the name or the function.
    """
    from clew._torch._dynamo import _graphs

    return _graphs.lookup_backend(compiler_fn)


def reset() -> None:
    """Does nothing: nothing is compiled."""


reset_code_caches = reset


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Does nothing: all sizes may change."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Does nothing: sizes are what they are."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing."""
