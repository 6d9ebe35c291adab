"""Masked tensors by the path that PyTorch has them at."""

from __future__ import annotations

from clew.masked._tensor import as_masked_tensor as as_masked_tensor
from clew.masked._tensor import masked_tensor as masked_tensor
