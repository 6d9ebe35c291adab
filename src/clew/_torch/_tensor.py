"""Tensors by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from clew import Tensor as Tensor
from clew.nn import Buffer


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, as pickles of PyTorch describe it."""
    made = func(*args)
    if new_type is not Tensor and type(made) is not new_type:
        made = made.as_subclass(new_type)
    state = (state[0] if isinstance(state, tuple) else state) or {}
    if new_type is Tensor and state.get("_is_buffer"):
        made = Buffer(made.detach()).requires_grad_(made.requires_grad)
        state = {name: v for name, v in state.items() if name != "_is_buffer"}
    made.__dict__.update(state)
    return made


def _convert(ret: Any, cls: Any) -> Any:
    """A result, and what is inside, as tensors of a class."""
    if cls is Tensor:
        return ret
    if isinstance(ret, Tensor) and not isinstance(ret, cls):
        return ret.as_subclass(cls)
    if isinstance(ret, (tuple, list)):
        return type(ret)(_convert(r, cls) for r in ret)
    return ret
