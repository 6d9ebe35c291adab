"""A compiler that clew does not have; its switches can be set, and nothing reads them."""

from __future__ import annotations

from typing import Any


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no recorded graphs of kernels."""


def list_options() -> list[str]:
    """None: an empty list."""
    return []


def compile(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no such compiler."""
    raise NotImplementedError("_inductor.compile: there is no such compiler here")
