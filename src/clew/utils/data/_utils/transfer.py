"""Batches from a worker to the main process: large tensors through memory, not through the pipe.

The bytes of large storages go to one file in memory without a name, whose descriptor follows the
message through the same socket; who reads the message reads them into tensors of its own. Copying
was measured to cost as much as mapping, and so no descriptor stays open with a batch. Whoever is
killed, nothing is left. Where there are no such files or no room, the bytes travel in the message.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from typing import Any, NamedTuple

import clew
from clew._tensor.pickling import _Storage

__all__ = ["Packed", "pack", "receive", "send", "unpack"]

_LEAST = 1 << 16  # bytes; what fits into a pipe at once is faster there
_incoming = threading.local()  # the descriptor that came with the message that is being read


class Packed(NamedTuple):
    """A message; its last byte says whether a descriptor follows."""

    payload: memoryview
    descriptor: int | None


class _Pickler(ForkingPickler):
    def __init__(self, file: Any, outside: list[memoryview] | None) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.outside = outside  # the bytes that are sent apart; None for none
        self.size = 0

    def reducer_override(self, value: Any) -> Any:
        """Storages that are not shared already are sent as bytes; everything else as usual."""
        if type(value) is not _Storage or value.data.is_shared():
            return NotImplemented
        size = value.data.numel()
        if self.outside is None or size < _LEAST:
            return value.__reduce__()
        at, self.size = self.size, self.size + size
        self.outside.append(_bytes_of(value.data))
        return _take, (at, size)


def _bytes_of(data: clew.Tensor) -> memoryview:
    array: Any = data.numpy()
    return memoryview(array).cast("B")


def _take(at: int, size: int) -> _Storage:
    data = clew.empty(size, dtype=clew.uint8)
    target = _bytes_of(data)
    done = 0
    while done < size:
        n = os.preadv(_incoming.descriptor, [target[done:]], at + done)
        if not n:
            raise RuntimeError(f"DataLoader: the memory of a batch is cut off at byte {at + done}")
        done += n
    return _Storage(data)


def _write(parts: list[memoryview]) -> int | None:
    """The descriptor of a new file in memory with these bytes; None if that cannot be."""
    try:
        file = os.memfd_create("clew", os.MFD_CLOEXEC)
    except (OSError, AttributeError):
        return None
    try:
        # Asked for in advance: where there is no room, this is an error and not a signal later.
        os.posix_fallocate(file, 0, sum(map(len, parts)))
        for part in parts:
            done = 0
            while done < len(part):
                done += os.write(file, part[done:])
        return file
    except OSError:
        os.close(file)
        return None


def pack(message: Any) -> Packed:
    """A message for `send`."""
    buffer, outside = io.BytesIO(), list[memoryview]()
    _Pickler(buffer, outside).dump(message)
    descriptor = _write(outside) if outside else None
    if outside and descriptor is None:
        buffer = io.BytesIO()
        _Pickler(buffer, None).dump(message)
    buffer.write(b"\0" if descriptor is None else b"\1")
    return Packed(buffer.getbuffer(), descriptor)


def send(connection: Any, packed: Packed) -> None:
    """Sends a message, once."""
    try:
        connection.send_bytes(packed.payload)
        if packed.descriptor is not None:
            send_handle(connection, packed.descriptor, None)
    finally:
        if packed.descriptor is not None:
            os.close(packed.descriptor)


def receive(connection: Any) -> Packed:
    """The next message; EOFError or ConnectionResetError when the sender has ended."""
    payload = memoryview(connection.recv_bytes())
    if not payload[-1]:
        return Packed(payload, None)
    try:
        return Packed(payload, recv_handle(connection))
    except (RuntimeError, OSError) as error:
        raise EOFError("the sender ended within a message") from error


def unpack(packed: Packed) -> Any:
    """What the message says, once."""
    if packed.descriptor is None:
        return pickle.loads(packed.payload)
    _incoming.descriptor = packed.descriptor
    try:
        return pickle.loads(packed.payload)
    finally:
        del _incoming.descriptor
        os.close(packed.descriptor)
