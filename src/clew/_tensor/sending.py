"""Tells Python's `multiprocessing`, which most programs never import, how tensors are sent.

It has to know before its first pickler is made. So that importing clew does not import it, an
import of its own is waited for.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["await_multiprocessing", "followed_by"]

_NAME = "multiprocessing.reduction"


class _Finder:
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _NAME:
            return None
        sys.meta_path[:] = [f for f in sys.meta_path if f is not self]
        return followed_by(_register, name, path)


def followed_by(action: Callable[[Any], None], name: str, path: Any) -> Any:
    """Where a module is found, with something that is done once it was imported.

    Args:
        action: takes the module.
        name: the module's name.
        path: where it is looked for; None for `sys.path`.
    """
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None or spec.loader is None:
        return spec
    loader: Any = spec.loader
    run_module = loader.exec_module

    def exec_module(module: Any) -> None:
        run_module(module)
        action(module)

    loader.exec_module = exec_module
    return spec


def _register(module: Any) -> None:
    from clew._tensor.shared import register

    register(module.ForkingPickler)


def await_multiprocessing() -> None:
    """Registers what sends tensors, now or when the module is imported."""
    module = sys.modules.get(_NAME)
    if hasattr(module, "ForkingPickler"):
        _register(module)
    elif not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
