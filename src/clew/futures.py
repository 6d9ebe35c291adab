"""Futures: results that another thread or process sets later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that another thread or a callback sets.

    Args:
        devices: the devices that the result may be on; only the CPU is there.

    Example:
        >>> from clew.futures import Future
        >>> f = Future()
        >>> g = f.then(lambda done: done.value() + 1)
        >>> f.set_result(1)
        >>> g.wait()
        2
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._condition = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Whether the result, or an exception, is there."""
        return self._done

    def wait(self) -> Any:
        """The result, once it is there; raises the exception if one was set."""
        with self._condition:
            while not self._done:
                self._condition.wait()
        return self.value()

    def value(self) -> Any:
        """The result, which must be there; raises the exception if one was set."""
        if not self._done:
            raise RuntimeError("Future.value: the result is not there yet; call wait()")
        if self._error is not None:
            raise self._error
        return self._result

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError("Future: the result has been set already")
            self._result, self._error, self._done = result, error, True
            waiting, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in waiting:
            callback(self)

    def set_result(self, result: Any) -> None:
        """Sets the result and runs what waits for it.

        Args:
            result: anything.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception, which `wait` and `value` raise.

        Args:
            result: the exception.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result!r} is of type {type(result)}, not an Exception")
        self._finish(None, result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls something with this future when it is done, or now if it is.

        Args:
            callback: what to call; its result and its exceptions are dropped.
        """

        def call(done: Future) -> None:
            try:
                callback(done)
            except Exception:
                import logging

                logging.getLogger(__name__).exception("a callback of a Future raised")

        with self._condition:
            if not self._done:
                self._callbacks.append(call)
                return
        call(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of the value that ``callback`` returns once this future is done.

        Args:
            callback: takes this future.
        """
        made: Future[Any] = Future()

        def call(done: Future) -> None:
            try:
                result = callback(done)
            except Exception as error:
                made.set_exception(error)
            else:
                made.set_result(result)

        self.add_done_callback(call)
        return made


def collect_all(futures: list[Future]) -> Future:
    """A future of the list, done when all in it are.

    Args:
        futures: to be waited for.

    >>> f = clew.futures.Future()
    >>> f.set_result(1)
    >>> [g.wait() for g in clew.futures.collect_all([f]).wait()]
    [1]
    """
    made: Future[Any] = Future()
    left = [len(futures)]
    lock = threading.Lock()
    if not futures:
        made.set_result([])

    def one_done(_: Future) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made.set_result(futures)

    for future in futures:
        future.add_done_callback(one_done)
    return made


def wait_all(futures: list[Future]) -> list[Any]:
    """The results of all, once they are there.

    Args:
        futures: to be waited for.

    >>> f = clew.futures.Future()
    >>> f.set_result(1)
    >>> clew.futures.wait_all([f])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
