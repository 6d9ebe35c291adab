"""The zip container: `data.pkl` with the structure and one uncompressed member a storage.

The layout is the one of PyTorch's files, so that each reads the other's. Nothing in a file is
believed before it is checked against the file's own size: members are uncompressed, lie within
the file and do not overlap.
"""

from __future__ import annotations

import io
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import clew
from clew import Tensor

from .decode import Decoder, PickleReader
from .limits import shown
from .skipping import skipping
from .stretch import Stretch
from .tensors import buffer_of

_ALIGNMENT = 64
_ROOT = "archive"
_READ_PIECE = 1 << 24
_NOT_TOLD = 0  # PyTorch's checksum of members whose bytes it has not summed up


def made_by_pytorch(names: Iterable[str]) -> str | None:
    """Why an archive with these members cannot be read, where PyTorch alone can; else None."""
    inner = [name.partition("/")[2] for name in names]
    if "constants.pkl" in inner:
        kind, loader = "jit.save", "torch.jit.load(path).state_dict()"
    elif any(name.startswith("models/") and name.endswith(".json") for name in inner):
        kind, loader = "export.save", "torch.export.load(path).state_dict"
    else:
        return None
    return (
        f"this is a file of PyTorch's {kind}(), which holds a program in PyTorch's own form; clew "
        f"reads the weights alone: in PyTorch, save {loader} with torch.save()"
    )


