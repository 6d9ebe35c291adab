"""Files of programs for phones, which are files as `clew.jit` writes them."""

from __future__ import annotations

from typing import Any

from clew import jit

__all__ = ["_export_operator_list", "_load_for_lite_interpreter"]


def _load_for_lite_interpreter(f: Any, map_location: Any = None) -> Any:
    """A module that runs a stored program.

    Args:
        f: a path or a binary file that `jit.save` wrote.
        map_location: the CPU, or None.
    """
    return jit.load(f, map_location)


def _export_operator_list(module: Any) -> set[str]:
    """The operations that a program calls.

    Args:
        module: what `_load_for_lite_interpreter` returned.
    """
    return set(jit.export_opnames(module))
