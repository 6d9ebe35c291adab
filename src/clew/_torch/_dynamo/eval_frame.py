"""Compiled modules: the class that programs ask `isinstance` for."""

from __future__ import annotations

from typing import Any

from clew import nn


class OptimizedModule(nn.Module):
    """A module as `torch.compile` returns it: the original is `_orig_mod`.

    Args:
        mod: the module.
        dynamo_ctx: accepted; the module runs as it is.
    """

    def __init__(self, mod: Any, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        return self._orig_mod(*args, **kwargs)


def is_dynamo_supported() -> bool:
    """False: there is no such compiler."""
    return False


innermost_fn = staticmethod(lambda fn: fn).__func__
