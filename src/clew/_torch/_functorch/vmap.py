"""Inner names of vmap that libraries with containers of their own use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from clew import Tensor as Tensor
from clew import vmap as vmap
from clew._torch._C._functorch import _add_batch_dim as _add_batch_dim
from clew._torch._C._functorch import _remove_batch_dim as _remove_batch_dim
from clew.func import _vmap
from clew.utils._pytree import (
    TreeSpec as TreeSpec,
)
from clew.utils._pytree import (
    _broadcast_to_and_flatten as _broadcast_to_and_flatten,
)
from clew.utils._pytree import (
    tree_flatten as tree_flatten,
)
from clew.utils._pytree import (
    tree_map_ as tree_map_,
)
from clew.utils._pytree import (
    tree_unflatten as tree_unflatten,
)

in_dims_t = Any
out_dims_t = Any


def _get_name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


def _maybe_remove_batch_dim(name: str, tensor: Any, level: int, size: int, out_dim: Any) -> Any:
    if out_dim is None:
        return tensor
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"vmap({name}): expected a function that returns tensors; got {type(tensor)}"
        )
    return _remove_batch_dim(tensor, level, size, out_dim)


class _Steps(ModuleType):
    """The module, whose steps of vmap may be replaced by setting them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _vmap._STEPS:
            _vmap.replaced[name] = value
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Steps