class _Onward:
    """A file that is written from its position on and never sought.

    A compressing one cannot be, and one that appends would write what belongs before its end there.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        size = len(data)
        n = self._file.write(data)
        while n is not None and n < size:  # an unbuffered one may take a part
            more = self._file.write(memoryview(data)[n:])
            if more == 0:
                raise OSError(f"save: the file took {n} of {size} bytes")
            n = None if more is None else n + more
        return size

    def flush(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()


def write_encoded(structure: bytes, storages: dict[str, Tensor], file: Any) -> None:
    """Writes a container of an encoded structure and its storages."""
    onward: Any = _Onward(file)
    with zipfile.ZipFile(onward, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, "data.pkl", structure)
        _put(archive, ".format_version", b"1")
        _put(archive, ".storage_alignment", str(_ALIGNMENT).encode())
        _put(archive, "byteorder", sys.byteorder.encode())
        for key, raw in storages.items():
            if skipping.on:
                _put_empty(archive, f"data/{key}", raw.numel())
            else:
                _put(archive, f"data/{key}", buffer_of(raw))
        _put(archive, "version", b"3\n")


def _put(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    info, large = _next_member(archive, name, len(data))
    with archive.open(info, "w", force_zip64=large) as member:
        member.write(data)


def _put_empty(archive: zipfile.ZipFile, name: str, size: int) -> None:
    """A member whose bytes are written later, by others: its checksum is not told."""
    info, large = _next_member(archive, name, size)
    with archive.open(info, "w", force_zip64=large) as member:
        zeros = bytes(min(size, _READ_PIECE))
        for at in range(0, size, _READ_PIECE):
            member.write(zeros[: size - at])
    info.CRC = _NOT_TOLD


def _next_member(archive: zipfile.ZipFile, name: str, size: int) -> tuple[zipfile.ZipInfo, bool]:
    """A member of so many bytes, and whether it needs the fields of large ones."""
    info = zipfile.ZipInfo(f"{_ROOT}/{name}", (1980, 1, 1, 0, 0, 0))
    large = size >= 2**31 - 2**20
    # The member's bytes begin at a multiple of the alignment, so that they can be mapped.
    assert archive.fp is not None
    start = archive.fp.tell() + 30 + len(info.filename) + (20 if large else 0)
    padding = -start % _ALIGNMENT
    if padding:
        padding += _ALIGNMENT if padding < 4 else 0
        info.extra = struct.pack("<2sH", b"FB", padding - 4) + b"Z" * (padding - 4)
    info.file_size = size
    return info, large


def _end_of(file: Any, directory: int, length: int) -> int:
    """Where the archive ends whose directory of members begins there."""
    file.seek(directory)
    at, window = directory, b""
    while piece := file.read(_READ_PIECE):
        window += piece
        found = window.find(b"PK\x05\x06")
        if found >= 0 and len(window) >= found + 22:
            comment = int.from_bytes(window[found + 20 : found + 22], "little")
            return min(at + found + 22 + comment, length)
        kept = window[found:] if found >= 0 else window[-3:]
        at, window = at + len(window) - len(kept), kept
    return length


class Reader(PickleReader):
    """Reads a container.

    Args:
        file: open for reading, seekable.
        place: gives for (raw bytes, location in the file) the tensor to use as the storage.
        path: of the file, where storages are mapped instead of read; None to read.
        encoding: of Python 2's texts.
    """

    def __init__(
        self,
        file: Any,
        place: Callable[[Tensor, str], Tensor],
        path: str | None = None,
        encoding: str = "utf-8",
    ) -> None:
        self.file = file
        self.encoding = encoding
        self.place = place
        self.path = path
        self._loaded: dict[str, Tensor] = {}
        file.seek(0, io.SEEK_END)
        self.length = file.tell()
        file.seek(0)
        try:
            found = zipfile.ZipFile(file)
            # The last of several archives is found first.
            while begin := min((info.header_offset for info in found.infolist()), default=0):
                self.length = begin
                found = zipfile.ZipFile(Stretch(file, 0, begin))
            members = found.infolist()
            self.end = _end_of(file, found.start_dir, self.length)
        except (
            zipfile.BadZipFile,
            struct.error,
            ValueError,
            NotImplementedError,
            OverflowError,
            EOFError,
            OSError,
        ) as error:
            raise RuntimeError(
                f"load: the file cannot be read as an archive ({str(error)[:200]}); it is damaged "
                "or cut off"
            ) from error
        self.members = {info.filename: info for info in members}
        if foreign := made_by_pytorch(self.members):
            raise RuntimeError(f"load: {foreign}")
        total = 0
        for info in members:
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise RuntimeError(
                    f"load: member {shown(info.filename)} is compressed or encrypted; the "
                    "container's members are stored as they are"
                )
            if info.file_size != info.compress_size:
                raise RuntimeError(f"load: member {shown(info.filename)} has two different sizes")
            if not 0 <= info.header_offset < self.length:
                raise RuntimeError(f"load: member {shown(info.filename)} lies outside the file")
            total += info.file_size
        if total > self.length or len(self.members) != len(members):
            raise RuntimeError(
                f"load: the archive's members overlap ({total} bytes announced, {self.length} in "
                "the file)"
            )
        roots = [name for name in self.members if name.endswith("/data.pkl")]
        if "program.json" in self.members and not roots:
            raise RuntimeError(
                "load: the file holds an exported program; read it with clew.export.load(path), or "
                "with clew.jit.load(path) as a module"
            )
        if len(roots) != 1:
            raise RuntimeError("load: the archive has no data.pkl; it was not made by save")
        self.root = roots[0][: -len("data.pkl")]
        if self.root + "byteorder" in self.members:
            order = self.read("byteorder").decode("latin1").strip()
            if order != sys.byteorder:
                raise RuntimeError(
                    f"load: the file's byte order is {shown(order)}; this machine's is "
                    f"{sys.byteorder!r}"
                )

    def structure(self) -> bytes:
        """The pickle of the structure."""
        return self.read("data.pkl")

    def _decoder(self) -> Decoder:
        return Decoder(self.structure(), self.storage, self.encoding)

    def _locate(self, name: str) -> tuple[Any, int]:
        """A member and where its bytes begin in the file."""
        info = self.members.get(self.root + name)
        if info is None:
            raise RuntimeError(f"load: the archive has no member {shown(name)}")
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise RuntimeError(f"load: member {shown(name)} has no header; the file is damaged")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        start = info.header_offset + 30 + name_length + extra_length
        if start + info.file_size > self.length:
            raise RuntimeError(
                f"load: member {shown(name)} should end at byte {start + info.file_size}; the file "
                f"has {self.length}"
            )
        return info, start

    def _fill(self, target: memoryview, info: Any, start: int) -> None:
        self.file.seek(start)
        at, checksum = 0, 0
        while at < len(target):
            piece = target[at : at + _READ_PIECE]
            if hasattr(self.file, "readinto"):
                n = self.file.readinto(piece)
            else:
                data = self.file.read(len(piece))
                n = len(data)
                piece[:n] = data
            if not n:
                raise RuntimeError(f"load: the file ends within member {shown(info.filename)}")
            checksum = zlib.crc32(piece[:n], checksum)
            at += n
        if checksum != info.CRC and info.CRC != _NOT_TOLD:
            raise RuntimeError(
                f"load: the checksum of member {shown(info.filename)} is wrong; the file is damaged"
            )

    def read(self, name: str) -> bytes:
        """The bytes of a member."""
        info, start = self._locate(name)
        out = bytearray(info.file_size)
        self._fill(memoryview(out), info, start)
        return bytes(out)

    def storage(self, key: str, nbytes: int, location: str) -> Tensor:
        """The bytes of a storage as a tensor, read when first asked for."""
        raw = self._loaded.get(key)
        if raw is None:
            info, start = self._locate(f"data/{key}")
            if nbytes > info.file_size:
                raise RuntimeError(
                    f"load: storage {shown(key)} should have {nbytes} bytes; the file has "
                    f"{info.file_size}"
                )
            if skipping.on:
                raw = clew._C.empty(info.file_size, dtype=clew.uint8, device="cpu")
            else:
                raw = self._map(start, info.file_size) if self.path else self._read(info, start)
            raw = self.place(raw, location)
            self._loaded[key] = raw
        elif nbytes > raw.numel():
            raise RuntimeError(
                f"load: storage {shown(key)} should have {nbytes} bytes; the file has {raw.numel()}"
            )
        return raw

    def _read(self, info: Any, start: int) -> Tensor:
        raw = clew._C.empty(info.file_size, dtype=clew.uint8, device="cpu")
        if info.file_size:
            self._fill(buffer_of(raw), info, start)
        return raw

    def _map(self, start: int, size: int) -> Tensor:
        import numpy as np

        if size == 0:
            return clew._C.empty(0, dtype=clew.uint8, device="cpu")
        assert self.path is not None
        # Copy on write: changes stay in memory.
        mapped = np.memmap(self.path, np.uint8, "c", start, (size,))
        return clew.from_numpy(np.asarray(mapped))


def is_archive(head: bytes) -> bool:
    """Whether a file that begins with these bytes may be a container."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def file_size(file: Any) -> int:
    """The length of an open file."""
    # The descriptor of a compressed one is that of another file.
    if isinstance(getattr(file, "raw", file), io.FileIO):
        return os.fstat(file.fileno()).st_size
    at = file.tell()
    file.seek(0, io.SEEK_END)
    size = int(file.tell())
    file.seek(at)
    return size
