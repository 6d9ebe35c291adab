"""Readers of the two formats before the zip container: a row of pickles, and a tar archive.

The row holds a magic number, a version, the writer's machine, the structure, the keys of the
storages, and behind them each storage: how many elements (8 bytes), then the elements. The archive
has `storages`, `tensors` and `pickle`; its structure names tensors by number. As in the container,
sizes are checked against the file's before they are believed, and nothing is called.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
import sys
import tarfile
from collections.abc import Callable
from typing import Any, NoReturn

import clew
from clew import Tensor
from clew._base.dtypes import STORAGE_DTYPES
from clew.storage import TypedStorage

from .construct import Name, raw_of, storage_of
from .decode import Decoder, PickleReader
from .limits import Budget, fail, shown
from .tensors import buffer_of, only_bools, view_of, width_of

__all__ = ["MAGIC", "RowReader", "TarReader", "is_tar"]

MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MOST_DIMS = 64
_PIECE = 1 << 24


def is_tar(head: bytes) -> bool:
    """Whether a file that begins with these bytes (262 or more) is a tar archive."""
    return head[257:262] == b"ustar"


class _Part:
    """A stretch of a file as a file of its own: what is announced beyond its end is not there."""

    def __init__(self, file: Any, start: int, size: int, encoding: str) -> None:
        self.file = file
        self.at = start
        self.end = start + size
        self.encoding = encoding
        self._budget = Budget(0)  # of all its small pickles together

    def read(self, n: int = -1) -> bytes:
        left = self.end - self.at
        self.file.seek(self.at)
        out: bytes = self.file.read(left if n < 0 else min(n, left))
        self.at += len(out)
        return out

    def readline(self) -> bytes:
        out = b""
        while not out.endswith(b"\n"):
            piece = self.read(80)
            if not piece:
                return out
            line, end, rest = piece.partition(b"\n")
            out += line + end
            self.at -= len(rest)
            if len(out) > 4096:
                fail("a line does not end")
        return out

    def tell(self) -> int:
        return self.at

    def pickle(self) -> bytes:
        """The next pickle, as bytes."""
        start = self.at
        try:
            for _ in pickletools.genops(self):  # type: ignore[arg-type]
                pass
        except (ValueError, OverflowError, struct.error, MemoryError) as error:
            fail(f"the pickle at byte {start} cannot be read ({str(error)[:200]})")
        size, self.at = self.at - start, start
        return self.read(size)

    def value(self) -> Any:
        """What the next pickle holds, which is plain data."""
        decoder = Decoder(self.pickle(), _no_storage, self.encoding)
        decoder.budget = self._budget
        return decoder.load()

    def numbers(self, count: int) -> tuple[int, ...]:
        """The next integers of eight bytes."""
        raw = self.read(8 * count)
        if len(raw) != 8 * count:
            fail(f"{count} numbers are announced at byte {self.at}; the file ends before")
        return struct.unpack(f"<{count}q", raw)

    def skip(self, size: int, what: str) -> int:
        """Goes past bytes that must be there; says where they begin."""
        start = self.at
        if not 0 <= size <= self.end - start:
            fail(f"{what} should have {size} bytes; the file has {self.end - start} more")
        self.at += size
        return start


def _no_storage(key: str, nbytes: int, location: str) -> NoReturn:
    fail("a storage stands where none is expected")


def _filled(file: Any, start: int, size: int) -> Tensor:
    """Bytes of the file."""
    raw = clew._C.empty(size, dtype=clew.uint8, device="cpu")
    target = buffer_of(raw) if size else memoryview(b"")
    file.seek(start)
    at = 0
    while at < size:
        data = file.read(min(_PIECE, size - at))
        if not data:
            fail(f"the file ends at byte {start + at}")
        target[at : at + len(data)] = data
        at += len(data)
    return raw


class _Structure(Decoder):
    """The structure in such a file, whose storages may be views of others."""

    def persistent(self) -> None:
        pid = self.stack.pop()
        if type(pid) is tuple and pid[:1] == ("module",) and len(pid) == 4:
            self.stack.append(pid[1])  # a class and its source, which is not looked at
            return
        if type(pid) is not tuple or len(pid) != 6:
            fail(f"a storage is given as {shown(pid)}")
        view = pid[5]
        self.stack.append((*pid[:2], str(pid[2]) if type(pid[2]) is int else pid[2], *pid[3:5]))
        super().persistent()
        if view is not None:
            self.stack.append(_part_of(self.stack.pop(), view, pid[4]))


def _part_of(whole: TypedStorage, view: Any, count: int) -> TypedStorage:
    if type(view) is not tuple or len(view) != 3:
        fail(f"the view of a storage is {shown(view)}")
    _, start, size = view
    if type(start) is not int or type(size) is not int or not 0 <= start <= start + size <= count:
        fail(f"a view begins at {shown(start)} and has {shown(size)} of {count} elements")
    width, bytes_ = width_of(whole.dtype), raw_of(whole)
    raw = bytes_[start * width : (start + size) * width]
    if whole.dtype == clew.bool and bytes_.numel():  # once for all views
        if not only_bools(bytes_):
            fail("a storage of bools has bytes that are neither 0 nor 1")
        raw.__dict__["checked"] = True
    return storage_of(raw, whole.dtype)


class _Inventory(_Structure):
    """Goes through the structure for its storages' sizes alone, and makes nothing."""

    def __init__(self, data: bytes, encoding: str) -> None:
        super().__init__(data, self._note, encoding)
        self.sizes: dict[str, int] = {}
        self.unknown = []

    def _note(self, key: str, nbytes: int, location: str) -> Tensor:
        if self.sizes.setdefault(key, nbytes) != nbytes:
            fail(f"storage {shown(key)} has {self.sizes[key]} bytes, and {nbytes} bytes")
        return clew._C.empty(0, dtype=clew.uint8, device="cpu")

    def persistent(self) -> None:
        super().persistent()
        self.stack[-1] = None

    def push_call(self) -> None:
        del self.stack[-2:]
        self.stack.append(None)

    push_new = push_call

    def build(self) -> None:
        self.stack.pop()

    def set_items(self, target: Any, items: list[Any]) -> None:
        pass

    append = add = set_items


