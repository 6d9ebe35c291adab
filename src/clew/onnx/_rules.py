"""The files that say how operations are written in ONNX; each registers its own."""

from __future__ import annotations

from clew.onnx import (
    _divisors,
    _indexing,
    _losses,
    _making,
    _math,
    _nn,
    _numbers,
    _recurrent,
    _reductions,
    _resizing,
    _scans,
    _sets,
    _shape,
    _special,
)

LOADED = (
    *(_indexing, _losses, _making, _math, _nn, _numbers, _recurrent, _reductions, _resizing),
    *(_divisors, _scans, _sets, _shape, _special),
)
