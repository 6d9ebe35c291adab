"""Results that wait for other samples (clew.autobatch), where their memory is asked for by name."""

from __future__ import annotations

from clew import _C

__all__ = ["settle"]


def settle(*tensors: _C.Tensor) -> None:
    """Runs what the tensors wait for: a result gets its own memory only then."""
    if _C._gathers():
        for t in tensors:
            if not t.is_meta:
                t.data_ptr()
