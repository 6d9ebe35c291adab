"""Tensors without data: clew has the device "meta" for them, and no class of its own."""

from __future__ import annotations

from clew._torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
