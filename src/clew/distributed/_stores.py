"""Stores: keys and bytes that processes tell each other."""

from __future__ import annotations

import base64
import datetime
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any


class DistError(RuntimeError):
    """What fails between processes."""


class DistStoreError(DistError):
    """A store did not get in time what was asked of it."""


class DistNetworkError(DistError):
    """A process could not be reached."""


class DistBackendError(DistError):
    """What carries the data failed."""


class QueueEmptyError(DistStoreError):
    """A store's queue has nothing to take."""


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"Store.{name}: the value must be str or bytes; got {type(value).__name__}")


_TIMEOUT = datetime.timedelta(seconds=300)  # of every store, as in PyTorch


class Store:
    """A table of keys and bytes that processes share: HashStore, FileStore, TCPStore, PrefixStore.

    Subclasses define `_change(name, *args)`, which carries out one operation while no other runs.

    Example:
        >>> import clew.distributed as dist
        >>> store: dist.Store = dist.HashStore()
        >>> store.set("lr", "0.1")
        >>> store.get("lr")
        b'0.1'
    """

    def __init__(self) -> None:
        self.timeout = _TIMEOUT

    def _change(self, name: str, *args: Any) -> Any:
        raise NotImplementedError("Store: use HashStore, FileStore, TCPStore or PrefixStore")

    def set(self, key: str, value: Any) -> None:
        """Stores a value.

        Args:
            key: its key.
            value: bytes, or a str.

        Raises:
            TypeError: for something else.
        """
        self._change("set", key, _bytes("set", value))

    def get(self, key: str) -> bytes:
        """The value of a key; waits until it is there.

        Args:
            key: its key.

        Returns:
            Bytes.

        Raises:
            DistStoreError: after the store's time limit.
        """
        self.wait([key])
        value: bytes = self._change("get", key)
        return value

    def add(self, key: str, amount: int) -> int:
        """Adds to a number that the store keeps under a key, 0 at first.

        Args:
            key: its key.
            amount: what is added.

        Returns:
            The sum.
        """
        return int(self._change("add", key, amount))

    def append(self, key: str, value: Any) -> None:
        """Adds bytes to the end of a value, empty at first.

        Args:
            key: its key.
            value: bytes, or a str.

        Raises:
            TypeError: for something else.
        """
        self._change("append", key, _bytes("append", value))

    def check(self, keys: list[str]) -> bool:
        """Whether all keys have values, without waiting.

        Args:
            keys: their names.
        """
        return bool(self._change("check", list(keys)))

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        """Stores a value if the present one is as expected.

        Args:
            key: its key.
            expected: the value that must be there; empty also stands for a key without one.
            desired: the new value.

        Returns:
            The value after the call; `expected` where the key has none and `expected` is not empty.
        """
        old, new = (_bytes("compare_set", v) for v in (expected, desired))
        value: bytes = self._change("compare_set", key, old, new)
        return value

    def delete_key(self, key: str) -> bool:
        """Removes a key.

        Args:
            key: its name.

        Returns:
            Whether it was there.
        """
        return bool(self._change("delete_key", key))

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._change("num_keys"))

    def list_keys(self) -> list[str]:
        """The keys; those of a PrefixStore without their prefix."""
        return list(self._change("list_keys"))

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values of several keys; waits for each.

        Args:
            keys: their names.
        """
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        """Stores several values, one after another.

        Args:
            keys: their keys.
            values: one for each key.
        """
        for key, value in zip(keys, values):
            self.set(key, value)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Sets the longest wait of `get` and `wait`.

        Args:
            timeout: a timedelta.
        """
        self.timeout = timeout

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are there: yes."""
        return True

    def clone(self) -> Store:
        """The same table; this store may be used from several threads as it is."""
        return self

    def queue_push(self, key: str, value: Any) -> None:
        """Adds a value to the end of a queue, which has keys of its own.

        Args:
            key: the queue's key.
            value: bytes, or a str.
        """
        self._change("push", key, _bytes("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first value of a queue.

        Args:
            key: the queue's key.
            block: wait until there is one.

        Returns:
            Bytes.

        Raises:
            QueueEmptyError: if there is none and block is False.
            DistStoreError: after the store's time limit.
        """
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            value: Any = self._change("pop", key)
            if value is not None:
                return bytes(value)
            if not block:
                raise QueueEmptyError(f"Store.queue_pop: the queue {key!r} is empty")
            if time.monotonic() > end:
                raise DistStoreError(f"Store.queue_pop: nobody put anything into {key!r} in time")
            time.sleep(0.005)

    def queue_len(self, key: str) -> int:
        """How many values a queue has.

        Args:
            key: the queue's key.
        """
        return int(self._change("length", key))

    def wait(self, keys: list[str], timeout: Any = None) -> None:
        """Waits until all keys have values.

        Args:
            keys: their names.
            timeout: the longest wait, a timedelta; the store's if None.

        Raises:
            DistStoreError: after that time.
        """
        limit = (timeout or self.timeout).total_seconds()
        end = time.monotonic() + limit
        while not self.check(keys):
            if time.monotonic() > end:
                raise DistStoreError(f"Store.wait: nobody told all of {keys} within {limit:g} s")
            time.sleep(0.005)


