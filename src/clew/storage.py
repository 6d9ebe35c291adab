"""The bytes behind tensors: untyped, and seen as elements of a dtype."""

from __future__ import annotations

import copy
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.untyped import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _of_dtype(raw: Tensor, dtype: _C.dtype) -> Tensor:
    """All whole elements of a dtype in the bytes, in the same memory."""
    return raw[: raw.numel() // dtype.itemsize * dtype.itemsize]._reinterpret(dtype)


def _bytes_of(tensor: Tensor) -> UntypedStorage:
    return UntypedStorage(tensor)


class _Kind(type):
    """Classes such as FloatStorage: every TypedStorage of their dtype is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        dtype = cls.__dict__.get("dtype")
        if not isinstance(dtype, _C.dtype):
            return super().__instancecheck__(instance)
        return type.__instancecheck__(TypedStorage, instance) and instance.dtype is dtype


class TypedStorage(metaclass=_Kind):
    """The elements behind a tensor, shared by all its views.

    Args:
        args: nothing, how many elements, or their values.
        wrap_storage: the bytes to look at.
        dtype: the dtype of the elements.
        device: the CPU, where storages are.
        _internal: accepted.

    Example:
        >>> s = clew.tensor([1.0, 2.0]).storage()
        >>> s[1], s.dtype, len(s)
        (2.0, clew.float32, 2)
    """

    is_cuda = False
    is_sparse = False

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        own = type(self).__dict__.get("dtype")
        if isinstance(own, _C.dtype):
            if dtype is not None and dtype is not own:
                raise RuntimeError(f"{type(self).__name__}: the dtype is {own}; got {dtype}")
            dtype = own
        self._dtype: _C.dtype = dtype or _C.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError("TypedStorage: wrap_storage leaves no room for other arguments")
            self._untyped_storage = wrap_storage
            return
        if len(args) > 1:
            raise RuntimeError(
                f"{type(self).__name__}: expected a number of elements or their values in one "
                f"sequence; got {len(args)} arguments"
            )
        given = args[0] if args else 0
        if isinstance(given, UntypedStorage):
            self._untyped_storage = given
        elif isinstance(given, TypedStorage):
            self._untyped_storage = given._untyped_storage
        elif isinstance(given, int) and not isinstance(given, bool):
            self._untyped_storage = UntypedStorage(given * self._dtype.itemsize, device=device)
        else:
            self._untyped_storage = UntypedStorage(_C.tensor(list(given), dtype=self._dtype))

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def _elements(self) -> Tensor:
        return _of_dtype(self._untyped_storage._bytes, self._dtype)

    @property
    def device(self) -> _C.device:
        """Where the elements are."""
        return self._untyped_storage.device

    def resizable(self) -> bool:
        """True: every storage may be resized."""
        return True

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file, mapped; called on a class with a dtype such as FloatStorage.

        Args:
            filename: the file.
            shared: whether writes go to the file, which is then made as long as it must be.
            size: how many elements.
        """
        own = cls.__dict__.get("dtype")
        if not isinstance(own, _C.dtype):
            raise RuntimeError("TypedStorage.from_file: call it on a class such as FloatStorage")
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * own.itemsize))

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, **kwargs: Any) -> TypedStorage:
        """A copy of the elements in a buffer, as `UntypedStorage.from_buffer` gives it.

        Args:
            args, kwargs: the buffer, the byte order, count and offset.
            dtype: of the elements, where the class does not say it.
        """
        own = cls.__dict__.get("dtype")
        kind = own if isinstance(own, _C.dtype) else dtype
        raw = UntypedStorage.from_buffer(*args, dtype=kind, **kwargs)
        return cls(wrap_storage=raw, dtype=kind)

    _from_buffer = from_buffer

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    _untyped = untyped

    def size(self) -> int:
        """How many elements."""
        return self._untyped_storage.nbytes() // self._dtype.itemsize

    __len__ = size
    _size = size

    def nbytes(self) -> int:
        """How many bytes."""
        return self._untyped_storage.nbytes()

    _nbytes = nbytes

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return self._dtype.itemsize

    _element_size = element_size

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("TypedStorage: slices are had of untyped() only")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def _elements_as(self, dtype: Any) -> Tensor:
        if dtype not in (None, self._dtype):
            raise RuntimeError(
                f"tensor: a storage of {self._dtype} cannot be the data of a tensor of {dtype}; "
                "leave dtype out and convert the tensor, or pass untyped() to take the bytes as "
                "they are"
            )
        return self._elements.clone()

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._elements.tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Makes all elements the same.

        Args:
            value: a number.

        Returns:
            The storage itself.
        """
        self._elements.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Writes another storage's elements over these, converted.

        Args:
            source: the other storage, of as many elements.
            non_blocking: not used.

        Returns:
            The storage itself.
        """
        if isinstance(source, TypedStorage):
            self._elements.copy_(source._elements)
        else:
            self._untyped_storage.copy_(source)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._like(self._untyped_storage.clone())

    def _like(self, raw: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=raw, dtype=self._dtype)

    def resize_(self, size: int) -> None:
        """Makes the storage as many elements long.

        Args:
            size: how many elements.
        """
        self._untyped_storage.resize_(size * self._dtype.itemsize)

    def is_shared(self) -> bool:
        """Whether other processes may map the elements."""
        return self._untyped_storage.is_shared()

    _is_shared = is_shared

    def share_memory_(self) -> TypedStorage:
        """Moves the elements to memory that other processes may map."""
        self._untyped_storage.share_memory_()
        return self

    _share_memory_ = share_memory_

    def cpu(self) -> TypedStorage:
        """The storage itself."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Raises: there is no such device."""
        return self._like(self._untyped_storage.cuda(device))

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """A storage over the same elements; another device raises.

        Args:
            device: the CPU.
            non_blocking: not used.
        """
        return self._like(self._untyped_storage.to(device=device))

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The storage itself: without an accelerator there is nothing to pin for.

        Args:
            device: not used.
        """
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned: False, for there is no accelerator.

        Args:
            device: not used.
        """
        return False

    def get_device(self) -> int:
        """-1, as for all that is on the CPU."""
        return -1

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the type, or the elements converted to a dtype.

        Args:
            dtype: a dtype, a storage class such as FloatStorage, or its name; None for the own
                name.
            non_blocking: not used.

        Returns:
            A str, or a TypedStorage.
        """
        if dtype is None:
            return f"{_dtypes.home}.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            dtype = _dtypes.STORAGE_DTYPES.get(dtype.rpartition(".")[2])
        elif isinstance(dtype, _Kind):
            dtype = dtype.__dict__.get("dtype")
        if not isinstance(dtype, _C.dtype):
            raise ValueError(f"TypedStorage.type: unknown type {dtype!r}")
        return self._as(dtype)

    def _as(self, dtype: _C.dtype) -> TypedStorage:
        if dtype is self._dtype:
            return self
        converted = self._elements.to(dtype)
        return TypedStorage(wrap_storage=UntypedStorage(converted), dtype=dtype)

    def pickle_storage_type(self) -> str:
        """The name of the type, such as FloatStorage."""
        return _dtypes.STORAGE_NAMES[self._dtype]

    _pickle_storage_type = pickle_storage_type

    def __reduce__(self) -> Any:
        return _rebuild_typed, (self._untyped_storage, self._dtype)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TypedStorage)
            and self._untyped_storage == other._untyped_storage
            and self._dtype is other._dtype
        )

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        made = memo.get(id(self))
        if made is None:
            made = memo[id(self)] = self._like(copy.deepcopy(self._untyped_storage, memo))
        return made

    def __repr__(self) -> str:
        values = "".join(f" {value}\n" for value in self.tolist())
        kind = f"clew.storage.TypedStorage(dtype={self._dtype}, device={self.device})"
        return f"{values}[{kind} of size {len(self)}]"


def _rebuild_typed(raw: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=raw, dtype=dtype)


def _converter(dtype: _C.dtype, what: str) -> Any:
    def convert(self: TypedStorage | UntypedStorage) -> TypedStorage:
        if isinstance(self, TypedStorage):
            return self._as(dtype)
        converted = self._bytes.to(dtype, copy=True)
        return TypedStorage(wrap_storage=UntypedStorage(converted), dtype=dtype)

    convert.__doc__ = f"The {what} as {dtype}."
    return convert


for _name, _dtype in (
    *_dtypes.CASTS.items(),
    ("complex_float", _dtypes.complex64),
    ("complex_double", _dtypes.complex128),
    ("float8_e4m3fn", _dtypes.float8_e4m3fn),
    ("float8_e5m2", _dtypes.float8_e5m2),
    ("float8_e4m3fnuz", _dtypes.float8_e4m3fnuz),
    ("float8_e5m2fnuz", _dtypes.float8_e5m2fnuz),
):
    setattr(TypedStorage, _name, _converter(_dtype, "elements"))
    setattr(UntypedStorage, _name, _converter(_dtype, "values of the bytes"))

# FloatStorage and the like, the older way to name a storage and its dtype together.
_LegacyStorage = TypedStorage
for _dtype, _name in _dtypes.STORAGE_NAMES.items():
    globals()[_name] = _Kind(
        _name,
        (TypedStorage,),
        {
            "dtype": _dtype,
            "__module__": "clew",
            "__doc__": f"Elements of {_dtype} behind tensors; see `TypedStorage`.\n\n"
            f">>> clew.{_name}([1, 0]).dtype\n{_dtype}\n",
        },
    )


def typed_storage(self: Tensor) -> TypedStorage:
    """The elements behind the tensor.

    >>> clew.ones(2).storage().tolist()
    [1.0, 1.0]
    """
    return TypedStorage(wrap_storage=UntypedStorage(self), dtype=self.dtype)


storage = _typed_storage = typed_storage


def __getattr__(name: str) -> Any:  # most names here are made in a loop, which type checkers miss
    raise AttributeError(f"module 'clew.storage' has no attribute {name!r}")
