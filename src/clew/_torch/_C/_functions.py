"""Types of nodes by PyTorch's names."""

from __future__ import annotations

from clew import _C

AccumulateGrad = _C._node_type("AccumulateGrad")
