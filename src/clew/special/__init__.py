"""Special functions: the ops whose names start with special, and rarer ones through SciPy."""

from __future__ import annotations

from clew import _C, _namespace
from clew.special import _bessel, _gamma, _polynomials

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
gammainc = _gamma.gammainc
gammaincc = _gamma.gammaincc

globals().update({name: getattr(_bessel, name) for name in _bessel.__all__})
globals().update({name: getattr(_polynomials, name) for name in _polynomials.__all__})

__all__ = [n for n in globals() if not n.startswith("_") and n != "annotations"]
# The examples in the documentation of functions that are made by others.
__test__ = {n: globals()[n] for n in (*_bessel.__all__, *_polynomials.__all__)}
__getattr__ = _namespace.module_getattr(__name__, globals())
