"""Tensor methods that run a Python function over the elements, or move them to shared memory."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from clew import _C
from clew._C import Tensor

__all__ = ["apply_", "is_shared", "map_", "share_memory_"]


def _refuse_grad(name: str, *tensors: Tensor) -> None:
    if any(t.requires_grad for t in tensors):
        raise TypeError(
            f"{name}: no gradient goes through a Python function; use tensor.detach().{name}()"
        )


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces every element by what the function makes of it; slow.

    Args:
        callable: takes and returns a number.

    Returns: the tensor itself.

    >>> clew.tensor([1.0, 2.0]).apply_(lambda v: v * 10)
    tensor([10., 20.])
    """
    _refuse_grad("apply_", self)
    found = [callable(v) for v in self.reshape(-1).tolist()]
    return self.copy_(_C.functions["reshape"](_tensor(found, self), self.shape))


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces every element by what the function makes of it and the element of the other; slow.

    Args:
        tensor: another tensor of the same dtype, broadcast to this one's shape.
        callable: takes two numbers and returns one.

    Returns: the tensor itself.

    >>> clew.tensor([1.0, 2.0]).map_(clew.tensor([3.0, 5.0]), lambda a, b: a * b)
    tensor([ 3., 10.])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"map_: the other operand must be a Tensor; got {type(tensor).__name__}")
    if tensor.dtype is not self.dtype:
        raise TypeError(f"map_: dtypes must agree; got {self.dtype} and {tensor.dtype}")
    _refuse_grad("map_", self, tensor)
    other = tensor.expand(self.shape)
    pairs = zip(self.reshape(-1).tolist(), other.reshape(-1).tolist())
    found = [callable(a, b) for a, b in pairs]
    return self.copy_(_C.functions["reshape"](_tensor(found, self), self.shape))


def _tensor(values: list[Any], like: Tensor) -> Tensor:
    from clew._creation import tensor

    return tensor(values, dtype=like.dtype)


# Memory that forked processes see, by its address: an entry lives as long as the memory does, so
# an address found here cannot belong to anything else.
_shared: weakref.WeakValueDictionary[int, mmap.mmap] = weakref.WeakValueDictionary()


def is_shared(self: Tensor) -> bool:
    """Whether the elements lie in memory that forked processes share.

    >>> clew.ones(2).is_shared()
    False
    """
    return not self.is_meta and self.untyped_storage().data_ptr() in _shared


def share_memory_(self: Tensor) -> Tensor:
    """Moves the elements to memory that processes forked afterwards share.

    Views made before keep the old memory. A tensor that is sent through a queue or to a spawned
    process is copied, shared or not.

    Returns: the tensor itself.

    >>> clew.ones(2).share_memory_().is_shared()
    True
    """
    if self.is_meta:
        raise RuntimeError("share_memory_: a meta tensor has no memory")
    if is_shared(self):
        return self
    old = self.untyped_storage()
    region = mmap.mmap(-1, max(old.nbytes(), 1))
    from clew._creation import from_numpy

    fresh = from_numpy(np.frombuffer(region, dtype=np.uint8))
    count = old.nbytes()
    fresh[:count].copy_(old._bytes)
    typed = fresh[: count // self.element_size() * self.element_size()].view(self.dtype)
    _shared[fresh.data_ptr()] = region
    self.data = typed.as_strided(self.shape, self.stride(), self.storage_offset())
    return self
