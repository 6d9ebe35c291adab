"""Tensor methods that run a Python function over the elements, or move them to shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import _C
from clew._C import Tensor
from clew._tensor.shared import share

__all__ = ["apply_", "from_file", "is_shared", "map_", "share_memory_"]


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
    return _C.tensor(values, dtype=like.dtype)


def is_shared(self: Tensor) -> bool:
    """Whether the elements lie in memory that other processes can map.

    >>> clew.ones(2).is_shared()
    False
    """
    return not self.is_meta and _C._is_shared(self)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the elements, and all views of them, to memory that other processes can map.

    Forked processes have it from then on. Through a queue, a pipe or the arguments of a new process
    a handle is sent instead of the elements: what one process writes, all others see. A tensor that
    is sent is moved there by itself. Shared memory cannot be resized; a NumPy array made before
    keeps the old elements.

    Returns: the tensor itself.

    >>> clew.ones(2).share_memory_().is_shared()
    True
    """
    share(self)
    return self


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A vector over a file that is mapped: pages are read when they are looked at.

    Args:
        filename: the file.
        shared: whether writes go to the file, which is then made as long as it must be; else
            they stay in memory.
        size: how many elements.
        dtype: their dtype, the default one if None.
        layout: strided.
        device: the CPU.
        pin_memory: accepted; there is nothing to pin for.
        requires_grad: whether a gradient is asked for.

    >>> import pathlib
    >>> _ = pathlib.Path("numbers.bin").write_bytes(bytes([1, 2, 3]))
    >>> clew.from_file("numbers.bin", size=3, dtype=clew.uint8)
    tensor([1, 2, 3], dtype=clew.uint8)
    """
    import os

    import numpy as np

    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"from_file: a file is mapped on the CPU; got device {device}")
    kind = dtype or _C.get_default_dtype()
    length = int(size) * kind.itemsize
    if length == 0:
        return _C.empty(0, dtype=kind).requires_grad_(requires_grad)
    path = os.fspath(filename)
    if shared:
        with open(path, "ab") as file:
            if file.tell() < length:
                file.truncate(length)
    have = os.path.getsize(path)
    if have < length:
        raise RuntimeError(
            f"from_file: {size} elements of {kind} are {length} bytes; {path} has {have}"
        )
    raw = np.memmap(path, dtype=np.uint8, mode="r+" if shared else "c", shape=(length,))
    return _C.from_numpy(raw)._reinterpret(kind).requires_grad_(requires_grad)
