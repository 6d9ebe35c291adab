"""A compiler that clew does not have; its switches can be set, and nothing reads them."""

from __future__ import annotations

from typing import Any


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no recorded graphs of kernels."""


def list_options() -> list[str]:
    """None: an empty list."""
    return []


def list_mode_options(mode: Any = None, dynamic: Any = None) -> dict[str, Any]:
    """The options that modes stand for: none. Of one mode if it is named."""
    modes = "default lite reduce-overhead max-autotune-no-cudagraphs max-autotune".split()
    if mode is None:
        return {one: {} for one in modes}
    if mode not in modes:
        raise RuntimeError(f"list_mode_options: mode must be one of {modes}; got {mode!r}")
    return {}


def compile(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no such compiler."""
    raise NotImplementedError("_inductor.compile: there is no such compiler here")
