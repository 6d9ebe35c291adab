"""Methods of tensors, none of them functions, that are rarely asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_tensors
from clew._base.settling import settle
from clew._C import Tensor

# ---- memory --------------------------------------------------------------------------------------


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors are the same view of the same storage."""
    need_tensors("is_set_to", self=self, tensor=tensor)
    settle(self, tensor)
    return (
        self._storage_key() == tensor._storage_key()
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Makes the tensor look at another tensor's storage, or at one that is given.

    Args:
        source: a tensor of the same dtype, or a storage; None makes the tensor empty.
        storage_offset: the first element.
        size: the sizes; without them those of the source.
        stride: the strides; without them elements lie in order.

    >>> clew.ones(1).set_(clew.tensor([1.0, 2.0]).untyped_storage(), 1, (1,), (1,))
    tensor([2.])
    """
    if source is None:
        return self._set_to(_C.empty(0, dtype=self.dtype, device=self.device))
    if not isinstance(source, Tensor):
        from clew.storage import TypedStorage, UntypedStorage, _of_dtype

        if isinstance(source, TypedStorage):
            if source.dtype != self.dtype:
                raise RuntimeError(
                    f"set_: a storage of {source.dtype} cannot be that of a tensor of "
                    f"{self.dtype}; pass its untyped(), whose bytes are taken as they are"
                )
            source = source.untyped()
        if not isinstance(source, UntypedStorage):
            raise TypeError(
                f"set_: source must be a tensor or a storage; got {type(source).__name__}"
            )
        source = _of_dtype(source._bytes, self.dtype)
        storage_offset += source.storage_offset()
        if size is None:
            size = (source.numel(),)
    if hasattr(type(source), "_refuse") and type(source) is not type(self):
        source._refuse("set_")
    if size is None:
        return self._set_to(source)
    sizes = (storage_offset, tuple(size))
    return (
        self._set_to(source, *sizes)
        if stride is None
        else self._set_to(source, *sizes, tuple(stride))
    )


def storage_type(self: Tensor) -> type:
    """The type of the tensor's storage."""
    from clew import storage

    return getattr(storage, _dtypes.STORAGE_NAMES.get(self.dtype, "TypedStorage"))


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions, from the one with the largest stride to the one with the smallest.

    Args:
        ambiguity_check: True: the order must be the only one, which it is not with a dimension of
            size 1, or with equal strides of neighbouring dimensions. A list of memory formats: then
            the tensor must at least lie in exactly one of them.

    >>> clew.ones(2, 3).t().dim_order()
    (1, 0)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not all(isinstance(f, _dtypes.memory_format) for f in formats) or not isinstance(
        ambiguity_check, (bool, list)
    ):
        raise TypeError(
            "dim_order: ambiguity_check must be a bool or a list of memory formats; got "
            f"{ambiguity_check!r}"
        )
    if ambiguity_check is not False:
        strides = self.stride()
        several = 1 in self.shape or any(a == b for a, b in itertools.pairwise(strides))
        if several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                f"dim_order: the order of dimensions is ambiguous for sizes {list(self.shape)} and "
                f"strides {list(strides)}; name the one memory format that the tensor lies in"
            )
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda d: -strides[d]))


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element.

    >>> x = clew.ones(1)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


# ---- elements ------------------------------------------------------------------------------------


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sums over dimensions until the tensor has a shape that broadcasts to its own.

    >>> clew.ones(2, 3).sum_to_size(3)
    tensor([2., 2., 2.])
    """
    if not size:
        raise TypeError("sum_to_size() missing 1 required positional arguments: 'size'")
    sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    wanted = [int(n) for n in sizes]
    if not wanted:
        return self.sum()
    extra = self.ndim - len(wanted)
    if extra < 0 or any(w not in (1, n) for w, n in zip(wanted, self.shape[extra:])):
        raise RuntimeError(
            f"sum_to_size: size {wanted} is not expandable to size {list(self.shape)}."
        )
    dims = [d for d in range(self.ndim) if d < extra or wanted[d - extra] != self.shape[d]]
    if not dims:
        return self
    return self.sum(dims, keepdim=True).reshape(wanted)


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a value on the main diagonal.

    Args:
        fill_value: a number.
        wrap: go on below the square part of a tall matrix, leaving out one row each time.

    >>> clew.zeros(2, 2).fill_diagonal_(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    need_bools("fill_diagonal_", wrap=wrap)
    if self.ndim < 2:
        raise RuntimeError(f"fill_diagonal_: dimensions must larger than 1; got {list(self.shape)}")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(
            f"fill_diagonal_: all dimensions of input must be of equal length; got "
            f"{list(self.shape)}"
        )
    width = self.shape[-1]
    blocks = [self]
    if wrap and self.ndim == 2 and width:
        blocks = [self[i : i + width] for i in range(0, self.shape[0], width + 1)]
    for block in blocks:
        if block.ndim == 2:
            block.diagonal().fill_(fill_value)
            continue
        n = min(block.shape)
        if n:
            step = sum(block.stride())
            block.as_strided((n,), (step,), block.storage_offset()).fill_(fill_value)
    return self


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by a Python function of it and of those of two tensors; slow.

    >>> one = clew.tensor([1])
    >>> clew.tensor([5]).map2_(one, one, lambda a, b, c: a + b + c)
    tensor([7])
    """
    need_tensors("map2_", x=x, y=y)
    if self.requires_grad or x.requires_grad or y.requires_grad:
        raise RuntimeError(
            "map2_: no gradient goes through a Python function; use detach() of the tensors that "
            "require grad"
        )
    columns = [t.expand(self.shape).reshape(-1).tolist() for t in (self, x, y)]
    values = [callable(*row) for row in zip(*columns)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


# ---- other tensors -------------------------------------------------------------------------------


def new(
    self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None
) -> Tensor:
    """A tensor of the same dtype: of unspecified elements in a shape, of given data, or over the
    memory of a storage or a tensor.

    Args:
        args: sizes, or one of data, a storage or a tensor.
        size: the sizes, instead of args.
        dtype: another dtype.
        device: another device.

    >>> clew.tensor([1.5]).new([1, 2])
    tensor([1., 2.])
    """
    if size is not None:
        if args:
            raise TypeError("new: size= takes the place of other arguments")
        return self.new_empty(size, dtype=dtype, device=device)
    if len(args) == 1 and isinstance(args[0], _C.Size):
        return self.new_empty(args[0], dtype=dtype, device=device)
    if len(args) == 1 and hasattr(args[0], "untyped"):
        held = getattr(args[0], "dtype", self.dtype)
        if held is not self.dtype:
            raise RuntimeError(f"new: expected a storage of {self.dtype}; got one of {held}")
        return _C.empty(0, dtype=self.dtype).set_(args[0])
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not self.dtype:
            raise TypeError(f"new: expected a tensor of {self.dtype}; got one of {args[0].dtype}")
        return args[0].detach()
    if len(args) == 1 and not isinstance(args[0], int):
        return self.new_tensor(args[0], dtype=dtype, device=device)
    return self.new_empty(args or (0,), dtype=dtype, device=device)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The tensor that a module keeps when it loads ``other`` over this one: ``other`` itself with
    ``assign``, else this one with the elements of ``other``.

    >>> clew.zeros(1).module_load(clew.ones(1))
    tensor([1.])
    """
    need_tensors("module_load", other=other)
    return other.detach() if assign else self.detach().copy_(other)
