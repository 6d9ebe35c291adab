"""Reads and swaps tensors of a module by their names."""

from __future__ import annotations

from typing import Any


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Puts a tensor in the place of a module's; gives the one that was there.

    Args:
        module: the module.
        name: of the parameter, buffer or attribute.
        tensor: the new one; None takes it out.
        allow_missing: whether it may not be there.
    """
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            table[name] = tensor
            return before
    if not hasattr(module, name) and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute {name!r}")
    before = module.__dict__.get(name)
    if tensor is None:
        module.__dict__.pop(name, None)
    else:
        setattr(module, name, tensor)
    return before
