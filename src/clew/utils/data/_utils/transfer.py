"""Batches from a worker to the main process: large tensors through shared memory, not the pipe.

A storage of some size is written to a file in memory, and the message says its name; who reads
the message reads the file into a tensor of its own and removes it. Without such a file system, or
when it is full, the bytes travel in the message.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import clew
from clew._pickle import _Storage

__all__ = ["pack", "remove_files_of", "unpack"]

_FOLDER = "/dev/shm"
_LEAST = 1 << 16  # bytes; what fits into a pipe at once is faster there
_count = 0


def _write(data: Any) -> str | None:
    """A new file in memory with these bytes; None if that cannot be."""
    global _count
    _count += 1
    path = f"{_FOLDER}/clew-{os.getpid()}-{_count}-{os.urandom(4).hex()}"
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError:
        return None
    try:
        # Asked for in advance: a full file system is an error here and not a signal later.
        os.posix_fallocate(file, 0, len(data))
        done = 0
        while done < len(data):
            done += os.write(file, data[done:])
        return path
    except (OSError, AttributeError):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None
    finally:
        os.close(file)


def _read(path: str, size: int) -> _Storage:
    data = clew.empty(size, dtype=clew.uint8)
    target = memoryview(data.numpy()).cast("B")
    with open(path, "rb", buffering=0) as file:
        os.unlink(path)
        done = 0
        while done < size:
            n = file.readinto(target[done:])
            if not n:
                raise RuntimeError(f"DataLoader: the file of a batch is cut off at byte {done}")
            done += n
    return _Storage(data)


class _Pickler(ForkingPickler):
    def reducer_override(self, value: Any) -> Any:
        """Storages go to files unless they are shared already; everything else as usual."""
        if type(value) is not _Storage or value.data.is_shared():
            return NotImplemented
        if value.data.numel() >= _LEAST:
            path = _write(memoryview(value.data.numpy()).cast("B"))
            if path is not None:
                return _read, (path, value.data.numel())
        return value.__reduce__()


def pack(message: Any) -> Any:
    """The bytes of a message."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getbuffer()


def unpack(data: bytes) -> Any:
    """The message of `pack`, once."""
    return pickle.loads(data)


def remove_files_of(process: int) -> None:
    """Removes what a worker wrote and nobody has read."""
    for path in glob.glob(f"{_FOLDER}/clew-{process}-*"):
        with contextlib.suppress(OSError):
            os.unlink(path)