class RowReader(PickleReader):
    """Reads a row of pickles with the storages behind.

    Args:
        file: open for reading, seekable.
        size: its length.
        place: gives for (raw bytes, location in the file) the tensor to use as the storage.
        encoding: of Python 2's texts.
    """

    def __init__(
        self,
        file: Any,
        size: int,
        place: Callable[[Tensor, str], Tensor],
        encoding: str = "utf-8",
    ) -> None:
        self.file = file
        self.place = place
        self.encoding = encoding
        self._loaded: dict[str, Tensor] = {}
        part = _Part(file, 0, size, encoding)
        if part.value() != MAGIC:
            raise RuntimeError(
                "load: this is a bare pickle: PyTorch's formats begin with a magic number. Read it "
                "with pickle.load if you trust it"
            )
        version = part.value()
        if version != _VERSION:
            raise RuntimeError(f"load: the format's version is {shown(version)}; 1001 is known")
        machine = part.value()
        little = machine.get("little_endian") if isinstance(machine, dict) else None
        if little is not (sys.byteorder == "little"):
            raise RuntimeError("load: the file was written on a machine of another byte order")
        self._structure = part.pickle()
        keys = part.value()
        if not isinstance(keys, list) or not all(type(k) in (str, int) for k in keys):
            fail(f"the keys of the storages are {shown(keys)}")
        self._places: dict[str, tuple[int, int]] = {}
        if keys:
            inventory = _Inventory(self._structure, encoding)
            inventory.load()
            self._find_storages(part, [str(key) for key in keys], inventory.sizes)
        self.end = part.at

    def _find_storages(self, part: _Part, keys: list[str], sizes: dict[str, int]) -> None:
        for key in keys:
            if key not in sizes or key in self._places:
                fail(f"storage {shown(key)} is not one of the structure's, or is there twice")
            (count,) = part.numbers(1)
            nbytes = sizes[key]
            if count < 0 or nbytes % max(count, 1) or (nbytes > 0) != (count > 0):
                fail(f"storage {shown(key)} should have {nbytes} bytes; it has {count} elements")
            self._places[key] = part.skip(nbytes, f"storage {shown(key)}"), nbytes

    def structure(self) -> bytes:
        """The pickle of the structure."""
        return self._structure

    def _decoder(self) -> Decoder:
        return _Structure(self._structure, self.storage, self.encoding)

    def storage(self, key: str, nbytes: int, location: str) -> Tensor:
        """The bytes of a storage as a tensor, read when first asked for."""
        raw = self._loaded.get(key)
        if raw is None:
            if key not in self._places or self._places[key][1] != nbytes:
                raise RuntimeError(f"load: the file has no storage {shown(key)} of {nbytes} bytes")
            raw = self.place(_filled(self.file, *self._places[key]), location)
            self._loaded[key] = raw
        return raw

    def persistent(self, pid: Any) -> Any:
        """What Python's unpickler asks for by a persistent id."""
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]
        if not isinstance(pid, tuple) or len(pid) != 6 or pid[0] != "storage":
            raise pickle.UnpicklingError("load: the file gives a storage in an unknown form")
        _, kind, key, location, count, view = pid
        dtype = getattr(kind, "dtype", None)
        width = dtype.itemsize if isinstance(dtype, clew.dtype) else 1
        whole = storage_of(self.storage(str(key), count * width, location), dtype)
        found = _part_of(whole, view, count) if view else whole
        return found if dtype else found._untyped_storage


