"""Inner names of the tracer: none is made here."""

from __future__ import annotations

from clew.jit import TopLevelTracedModule, is_tracing, trace, trace_module

__all__ = ["TopLevelTracedModule", "is_tracing", "trace", "trace_module"]
