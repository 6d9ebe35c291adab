"""Pinning of batches, by PyTorch's name for the module."""

from __future__ import annotations

from collections import abc
from typing import Any

from clew import Tensor

from .collate import _is_namedtuple, _rebuild


def pin_memory(data: Any, device: Any = None) -> Any:
    """What a batch is when every part that can be pinned is.

    Args:
        data: tensors, objects with a method `pin_memory`, and containers of them; other things are
            returned as they are.
        device: accepted; memory of this device needs no pinning.
    """
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Tensor):
        return data.pin_memory()
    if isinstance(data, abc.Mapping):
        return _rebuild(data, {key: pin_memory(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, abc.Sequence):
        parts = [pin_memory(part) for part in data]
        return tuple(parts) if isinstance(data, tuple) else _rebuild(data, parts)
    return data.pin_memory() if hasattr(data, "pin_memory") else data
