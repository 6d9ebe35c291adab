"""Saved tensors on disk: written behind forward's back, read ahead of backward."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import tempfile
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from clew import _C, Tensor
from clew._base.sizes import bytes_or_fraction
from clew.autograd._layout import Layout
from clew.autograd.grad_mode import no_grad
from clew.autograd.graph import saved_tensors_hooks

__all__ = ["offload"]

_IN_FLIGHT = 256 << 20  # bytes that wait to be written, or were read ahead


class _Entry:
    """One saved tensor: its bytes, in memory until they are written, or in the file."""

    __slots__ = (
        "__weakref__", "data", "error", "file", "nbytes", "number", "offset", "reading", "written",
    )  # fmt: skip

    def __init__(self, number: int, file: _File, data: Any, nbytes: int) -> None:
        self.number = number
        self.file = file
        self.data: Any = data  # uint8 array, or None when only the file has the bytes
        self.nbytes = nbytes
        self.offset = -1
        self.error: BaseException | None = None
        self.written = threading.Event()
        self.reading: threading.Event | None = None


def open_file(who: str, directory: str | None) -> Any:
    """A file without a name in a directory.

    Raises:
        OSError: the directory takes no files.
    """
    try:
        return tempfile.TemporaryFile(dir=directory, prefix="clew-offload-")
    except OSError as error:
        where = "the system's folder for temporary files" if directory is None else repr(directory)
        raise type(error)(
            error.errno,
            f"{who}: no file can be made in {where} ({error.strerror}); name a directory that can "
            "be written",
        ) from error


class _File:
    """A file that has no name any more: it goes with the process, however that ends.

    Args:
        directory: where it lies.
        lost: what to say, and to do, where bytes that were written are not there any more.
    """

    def __init__(
        self, directory: str | None, lost: str = "the saved tensor does; run forward again"
    ) -> None:
        self._lost = lost
        self._file = open_file("offload", directory)
        closing = weakref.finalize(self, self._file.close)
        closing.atexit = False  # threads may write until the end
        self._free: dict[int, list[int]] = {}  # offsets by size
        self._end = 0
        self._written = 0  # the file is at least so long
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> int:
        with self._lock:
            free = self._free.get(nbytes)
            if free:
                return free.pop()
            self._end += nbytes
            return self._end - nbytes

    def give(self, offset: int, nbytes: int) -> None:
        with self._lock:
            self._free.setdefault(nbytes, []).append(offset)

    def name(self) -> str:
        """Where the file lies, for messages."""
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/self/fd/{self._file.fileno()}")
        return "without a name"

    def write(self, data: Any, offset: int) -> None:
        left = memoryview(data)
        with self._lock:
            if os.fstat(self._file.fileno()).st_size < self._written:
                # What is written now would make it long enough again, with zeros before.
                raise OSError(f"the file {self.name()} was cut off")
        while left:
            done = os.pwrite(self._file.fileno(), left, offset)
            if done <= 0:
                raise OSError(f"the file {self.name()} takes no more bytes")
            left, offset = left[done:], offset + done
        with self._lock:
            self._written = max(self._written, offset)

    def read(self, nbytes: int, offset: int) -> Any:
        data = np.empty(nbytes, np.uint8)
        left = data.data
        while left:
            done = os.preadv(self._file.fileno(), [left], offset)
            if done <= 0:
                raise OSError(
                    f"offload: the file {self.name()} ends before {self._lost}, "
                    "with a directory whose files nobody else changes"
                )
            left, offset = left[done:], offset + done
        return data


class _Staying:
    """Entries that stay in memory: those saved last, which backward needs first."""

    def __init__(self, keep: int | float) -> None:
        self.keep = keep  # bytes; a float is a fraction of what is saved
        self.sizes: OrderedDict[int, int] = OrderedDict()  # by the entry's number, in order
        self.bytes = 0
        self.saved = 0  # bytes of all entries that are alive
        self.lock = threading.RLock()  # entries may die whenever the collector runs

    def add(self, number: int, nbytes: int) -> list[int]:
        """The numbers of those that are to be written now, this one perhaps among them."""
        with self.lock:
            self.saved += nbytes
            most = self.keep if isinstance(self.keep, int) else int(self.keep * self.saved)
            if nbytes > most:
                return [number]
            self.sizes[number] = nbytes
            self.bytes += nbytes
            gone = []
            while self.bytes > most:
                earliest, size = self.sizes.popitem(last=False)
                self.bytes -= size
                gone.append(earliest)
            return gone

    def dies(self, number: int, nbytes: int) -> None:
        with self.lock:
            self.saved -= nbytes
            self.bytes -= self.sizes.pop(number, 0)


class _Store:
    """Writes entries in the order in which they were saved; reads them in the other order."""

    def __init__(
        self, directory: str | None, threads: int, most: int, keep: int | float = 0
    ) -> None:
        self.directory = directory
        self.most = most
        self.keep = keep
        self.thread_count = threads
        self.warned = False
        self.count = 0
        self._begin()

    def _begin(self) -> None:
        self.process = os.getpid()
        self.file = _File(self.directory)
        self.lock = threading.Condition()
        self.in_flight = 0  # bytes that wait to be written
        self.read_ahead = 0  # bytes that were read and not used up
        self.entries: OrderedDict[int, weakref.ref[_Entry]] = OrderedDict()
        self.staying = _Staying(self.keep)
        self.work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.working = False

    def _start(self) -> None:
        """Starts the threads, with the first tensor: where none is large enough there are none."""
        self.working = True
        for _ in range(self.thread_count):
            threading.Thread(
                target=_work, args=(self.work,), daemon=True, name="clew-offload"
            ).start()
        weakref.finalize(self, _close, self.work, self.thread_count)

    def _begin_after_fork(self) -> None:
        """A forked child has none of the threads, and its parent goes on writing to the file."""
        if self.process != os.getpid():
            self._begin()

    def save(self, data: Any, nbytes: int) -> _Entry:
        self._begin_after_fork()
        with self.lock:
            self.count += 1
            number, entries, staying = self.count, self.entries, self.staying
        entry = _Entry(number, self.file, data, nbytes)

        def dies(_: object) -> None:
            entries.pop(number, None)
            staying.dies(number, nbytes)

        entries[number] = weakref.ref(entry, dies)
        for each in staying.add(number, nbytes):
            self._send(each)
        return entry

    def _send(self, number: int) -> None:
        """Has an entry written; waits while too many bytes are on their way."""
        watch = self.entries.get(number)
        entry = watch() if watch is not None else None
        if watch is None or entry is None:
            return
        with self.lock:
            while self.in_flight and self.in_flight + entry.nbytes > self._most_now():
                self.lock.wait()
            if not self.working:
                self._start()
            self.in_flight += entry.nbytes
        self.work.put(functools.partial(self._write, watch, entry.nbytes))

    def _most_now(self) -> int:
        """Bytes that may wait to be written: in a memory budget, where they count, a quarter of the
        room that there would be without them.
        """
        limit = _C._budget_counts()[0]
        others = _C._memory_stats()["live_bytes"] - self.in_flight
        return min(self.most, max(limit - others, 0) // 4)

    def _write(self, watch: weakref.ref[_Entry], nbytes: int) -> None:
        entry = watch()
        try:
            if entry is not None:
                offset = self.file.take(nbytes)
                weakref.finalize(entry, self.file.give, offset, nbytes)
                self.file.write(entry.data, offset)
                entry.offset = offset
                entry.data = None
        except BaseException as error:
            if not self.warned:
                self.warned = True
                warnings.warn(
                    f"offload: a saved tensor could not be written ({error}); such ones stay in "
                    "memory. Make room, or name another directory",
                    RuntimeWarning,
                    stacklevel=1,
                )
        finally:
            if entry is not None:
                entry.written.set()
            self._landed(nbytes)

    def _landed(self, nbytes: int) -> None:
        with self.lock:
            self.in_flight -= nbytes
            self.lock.notify_all()

    def load(self, entry: _Entry) -> Any:
        """The bytes; those that were saved before are read ahead meanwhile."""
        self._begin_after_fork()
        data = entry.data
        if data is None and entry.file is not self.file:
            raise RuntimeError(
                "offload: a saved tensor lies in the file of the process that this one was forked "
                "from; go backward there, or run forward again here"
            )
        self._read_ahead(entry.number)
        data = entry.data
        if data is None and entry.reading is not None:
            entry.reading.wait()
            data = entry.data
        if data is None and entry.error is not None:
            raise entry.error
        if data is None:
            data = self.file.read(entry.nbytes, entry.offset)
        return data

    def _read_ahead(self, number: int) -> None:
        with self.lock:
            ahead = 0
            for earlier in range(number - 1, max(number - 65, 0), -1):
                ref = self.entries.get(earlier)
                entry = ref() if ref is not None else None
                if ref is None or entry is None:
                    continue
                if entry.data is not None or entry.reading is not None or entry.offset < 0:
                    continue
                ahead += 1
                if ahead > 8 or self.read_ahead + entry.nbytes > self.most:
                    return
                self.read_ahead += entry.nbytes
                entry.reading = threading.Event()
                self.work.put(functools.partial(self._read, ref, entry.nbytes))

    def _used_up(self, nbytes: int) -> None:
        with self.lock:
            self.read_ahead -= nbytes

    def _read(self, watch: weakref.ref[_Entry], nbytes: int) -> None:
        entry = watch()
        if entry is None:
            self._used_up(nbytes)
            return
        weakref.finalize(entry, self._used_up, nbytes)
        try:
            entry.data = self.file.read(entry.nbytes, entry.offset)
        except BaseException as error:
            entry.error = error
        finally:
            assert entry.reading is not None
            entry.reading.set()


def _work(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it holds the store, whose end ends this thread


def _close(jobs: queue.SimpleQueue[Callable[[], None] | None], threads: int) -> None:
    for _ in range(threads):
        jobs.put(None)


class _Packed:
    """What a node keeps instead of the tensor."""

    __slots__ = ("entry", "layout")

    def __init__(self, entry: _Entry, layout: Layout) -> None:
        self.entry, self.layout = entry, layout


def check_options(
    directory: Any, *, threads: int, least: int, in_flight: int, keep: object
) -> tuple[str | None, int | float]:
    """The directory as text, and bytes to keep or a fraction.

    Raises:
        ValueError: a number is too small, or a text is no size.
        TypeError: the directory is no path, or `keep` is no amount.
        NotADirectoryError: there is no such directory.
    """
    for name, value, lowest in (
        ("threads", threads, 1), ("least", least, 0), ("in_flight", in_flight, 1),
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ValueError(f"offload: {name} must be an int of at least {lowest}; got {value!r}")
    kept = 0 if keep is None else bytes_or_fraction("offload", "keep", keep, least=0)
    return path_of("offload", directory), kept


def path_of(who: str, directory: Any) -> str | None:
    """A directory that is there, as text."""
    if directory is None:
        return None
    if not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"{who}: a directory must be a path; got {type(directory).__name__}")
    found = os.fspath(directory)
    if not os.path.isdir(found):
        raise NotADirectoryError(f"{who}: {found!r} is no directory")
    return found


class offload(saved_tensors_hooks):
    """Puts what forward saves for backward into a file, until backward asks for it.

    A thread writes it while forward goes on, and reads it ahead in the order in which backward
    will ask. The file has no name: it goes with the process, however that ends. Gradients have the
    same bits as without.

    Args:
        directory: where the file lies; the system's folder for temporary files, if None.
        threads: how many write and read.
        least: tensors of fewer bytes stay in memory, and so do leaves (parameters are there
            anyway).
        in_flight: bytes that may wait to be written or were read ahead; forward waits when there
            are more. In a memory budget fewer may.
        keep: bytes of saved tensors that stay in memory: a number, text like "200 MB", or a
            fraction up to 1.0 of what is saved. None: all go to the file.

    Raises:
        OSError: in backward, when bytes could not be read. Those that could not be written (a full
            disk) stay in memory, with a warning.

    >>> model = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    >>> with clew.offload():
    ...     loss = model(clew.ones(512, 256)).sum()
    >>> loss.backward()
    >>> model[0].weight.grad.shape
    clew.Size([256, 256])
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        threads: int = 1,
        least: int = 1 << 16,
        in_flight: int = _IN_FLIGHT,
        keep: int | float | str | None = None,
    ) -> None:
        directory, kept = check_options(
            directory, threads=threads, least=least, in_flight=in_flight, keep=keep
        )
        self._store = _Store(directory, threads, in_flight, kept)
        # The hooks do not hold this object: the threads end when the last graph goes, without the
        # collector.
        super().__init__(
            functools.partial(_pack, self._store, least), functools.partial(_unpack, self._store)
        )


def _pack(store: _Store, least: int, t: Tensor) -> Any:
    nbytes = t.numel() * t.element_size()
    if nbytes < least or t.device.type != "cpu" or (t.is_leaf and t.requires_grad):
        return t
    layout = Layout(t)
    with no_grad():
        own = layout.copy(t)
    nbytes = own.numel() * own.element_size()  # fewer where the tensor is expanded
    entry = store.save(own.reshape(-1).view(_C.uint8)._array_view(), nbytes)
    return _Packed(entry, layout)


def _unpack(store: _Store, packed: Any) -> Tensor:
    if not isinstance(packed, _Packed):
        return packed
    data = store.load(packed.entry)
    return packed.layout.restore(_C.from_numpy(data).view(packed.layout.dtype))
