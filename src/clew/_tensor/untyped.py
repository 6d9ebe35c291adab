"""The bytes behind tensors, as clew.storage offers them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, cast

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.settling import settle
from clew._C import Tensor
from clew._tensor.pickling import copied_storage


class UntypedStorage:
    """Bytes; those of a tensor are shared by all its views.

    Args:
        args: nothing, how many bytes, the values of the bytes, or a tensor whose storage is taken.
        device: the CPU, where storages are.

    Example:
        >>> from clew.storage import UntypedStorage
        >>> s = UntypedStorage([1, 2, 3])
        >>> s[1:].tolist(), len(s)
        ([2, 3], 3)
    """

    __module__ = "clew.storage"

    is_cuda = False
    is_hpu = False
    is_sparse = False
    is_sparse_csr = False

    def __init__(self, *args: Any, device: Any = None) -> None:
        if len(args) > 1:
            raise TypeError(f"UntypedStorage: expected one argument at most; got {len(args)}")
        given = args[0] if args else 0
        if isinstance(given, Tensor):
            if not _C._is_emptied(given):
                settle(given)
            # Not through detach(), which messages would tell of.
            self._bytes = given._storage_bytes()
        elif isinstance(given, int) and not isinstance(given, bool):
            self._bytes = _C.empty(given, dtype=_C.uint8, device=device or "cpu")
        elif isinstance(given, Iterable):
            self._bytes = _C.tensor(list(given), dtype=_C.uint8, device=device or "cpu")
        else:
            raise TypeError(
                "UntypedStorage: expected a number of bytes, bytes or a tensor; got "
                f"{type(given).__name__}"
            )

    @classmethod
    def _over(cls, raw: Tensor) -> UntypedStorage:
        made = cls.__new__(cls)
        made._bytes = raw
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped: pages are read when they are looked at.

        Args:
            filename: the file.
            shared: whether writes go to the file, which is then made as long as nbytes.
            nbytes: how many bytes.
        """
        from clew._ops.memory import from_file

        raw = from_file(os.fspath(filename), shared=shared, size=nbytes, dtype=_C.uint8)
        return cls._over(raw)

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        *,
        dtype: Any = None,
    ) -> UntypedStorage:
        """A copy of the elements in a buffer.

        Args:
            buffer: bytes, or what gives such.
            byte_order: "native", "little" or "big"; it must be said where elements have several.
            count: how many elements; -1 for all.
            offset: bytes before the first one.
            dtype: of the elements; uint8 when None.

        Raises:
            TypeError: no byte order.
            ValueError: another byte order, or fewer bytes than are asked for.

        >>> clew.UntypedStorage.from_buffer(b"abcd", count=2, offset=1).tolist()
        [98, 99]
        """
        dtype = _dtypes.uint8 if dtype is None else dtype
        data, width = bytes(memoryview(buffer).cast("B")), dtype.itemsize
        if byte_order is None and width > 1:
            raise TypeError(
                f"from_buffer: the byte order of {dtype} must be said: 'native', 'little' or 'big'"
            )
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(
                f"from_buffer: byte_order must be 'native', 'little' or 'big'; got {byte_order!r}"
            )
        there = len(data) - offset
        if offset < 0 or there <= 0:
            raise ValueError(
                f"from_buffer: offset must lie within the buffer's {len(data)} bytes; got {offset}"
            )
        if count < 0 and there % width:
            raise ValueError(
                f"from_buffer: {there} bytes are no multiple of the {width} of {dtype}"
            )
        nbytes = there if count < 0 else count * width
        if nbytes > there:
            raise ValueError(
                f"from_buffer: {count} elements take {nbytes} bytes; the buffer has {there}"
            )
        data = data[offset : offset + nbytes]
        if byte_order in ("little", "big") and byte_order != sys.byteorder:
            part = width // 2 if dtype.is_complex else width
            data = b"".join(data[i : i + part][::-1] for i in range(0, nbytes, part))
        return cls(data)

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """Bytes that other processes may map, uninitialised."""
        return cls(size, device=device).share_memory_()

    @property
    def _key(self) -> tuple[int, int, int]:
        return self._bytes._storage_key(), self._bytes.storage_offset(), self._bytes.numel()

    @property
    def _cdata(self) -> int:
        return self._bytes._storage_key()

    @property
    def filename(self) -> str | None:
        """The mapped file's name, which is not kept: None."""
        return None

    @property
    def device(self) -> _C.device:
        """Where the bytes are."""
        return self._bytes.device

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def is_shared(self) -> bool:
        """Whether other processes may map the bytes."""
        return self._bytes.is_shared()

    def share_memory_(self) -> UntypedStorage:
        """Moves the bytes to memory that other processes may map."""
        self._bytes.share_memory_()
        return self

    def __reduce__(self) -> Any:
        return UntypedStorage, (self._bytes,)

    def nbytes(self) -> int:
        """How many bytes."""
        return 0 if _C._is_emptied(self._bytes) else self._bytes.numel()

    size = nbytes

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def element_size(self) -> int:
        """1: an element is a byte."""
        return 1

    def __len__(self) -> int:
        return self.nbytes()

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        return 0 if _C._is_emptied(self._bytes) else self._bytes.data_ptr()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"UntypedStorage: a slice has step 1; got {index.step}")
            return UntypedStorage._over(self._bytes[index])
        return int(self._bytes[index].item())

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value._bytes if isinstance(value, UntypedStorage) else value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Writes another storage's bytes over these; there must be as many.

        Args:
            source: the other storage.
            non_blocking: not used.

        Returns:
            The storage itself.
        """
        self._bytes.copy_(source.untyped()._bytes)
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage._over(self._bytes.clone())

    def fill_(self, value: int) -> UntypedStorage:
        """Makes every byte the same.

        Args:
            value: 0 to 255.

        Returns:
            The storage itself.
        """
        self._bytes.fill_(value)
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Makes the storage as many bytes long. With 0 its memory is given back while tensors
        over it keep their shapes: whoever asks for their elements is told, until the storage is
        resized to what it had, or more, and written anew. It does not get shorter otherwise.

        Args:
            size: how many bytes.

        Returns:
            The storage itself.

        >>> x = clew.ones(3)
        >>> x.untyped_storage().resize_(0).nbytes(), x.shape
        (0, clew.Size([3]))
        >>> _ = x.untyped_storage().resize_(12)
        >>> x.fill_(2.0)
        tensor([2., 2., 2.])
        """
        if not _C._resize_storage(self._bytes, size) or size > self._bytes.numel():
            self._bytes.resize_(size)
        return self

    def byteswap(self, dtype: _C.dtype) -> None:
        """Reverses the bytes of each element, in place.

        Args:
            dtype: of the elements; each part of a complex one is reversed by itself.
        """
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        rows = self._bytes.view(-1, width)
        rows.copy_(rows.flip(1))

    def cpu(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Raises: there is no such device."""
        return UntypedStorage._over(self._bytes.cuda(device))

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The storage itself; another device raises.

        Args:
            device: the CPU.
            non_blocking: not used.
        """
        moved = self._bytes.to(device)
        return self if moved is self._bytes else UntypedStorage._over(moved)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
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

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return UntypedStorage(device=self.device)

    def resizable(self) -> bool:
        """True: every storage may be resized."""
        return True

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the type, or the storage itself.

        Args:
            dtype: None for the name; else UntypedStorage or its name.
            non_blocking: not used.

        Raises:
            TypeError: if `dtype` is another type; `float()` and the like convert.
        """
        name = f"{_dtypes.home}.UntypedStorage"
        if dtype is None:
            return name
        if dtype is UntypedStorage or dtype in (name, f"{_dtypes.home}.storage.UntypedStorage"):
            return self
        raise TypeError(
            f"UntypedStorage.type: bytes are not elements of {dtype!r}; .float() and the like make "
            "one of each byte, TypedStorage(wrap_storage=..., dtype=...) reads them as elements"
        )

    def _elements_as(self, dtype: Any) -> Tensor:
        """What a tensor that is made of the storage holds: its bytes as numbers of a dtype."""
        kind = dtype or _C.int64
        whole = self._bytes.numel() // kind.itemsize * kind.itemsize
        return self._bytes[:whole]._reinterpret(kind).clone()

    def tolist(self) -> list[int]:
        """The bytes' values."""
        return self._bytes.tolist()

    def __bytes__(self) -> bytes:
        return cast(bytes, self._bytes._array_view().tobytes())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        made = memo.get(id(self))
        if made is None:
            raw = self._bytes
            if raw.device.type == "meta" or _C._is_emptied(raw):
                made = self.clone()
            else:
                first = raw.storage_offset()
                copied = copied_storage(raw, memo).data
                made = UntypedStorage._over(copied[first : first + raw.numel()])
            memo[id(self)] = made
        return made

    def __repr__(self) -> str:
        return f"<clew.UntypedStorage of {self.nbytes()} bytes at {self._bytes._address():#x}>"
