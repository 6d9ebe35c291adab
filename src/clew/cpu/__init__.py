"""What programs ask of the CPU as a device: there is one, and it has no queue to wait for."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A queue of operations, for programs that ask any device for one; all has ended here.

    Args:
        priority: not used.

    Example:
        >>> clew.cpu.current_stream().wait_stream(clew.cpu.Stream())
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: the other queue's operations have ended.

        Args:
            stream: not used.
        """

    def record_event(self) -> None:
        """Does nothing: there is no place in the queue to mark."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: the event has happened.

        Args:
            event: not used.
        """


class Event:
    """A mark in a queue of operations, which has been reached.

    Example:
        >>> clew.cpu.Event().query()
        True
    """

    def query(self) -> bool:
        """Whether the operations before the mark have ended: yes."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing: where the queue is now, all has ended.

        Args:
            stream: not used.
        """

    def synchronize(self) -> None:
        """Does nothing: the mark has been reached."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing: no operation of the queue is left to hold back.

        Args:
            stream: not used.
        """


_current = Stream()


class StreamContext:
    """Within it `current_stream` is another one.

    Args:
        stream: the stream; None leaves things as they are.

    Example:
        >>> s = clew.cpu.Stream()
        >>> with clew.cpu.StreamContext(s):
        ...     clew.cpu.current_stream() is s
        True
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        self._before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, *exc: object) -> None:
        global _current
        _current = self._before


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `current_stream` is another one.

    Args:
        stream: the stream; None leaves things as they are.

    Example:
        >>> with clew.cpu.stream(clew.cpu.Stream()):
        ...     clew.cpu.synchronize()
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The present queue of operations.

    Args:
        device: not used.

    Example:
        >>> clew.cpu.current_stream() is clew.cpu.current_stream()
        True
    """
    return _current


def is_available() -> bool:
    """Whether there is a CPU: yes.

    Example:
        >>> clew.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether the CPU is in use: yes.

    Example:
        >>> clew.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """How many devices the CPU is: 1.

    Example:
        >>> clew.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """The name of the present device: "cpu".

    Example:
        >>> clew.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: the CPU is one device.

    Args:
        device: not used.

    Example:
        >>> clew.cpu.set_device("cpu")
    """


def synchronize(device: Any = None) -> None:
    """Does nothing: operations have ended when they return.

    Args:
        device: not used.

    Example:
        >>> clew.cpu.synchronize()
    """
