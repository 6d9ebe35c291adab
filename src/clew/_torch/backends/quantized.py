"""Libraries of kernels for quantized tensors: there is none."""

from __future__ import annotations

engine = "none"
supported_engines: list[str] = []
