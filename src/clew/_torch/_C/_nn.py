"""Operations of neural networks by PyTorch's inner names."""

from __future__ import annotations

from typing import Any

from clew._tensor.conversions import parse_to


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of `to` say: device, dtype, non_blocking, memory_format."""
    dtype, device, _, memory_format = parse_to("to", args, kwargs)
    return device, dtype, bool(kwargs.get("non_blocking", False)), memory_format


def __getattr__(name: str) -> Any:
    import clew

    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(clew.nn.functional, name, None) or getattr(clew, name, None)
    if found is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    return found
