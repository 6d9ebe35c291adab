"""The older names of tensors by dtype: `FloatTensor(2, 3)`, `isinstance(x, LongTensor)`.

They are types in a call, an annotation, a test or `.type()`; no tensor is made an object of them.
"""

from __future__ import annotations

import functools
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor

__all__ = [*_dtypes.TENSOR_DTYPES, "set_default_tensor_type", "tensortype"]


class tensortype(type):
    """The type of types such as FloatTensor.

    >>> type(clew.FloatTensor) is clew.tensortype
    True
    """

    dtype: _C.dtype
    is_cuda = False
    is_sparse = False
    layout: _dtypes.layout = _dtypes.strided

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
            and not cls.is_cuda
        )

    def __repr__(cls) -> str:
        inside = cls.__module__.removeprefix("clew")
        return f"<class '{_dtypes.home}{inside}.{cls.__name__}'>"

    def _name_on(cls, device: Any) -> str:
        """The type's whole name; raises unless it makes tensors, and on that device."""
        name = f"{cls.__module__}.{cls.__name__}"
        if cls.is_cuda:
            raise TypeError(f"{name}: clew runs on the CPU here; there is no CUDA device")
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(f"{name}: legacy types are on the CPU; got device {device}")
        return name

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """A tensor of the type: empty, of given sizes, or of given values.

        Args:
            args: nothing, sizes, or one sequence, array, storage or tensor of the dtype.
            device: the CPU.
        """
        name = cls._name_on(device)
        if len(args) != 1 or (isinstance(args[0], int) and not isinstance(args[0], bool)):
            return _C.empty(tuple(args) or (0,), dtype=cls.dtype, device="cpu")
        given = args[0]
        if isinstance(given, _C.Size):
            return _C.empty(given, dtype=cls.dtype, device="cpu")
        if isinstance(given, Tensor):
            if given.dtype is not cls.dtype:
                raise TypeError(f"{name}: a tensor must have dtype {cls.dtype}; got {given.dtype}")
            return given.detach()
        if hasattr(given, "untyped"):
            return _C.empty(0, dtype=cls.dtype, device="cpu").set_(given)
        if not hasattr(given, "__len__"):
            raise TypeError(
                f"{name}: expected sizes or a sequence of values; got {type(given).__name__}"
            )
        return _C.tensor(given, dtype=cls.dtype, device="cpu")


class sparsetype(tensortype):
    """The type of types such as sparse.FloatTensor."""

    is_sparse = True
    layout = _dtypes.sparse_coo

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        """A tensor in coordinates: without elements, or of indices and values.

        Args:
            args: nothing, sizes, or indices, values and, if wanted, the size.
            device: the CPU.
        """
        name = cls._name_on(device)
        import clew

        if len(args) in (2, 3) and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
            # As in PyTorch the values keep their dtype, whatever the type says.
            return clew.sparse_coo_tensor(*args)
        sizes = args[0] if len(args) == 1 and isinstance(args[0], _C.Size) else args or (0,)
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in sizes):
            raise TypeError(f"{name}: expected sizes, or tensors of indices and of values")
        return clew.sparse_coo_tensor(tuple(sizes), dtype=cls.dtype)


def _make(
    name: str, dtype: _C.dtype, module: str, is_cuda: bool = False, kind: Any = tensortype
) -> tensortype:
    doc = f"A tensor of {dtype}, by its older name."
    if module == "clew":
        doc += f"\n\n>>> clew.{name}([1, 0]).dtype\n{dtype}\n"
    space = {"__module__": module, "__doc__": doc, "dtype": dtype, "is_cuda": is_cuda}
    made: tensortype = kind(name, (), space)
    return made


for _name, _dtype in _dtypes.TENSOR_DTYPES.items():
    globals()[_name] = _make(_name, _dtype, "clew")


def cuda_type(name: str) -> tensortype:
    """The type of that name on a CUDA device: one may ask for it, calling it raises."""
    dtype = _dtypes.TENSOR_DTYPES.get(name)
    if dtype is None:
        raise AttributeError(f"module 'clew.cuda' has no attribute {name!r}")
    return _make(name, dtype, "clew.cuda", is_cuda=True)


@functools.cache
def sparse_type(name: str, module: str = "clew.sparse", is_cuda: bool = False) -> tensortype:
    """The type of that name for tensors in coordinates."""
    dtype = _dtypes.TENSOR_DTYPES.get(name)
    if dtype is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return _make(name, dtype, module, is_cuda, kind=sparsetype)


def set_default_tensor_type(t: Any, /) -> None:
    """Chooses the default dtype by a type or its name; `set_default_dtype` is the newer way.

    Args:
        t: such as clew.FloatTensor or "clew.DoubleTensor".

    >>> clew.set_default_tensor_type(clew.FloatTensor)
    """
    import clew

    if isinstance(t, str):
        dtype = _dtypes.TENSOR_DTYPES.get(t.rpartition(".")[2])
        if dtype is None or ".cuda." in t:
            raise TypeError(f"set_default_tensor_type: invalid type name {t!r}")
    elif isinstance(t, tensortype) and not t.is_cuda:
        dtype = t.dtype
    else:
        raise TypeError(f"set_default_tensor_type: expected a type such as FloatTensor; got {t!r}")
    clew.set_default_dtype(dtype)


def __getattr__(name: str) -> Any:  # most names here are made in a loop, which type checkers miss
    raise AttributeError(f"module 'clew._ops.legacy' has no attribute {name!r}")