def _apply(table: dict[str, bytes], name: str, args: Any) -> Any:
    if name == "set":
        table[args[0]] = args[1]
    elif name == "get":
        return table.get(args[0], b"")
    elif name == "add":
        total = int(table.get(args[0], b"0")) + args[1]
        table[args[0]] = str(total).encode()
        return total
    elif name == "append":
        table[args[0]] = table.get(args[0], b"") + args[1]
    elif name == "check":
        return all(key in table for key in args[0])
    elif name == "compare_set":
        key, expected, desired = args
        if key not in table and expected != b"":
            return expected
        if table.get(key, b"") == expected:
            table[key] = desired
        return table[key]
    elif name == "delete_key":
        return table.pop(args[0], None) is not None
    elif name == "num_keys":
        return len(table)
    elif name == "list_keys":
        return list(table)
    elif name in ("push", "pop", "length"):
        return _queue(table, name, *args)
    return None


def _queue(table: dict[str, bytes], name: str, key: str, value: bytes = b"") -> Any:
    """A queue: the numbers of its first value and of the next one, and a key for each value."""
    ends = f"{key}\0queue"
    first, after = (int(n) for n in table.get(ends, b"0 0").split())
    if name == "length":
        return after - first
    if name == "pop":
        if first == after:
            return None
        got = table.pop(f"{ends}{first}")
        first += 1
    else:
        got = table[f"{ends}{after}"] = value
        after += 1
    table[ends] = f"{first} {after}".encode()
    if first == after:
        del table[ends]
    return got if name == "pop" else None


class HashStore(Store):
    """A store in memory, shared by the threads of this process.

    Example:
        >>> import clew.distributed as dist
        >>> store = dist.HashStore()
        >>> store.add("steps", 2), store.add("steps", 3)
        (2, 5)
        >>> store.check(["steps", "lr"])
        False
    """

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def _change(self, name: str, *args: Any) -> Any:
        with self._lock:
            return _apply(self._table, name, args)


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    return value


def _decode(value: Any) -> Any:
    return base64.b64decode(value["b"]) if isinstance(value, dict) else value


