"""A stretch of an open file as a file of its own."""

from __future__ import annotations

import io
from typing import Any


class Stretch(io.RawIOBase):
    """The bytes of a file from one place to another.

    Args:
        file: open for reading, seekable.
        start: the first byte.
        size: how many there are.
    """

    def __init__(self, file: Any, start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"seek: {offset} from {base} is before the first byte")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._at, 0)
        self._file.seek(self._start + self._at)
        found: bytes = self._file.read(left if size is None or size < 0 else min(size, left))
        self._at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)
