"""Many tensors as one vector, and back; small helpers that PyTorch's libraries import."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import clew
from clew import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one vector.

    Args:
        tensors: of one dtype.
    """
    parts = [t.reshape(-1) for t in tensors]
    return parts[0] if len(parts) == 1 else clew.cat(parts)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts of a vector as views with the tensors' shapes.

    Args:
        flat: the vector.
        tensors: what the parts look like.
    """
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors))


class _Message(str):
    """The text of a KeyError, which would otherwise be shown with its line breaks escaped."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another thread or process, to be raised again here.

    Args:
        exc_info: (type, value, traceback); the exception being handled if None.
        where: words for the place, such as "in background".
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises an exception of the same type with the other's traceback in its text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if issubclass(self.exc_type, KeyError):
            text = _Message(text)
        try:
            made = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise made


def _element_size(dtype: Any) -> int:
    """How many bytes an element has."""
    return int(dtype.itemsize)


def _get_available_device_type() -> str | None:
    """The kind of accelerator that is there: none."""
    return None


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device, such as clew.cuda."""
    found = getattr(clew, device_type, None)
    if found is None:
        raise RuntimeError(f"clew has no module for the device {device_type!r}")
    return found


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; -1 of the CPU."""
    if isinstance(device, int):
        return device
    found = clew.device(device) if device is not None else None
    if found is None or found.type == "cpu":
        if optional or allow_cpu:
            return -1
        raise ValueError(f"expected a device with an index; got {device}")
    return found.index or 0


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a typed storage, as pickles of PyTorch describe it."""
    return clew.empty(0, dtype=storage.dtype).set_(storage, storage_offset, size, stride)


def _with_metadata(tensor: Tensor, metadata: Any, requires_grad: bool) -> Tensor:
    """A copy, where the bytes are those of the conjugate or of the negative."""
    for name in metadata or ():
        if name not in ("conj", "neg"):
            raise RuntimeError(f"pickle: what {name!r} says of a tensor is not known")
    if metadata and metadata.get("conj"):
        tensor = tensor.conj()
    if metadata and metadata.get("neg"):
        tensor = tensor.neg()
    return tensor.requires_grad_(requires_grad)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """The same with what PyTorch says about the bytes."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    return _with_metadata(made, metadata, requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """The same over bytes, of a dtype that has no storage class."""
    made = clew.empty(0, dtype=dtype).set_(storage.untyped(), storage_offset, size, stride)
    return _with_metadata(made, metadata, requires_grad)


def _rebuild_meta_tensor_no_storage(
    dtype: Any, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    """A tensor without elements."""
    made = clew.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return made.requires_grad_(requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor of its parts."""
    if layout == clew.sparse_coo:
        indices, values, size, *coalesced = data
        more = {"is_coalesced": coalesced[0]} if coalesced else {}
        return clew.sparse_coo_tensor(indices, values, size, **more)
    compressed, plain, values, size = data
    return clew.sparse_compressed_tensor(compressed, plain, values, size, layout=layout)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter, as pickles of PyTorch describe it."""
    return clew.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Any:
    """The same with the attributes that the program gave it."""
    made = clew.nn.Parameter(data, requires_grad)
    named, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(named or {}), **(slots or {})}.items():
        setattr(made, name, value)
    return made


class _ClassPropertyDescriptor:
    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, owner or type(instance))()


def classproperty(func: Any) -> Any:
    """A property of a class."""
    if not isinstance(func, (classmethod, staticmethod)):
        func = classmethod(func)
    return _ClassPropertyDescriptor(func)
