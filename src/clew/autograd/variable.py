"""Variable, an old name of Tensor."""

from __future__ import annotations

from . import Variable as Variable

__all__ = ["Variable"]
