"""The functions of `torch` by the name of the module that PyTorch's own Python calls them by."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import clew
    from clew import _torch

    value = getattr(clew, name, None)
    if value is None and name in _torch.NAMES:
        value = _torch.find(name)
    if name.startswith("__") or isinstance(value, type) or not callable(value):
        raise AttributeError(f"clew has no function {name!r}")
    return value