class FileStore(Store):
    """A store in a file, shared by the processes that can open it.

    Args:
        file_name: its path; the file is made by the first use.
        world_size: how many processes use it; kept as an attribute only.

    Example:
        >>> import clew.distributed as dist, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "store")
        >>> dist.FileStore(path).set("lr", "0.1")
        >>> dist.FileStore(path).get("lr")
        b'0.1'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path, self.world_size = file_name, world_size

    def _change(self, name: str, *args: Any) -> Any:
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            table = {k: _decode(v) for k, v in json.loads(text or "{}").items()}
            result = _apply(table, name, args)
            if name not in ("get", "check", "num_keys", "length"):
                file.seek(0)
                file.truncate()
                json.dump({k: _encode(v) for k, v in table.items()}, file)
            return result


class TCPStore(Store):
    """A store that one process keeps and serves to the others, over `multiprocessing.connection`.

    Args:
        host_name: the machine of the serving process.
        port: its port; 0 for any free one, which `port` of the serving store then tells.
        world_size: how many processes use it; None for any number.
        is_master: whether this process serves it.
        timeout: how long waits may take, a timedelta; five minutes if not given.
        wait_for_workers: wait until `world_size` processes have connected.
        args: further options of PyTorch's server, which are not used.

    Raises:
        DistNetworkError: if nobody serves the address within the time limit.
        DistStoreError: if too few processes come within it.

    Example:
        >>> import clew.distributed as dist
        >>> store = dist.TCPStore("127.0.0.1", is_master=True)
        >>> client = dist.TCPStore("127.0.0.1", store.port)
        >>> store.set("lr", "0.1")
        >>> client.get("lr")
        b'0.1'
    """

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: Any = _TIMEOUT,
        wait_for_workers: bool = True,
        **args: Any,
    ) -> None:
        super().__init__()
        from multiprocessing import connection

        self.host, self.timeout = host_name, timeout
        self._lock = threading.Lock()
        if is_master:
            listener = connection.Listener((host_name, port), backlog=256)
            port = listener.address[1]
            served = HashStore()
            threading.Thread(target=_serve, args=(listener, served), daemon=True).start()
        self.port = port
        end = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                self._connection = connection.Client((host_name, port))
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(f"TCPStore: nobody serves {host_name}:{port}") from error
                time.sleep(0.02)
        if world_size and world_size > 0 and wait_for_workers:
            self.add("clew/workers", 1)
            while self.add("clew/workers", 0) < world_size:
                if time.monotonic() > end:
                    raise DistStoreError(f"TCPStore: fewer than {world_size} processes came")
                time.sleep(0.005)

    def _change(self, name: str, *args: Any) -> Any:
        with self._lock:
            message = json.dumps([name, [_encode(a) for a in args]])
            self._connection.send_bytes(message.encode())
            return _decode(json.loads(self._connection.recv_bytes()))


def _serve(listener: Any, store: HashStore) -> None:
    def answer(connection: Any) -> None:
        try:
            while True:
                name, args = json.loads(connection.recv_bytes())
                result = store._change(name, *[_decode(a) for a in args])
                connection.send_bytes(json.dumps(_encode(result)).encode())
        except (EOFError, OSError):
            pass

    while True:
        try:
            connection = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


class PrefixStore(Store):
    """Another store with a prefix to all keys.

    Args:
        prefix: the prefix.
        store: the other store.

    Example:
        >>> import clew.distributed as dist
        >>> table = dist.HashStore()
        >>> dist.PrefixStore("a", table).set("lr", "0.1")
        >>> table.get("a/lr")
        b'0.1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self._prefix, self.underlying_store = f"{prefix}/", store

    @property
    def timeout(self) -> Any:
        """How long waits may take: the other store's limit."""
        return self.underlying_store.timeout

    @timeout.setter
    def timeout(self, timeout: Any) -> None:
        self.underlying_store.timeout = timeout

    def _change(self, name: str, *args: Any) -> Any:
        if name == "list_keys":
            keys = self.underlying_store._change(name)
            return [k.removeprefix(self._prefix) for k in keys if k.startswith(self._prefix)]
        if name != "num_keys":
            first = args[0]
            with_prefix: Callable[[str], str] = lambda key: self._prefix + key  # noqa: E731
            first = [*map(with_prefix, first)] if isinstance(first, list) else with_prefix(first)
            args = (first, *args[1:])
        return self.underlying_store._change(name, *args)
