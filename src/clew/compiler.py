"""PyTorch's names for steering a compiler.

Functions that :func:`clew.compile` made run their Python as it is: there is nothing to trace, so
most of these have nothing to do.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from typing import Any

from clew._program.compiled import OptimizedModule as OptimizedModule
from clew._program.compiled import compile as compile
from clew._program.options import own_backend
from clew._program.report import Report as Report
from clew._program.report import last_report as last_report

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "last_report",
    "list_backends",
    "reset",
    "set_stance",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, or a decorator that returns it.

    Args:
        fn: a function; None for a decorator.
        recursive: has no effect.
        reason: has no effect.

    >>> clew.compiler.disable(len) is len
    True
    """
    return fn if fn is not None else lambda f: f


def allow_in_graph(fn: Any) -> Any:
    """Returns the function itself: `clew.compile` runs it like any other.

    Args:
        fn: the function.

    >>> clew.compiler.allow_in_graph(len) is len
    True
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Returns the function itself: it is called each time.

    Args:
        fn: the function.

    >>> clew.compiler.assume_constant_result(len) is len
    True
    """
    return fn


def is_compiling() -> bool:
    """Whether an export is running; False in functions of `compile`, which run as they are.

    >>> clew.compiler.is_compiling()
    False
    """
    return is_exporting()


def is_dynamo_compiling() -> bool:
    """False: nothing is compiled.

    >>> clew.compiler.is_dynamo_compiling()
    False
    """
    return False


def is_exporting() -> bool:
    """Whether `export.export` or `onnx.export` is recording.

    >>> clew.compiler.is_exporting()
    False
    """
    symbols = sys.modules.get("clew.export._symbols")  # without it nothing can be
    return symbols is not None and bool(symbols._recorder)


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of compilers to choose from: none, an empty list.

    Args:
        exclude_tags: not used.

    >>> clew.compiler.list_backends()
    []
    """
    return []


def reset() -> None:
    """Does nothing: there is nothing compiled to forget.

    >>> clew.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no recorded graphs of kernels.

    >>> clew.compiler.cudagraph_mark_step_begin()
    """


_STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)


class set_stance(ContextDecorator):
    """PyTorch's choice of what is compiled when: a function, a context or a decorator.

    Every stance holds already: the Python code runs as it is, results have the bits of plain calls,
    and nothing is ever compiled again.

    Args:
        stance: "default", "force_eager", "eager_on_recompile", "fail_on_recompile",
            "eager_then_compile" or "aot_eager_then_compile".
        skip_guard_eval_unsafe: has no effect: there are no guards.
        force_backend: None or one of the backends that `compile` takes by name; only with the
            default stance.

    Raises:
        ValueError: an unknown stance.
        RuntimeError: another stance than the default, with a backend.
        NotImplementedError: a backend that `compile` does not take by name.

    >>> with clew.compiler.set_stance("force_eager"):
    ...     clew.compile(lambda x: x + 1)(clew.ones(2))
    tensor([2., 2.])
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if stance not in _STANCES:
            raise ValueError(
                f"set_stance: stance must be one of {', '.join(_STANCES)}; got {stance!r}"
            )
        if force_backend is None:
            return
        if stance != "default":
            raise RuntimeError("set_stance: non-default stance cannot have force_backend set")
        if not own_backend(force_backend):
            raise NotImplementedError(
                "set_stance: force_backend must be None or a name that compile takes; got "
                f"{force_backend!r}"
            )

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...
