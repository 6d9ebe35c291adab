"""The module that PyTorch has `save` in."""

from clew.distributed.checkpoint._saving import save

__all__ = ["save"]
