"""``torch._tensor_str``: how tensors are written out."""

from __future__ import annotations

from clew._tensor.text import *  # noqa: F403
