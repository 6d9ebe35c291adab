"""Compiled modules: the class that programs ask `isinstance` for."""

from __future__ import annotations

from clew._program.compiled import OptimizedModule as OptimizedModule


def is_dynamo_supported() -> bool:
    """False: there is no such compiler."""
    return False


innermost_fn = staticmethod(lambda fn: fn).__func__
