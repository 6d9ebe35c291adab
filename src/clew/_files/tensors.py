"""Bytes of tensors: their storages to and from memory, and tensors rebuilt over storages."""

from __future__ import annotations

import math
from pickle import UnpicklingError
from typing import Any

import clew
from clew import Tensor
from clew._base.dtypes import STORAGE_NAMES, STORED

from .limits import shown

# Saved over untyped storages, since no storage class has these element types.
UNTYPED = (clew.uint16, clew.uint32, clew.uint64, *STORED)
DTYPE_NAMES = {str(dtype).rpartition(".")[2]: dtype for dtype in (*STORAGE_NAMES, *UNTYPED)}

MAX_DIMS = 64


def width_of(dtype: Any) -> int:
    """Bytes of one element."""
    return int(dtype.itemsize)


def buffer_of(raw: Tensor) -> memoryview:
    """The memory of a uint8 tensor, writable and shared, for as long as the caller keeps it.

    The tensor is not marked as one that NumPy shares: a memory budget would keep all made of it.
    """
    array: Any = raw._array_view()
    return memoryview(array).cast("B")


def view_of(raw: Tensor, dtype: Any, size: Any, stride: Any, offset: int, what: str) -> Tensor:
    """A tensor over the bytes of `raw`, after checking that it stays within them."""
    for name, values in (("size", size), ("stride", stride)):
        if (
            not isinstance(values, tuple)
            or len(values) > MAX_DIMS
            or not all(type(v) is int and 0 <= v < 2**63 for v in values)
        ):
            raise UnpicklingError(
                f"load: the {name} of {what} is not a tuple of at most {MAX_DIMS} sizes: "
                f"{shown(values)}"
            )
    if len(size) != len(stride):
        raise UnpicklingError(
            f"load: {what} has {len(size)} sizes and {len(stride)} strides; they must be as many"
        )
    if type(offset) is not int or offset < 0:
        raise UnpicklingError(f"load: the offset of {what} is not a size: {shown(offset)}")
    count = math.prod(size)
    # An empty tensor has strides, too, that must be numbers.
    if math.prod(n for n in size if n) >= 2**63:
        raise UnpicklingError(f"load: {what} of size {list(size)} has too many elements")
    width = width_of(dtype)
    held = raw.numel() // width
    if count:
        end = offset + sum((n - 1) * s for n, s in zip(size, stride)) + 1
        if end > held:
            raise UnpicklingError(
                f"load: {what} of size {list(size)}, stride {list(stride)} and offset {offset} "
                f"ends at element {end}; its storage has {held}"
            )
    elif offset > held:
        raise UnpicklingError(f"load: {what} begins at element {offset}; its storage has {held}")
    if dtype == clew.bool and held and not only_bools(raw):
        raise UnpicklingError(f"load: {what} has bytes that are neither 0 nor 1")
    flat = raw[: held * width]._reinterpret(dtype)
    offset += flat.storage_offset()  # `raw` may be a part of a storage
    return clew._C.empty(0, dtype=dtype, device=raw.device)._set_to(flat, offset, size, stride)


def only_bools(raw: Tensor) -> bool:
    """Whether all bytes are 0 or 1."""
    # Looked through once, however many tensors view it.
    if raw.device.type == "cpu" and "checked" not in raw.__dict__:
        if int(raw.max()) > 1:
            return False
        raw.__dict__["checked"] = True
    return True


def may_require_grad(dtype: Any) -> bool:
    """Whether tensors of this dtype can have gradients."""
    return bool(dtype.is_floating_point or dtype.is_complex)
