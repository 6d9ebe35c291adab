"""The options of compile()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["check_options"]

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# Makes what a function that a program of PyTorch gives as backend shall run, or one that has
# another name; `clew run` sets it. It takes the model, the backend and named arguments for it.
graph_maker: Callable[..., Any] | None = None
_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "clew")


def check_options(
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: Any = None,
    options: Any = None,
    disable: bool = False,
) -> None:
    """Raises unless the options are such as `compile` takes."""
    if callable(backend) or backend not in _BACKENDS:
        raise NotImplementedError(
            f"compile: backend must be one of {', '.join(_BACKENDS)}; got {backend!r}. Under "
            "`clew run`, torch.compile gives graphs to a function of one's own"
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"compile: mode must be one of {', '.join(_MODES)}; got {mode!r}")
    if mode is not None and options:
        raise RuntimeError("compile: give either mode or options, not both")
    if options:
        raise RuntimeError(
            f"compile: there are no options; got {', '.join(map(str, options))}. Leave them out"
        )


def own_backend(backend: Any) -> bool:
    """Whether a backend is one of clew's names."""
    return isinstance(backend, str) and backend in _BACKENDS


check_options.__qualname__ = "compile"  # as errors of unknown options call it
