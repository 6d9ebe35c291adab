"""The older names of sparse tensors by dtype: `torch.sparse.FloatTensor(indices, values, size)`."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor
from clew._lazy.legacy import tensortype
from clew._tensor import _TYPE_NAMES

_NAMES = """
BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
ShortTensor
"""


class sparsetype(tensortype):
    """The type of types such as sparse.FloatTensor."""

    is_sparse = True

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) and instance.layout == clew.sparse_coo

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """A sparse tensor: empty, of given sizes, or of indices, values and perhaps a size.

        Args:
            args: nothing, sizes, or (indices, values[, size]).
            device: the CPU.
        """
        name = f"{cls.__module__}.{cls.__name__}"
        if cls.is_cuda:
            raise TypeError(f"{name}: clew runs on the CPU here; there is no CUDA device")
        if device is not None and clew.device(device).type != "cpu":
            raise RuntimeError(f"{name}: legacy types are on the CPU; got device {device}")
        if len(args) in (2, 3) and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            # As in PyTorch the values keep their dtype, whatever the type says.
            return clew.sparse_coo_tensor(*args)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], clew.Size) else args or (0,)
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in sizes):
            raise TypeError(f"{name}: expected sizes, or tensors of indices and of values")
        indices = clew.empty(len(sizes), 0, dtype=clew.int64)
        return clew.sparse_coo_tensor(indices, clew.empty(0, dtype=cls.dtype), tuple(sizes))


def types(module: str, is_cuda: bool = False) -> dict[str, sparsetype]:
    """The types, by name."""
    dtypes = {name: dtype for dtype, name in _TYPE_NAMES.items()}
    made = {}
    for name in _NAMES.split():
        doc = f"A sparse tensor of {dtypes[name]}, by its older name."
        space = {"__module__": module, "__doc__": doc, "dtype": dtypes[name], "is_cuda": is_cuda}
        made[name] = sparsetype(name, (), {**space, "layout": clew.sparse_coo})
    return made


globals().update(types("torch.sparse"))
