"""Copies of saved tensors that come back in the layout that they were saved in.

Rules for gradients may read a tensor of another layout in another order, and then give other bits.
"""

from __future__ import annotations

from clew._base.dtypes import contiguous_format
from clew._C import Tensor, empty_strided

__all__ = ["Layout"]


def _may_overlap(shape: list[int], strides: list[int]) -> bool:
    """Whether two elements may lie in one place."""
    end = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride < end:
                return True
            end += (size - 1) * stride
    return False


class Layout:
    """Shape, dtype and strides of a tensor, and which of its elements a copy needs.

    Args:
        t: the tensor.
    """

    __slots__ = ("dtype", "extent", "needed", "shape", "strides")

    def __init__(self, t: Tensor) -> None:
        self.shape, self.strides, self.dtype = tuple(t.shape), tuple(t.stride()), t.dtype
        # An expanded dim repeats what is there once.
        self.needed = [
            1 if s == 0 and n > 1 else n for n, s in zip(self.shape, self.strides, strict=True)
        ]
        count = 1
        for n in self.needed:
            count *= n
        # Where the elements lie close together all from the first to the last are copied.
        self.extent = sum((n - 1) * s for n, s in zip(self.needed, self.strides, strict=True)) + 1
        if count == 0 or self.extent > count:
            self.extent = 0

    def copy(self, t: Tensor) -> Tensor:
        """What is needed of the tensor, in memory of its own without gaps."""
        t = t.detach()
        if self.extent:
            return t.as_strided((self.extent,), (1,)).clone()
        for dim, n in enumerate(self.needed):
            if n < t.shape[dim]:
                t = t.narrow(dim, 0, 1)
        return t.clone(memory_format=contiguous_format)

    def restore(self, copied: Tensor) -> Tensor:
        """The tensor again: over the memory of the copy if its layout allows it.

        Args:
            copied: what copy() gave, of any shape.
        """
        if self.extent:
            return copied.reshape(-1).as_strided(self.shape, self.strides)
        t = copied.reshape(self.needed)
        strides = list(self.strides)
        if tuple(t.stride()) != self.strides and not _may_overlap(self.needed, strides):
            t = empty_strided(self.needed, strides, dtype=self.dtype).copy_(t)
        return t.expand(self.shape)