class _Numbered(Decoder):
    """A structure that names its tensors by number."""

    def __init__(self, data: bytes, find: Callable[[Any], Any], encoding: str) -> None:
        super().__init__(data, _no_storage, encoding)
        self._find = find

    def persistent(self) -> None:
        self.stack.append(self._find(self.stack.pop()))


class TarReader(PickleReader):
    """Reads a tar archive.

    Args:
        file: open for reading, seekable.
        size: its length.
        place: gives for (raw bytes, location in the file) the tensor to use as the storage.
        encoding: of Python 2's texts.
    """

    def __init__(
        self,
        file: Any,
        size: int,
        place: Callable[[Tensor, str], Tensor],
        encoding: str = "utf-8",
    ) -> None:
        self.file, self.end = file, size
        self.place = place
        self.encoding = encoding
        self._parts: dict[str, _Part] = {}
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                for member in tar:
                    name = member.name.removeprefix("./")
                    if name not in ("storages", "tensors", "pickle"):
                        continue
                    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                        fail(f"member {name!r} of the archive is no file")
                    if member.size > size - member.offset_data:
                        fail(f"member {name!r} of the archive goes beyond the file's end")
                    self._parts[name] = _Part(file, member.offset_data, member.size, encoding)
        except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
            fail(f"the archive cannot be read ({str(error)[:200]})")
        for name in ("storages", "tensors", "pickle"):
            if name not in self._parts:
                fail(f"the archive has no member {name!r}")
        self._structure = self._parts["pickle"].pickle()
        self._storages: dict[Any, TypedStorage] = {}
        self._tensors: dict[Any, Tensor] = {}

    def structure(self) -> bytes:
        """The pickle of the structure."""
        return self._structure

    def _decoder(self) -> Decoder:
        return _Numbered(self._structure, self.persistent, self.encoding)

    def persistent(self, pid: Any) -> Any:
        """The tensor or storage of a number, or the class of a module."""
        if type(pid) is tuple and len(pid) == 3:
            return pid[0]  # a class and its source, which is not looked at
        self._read_tensors()
        try:
            number = int(pid) if type(pid) in (int, str) else None
        except ValueError:
            number = None
        if number in self._tensors:
            return self._tensors[number]
        fail(f"the structure asks for tensor {shown(pid)}, which the archive does not have")

    def _read_tensors(self) -> None:
        if self._tensors:
            return
        self._read_storages()
        part = self._parts["tensors"]
        for key, of, _ in _entries(part, 3):
            if of not in self._storages:
                fail(f"a tensor is of storage {shown(of)}, which the archive does not have")
            dims = part.numbers(1)[0] & 0xFFFFFFFF  # four bytes, and four that mean nothing
            if dims > _MOST_DIMS:
                fail(f"a tensor has {dims} dims")
            numbers = part.numbers(2 * dims + 1)
            size, stride, offset = numbers[:dims], numbers[dims:-1], numbers[-1]
            storage = self._storages[of]
            what = f"tensor {shown(key)}"
            self._tensors[key] = view_of(raw_of(storage), storage.dtype, size, stride, offset, what)

    def _read_storages(self) -> None:
        part = self._parts["storages"]
        for key, location, kind in _entries(part, 3):
            short = kind.name.rpartition(".")[2] if isinstance(kind, Name) else ""
            if short not in STORAGE_DTYPES or not isinstance(location, str):
                fail(f"a storage has type {shown(kind)} and location {shown(location)}")
            dtype = STORAGE_DTYPES[short]
            nbytes = part.numbers(1)[0] * width_of(dtype)
            start = part.skip(nbytes, f"storage {shown(key)}")
            raw = self.place(_filled(self.file, start, nbytes), location)
            self._storages[key] = storage_of(raw, dtype)
        views = part.value()
        for view in views if isinstance(views, list) else ():
            if type(view) is not tuple or len(view) != 4 or type(view[0]) not in (int, str):
                fail(f"the view of a storage is {shown(view)}")
            key, root, start, size = view
            whole = self._storages.get(root) if type(root) in (int, str) else None
            if whole is None:
                fail(f"a view is of storage {shown(root)}, which the archive does not have")
            count = raw_of(whole).numel() // width_of(whole.dtype)
            self._storages[key] = _part_of(whole, (key, start, size), count)


def _entries(part: _Part, length: int) -> Any:
    """The entries that a member announces: tuples that begin with a number; each is read when the
    one before has been dealt with."""
    part_count = part.value()
    if type(part_count) is not int or part_count < 0:
        fail(f"a member has {shown(part_count)} entries")
    for _ in range(part_count):
        entry = part.value()
        if type(entry) is not tuple or len(entry) != length or type(entry[0]) not in (int, str):
            fail(f"an entry is {shown(entry)}")
        if not isinstance(entry[1], (int, str)):
            fail(f"an entry is {shown(entry)}")
        yield entry
