"""skip_init: a module whose parameters are left uninitialised."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Makes a module without running its initialisation.

    Args:
        module_cls: a module class that takes device.
        args: its arguments.
        kwargs: its named arguments; device is where the parameters will live.

    Returns:
        the module; its parameters hold uninitialised memory.

    Raises:
        RuntimeError: if module_cls is not a module class, or takes no device.

    Example:
        >>> layer = clew.nn.utils.skip_init(clew.nn.Linear, 2, 3)
        >>> list(layer.weight.shape)
        [3, 2]
    """
    from ..modules.module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"Module must support a 'device' arg to skip initialization; {module_cls.__name__} "
            "takes none"
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
