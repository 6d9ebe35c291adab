"""The module that PyTorch has `load` in."""

from clew.distributed.checkpoint._saving import load

__all__ = ["load"]
