"""Files for the reader that no saving makes: pickles by their opcodes, and containers of them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Iterable
from typing import Any

from clew.serialization import load


def op(*parts: bytes) -> bytes:
    """A pickle of these opcodes."""
    return b"\x80\x02" + b"".join(parts) + b"."


def name(module: str, what: str) -> bytes:
    """The opcodes of a name."""
    return pickle.GLOBAL + f"{module}\n{what}\n".encode()


def text(s: str) -> bytes:
    """The opcodes of a short string."""
    return pickle.SHORT_BINUNICODE + bytes([len(s)]) + s.encode()


def number(n: int) -> bytes:
    """The opcodes of a whole number."""
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def container(
    structure: bytes,
    storages: dict[str, bytes] | Iterable[Any] | None = None,
    compression: int = zipfile.ZIP_STORED,
    **more: bytes,
) -> bytes:
    """A file of a pickle, of storages by their keys, and of further members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("archive/data.pkl", structure)
        for key, data in dict(storages or ()).items():
            archive.writestr(f"archive/data/{key}", data)
        for member, data in more.items():
            archive.writestr(f"archive/{member}", data)
    return file.getvalue()


def pickle_of(data: bytes) -> bytes:
    """The pickle in a file."""
    return zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl")


def storages_of(data: bytes) -> dict[str, bytes]:
    """The storages in a file, by their keys."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    names = [n for n in archive.namelist() if "/data/" in n]
    return {n.rpartition("/")[2]: archive.read(n) for n in names}


def loads(data: bytes, **options: Any) -> Any:
    """What is in a file of these bytes."""
    return load(io.BytesIO(data), **options)
