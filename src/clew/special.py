"""Special functions: the ops whose names start with special."""

from __future__ import annotations

from clew import _C, _namespace

globals().update(
    {
        name.removeprefix("special."): f
        for name, f in _C.functions.items()
        if name.startswith("special.")
    }
)
# Functions that PyTorch offers in both places.
softmax = _C.functions["softmax"]
log_softmax = _C.functions["log_softmax"]
logsumexp = _C.functions["logsumexp"]

__all__ = [n for n in globals() if not n.startswith("_") and n != "annotations"]
__getattr__ = _namespace.module_getattr(__name__, globals())
