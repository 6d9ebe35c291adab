"""Waiting for what was begun, with a time limit, and noticing ranks that are gone."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from clew.futures import Future

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A request is polled _EAGER times, then with the processor offered to others, and after
# _NAPS_AFTER seconds with naps between. A rank that only polls uses up its share of a busy
# processor and must wait once its message is there; one that naps runs as soon as it wakes. Naps
# grow with the time waited, up to the longest.
_EAGER, _NAPS_AFTER, _NAP, _LONGEST_NAP = 50, 0.0003, 0.00002, 0.0005
# Called with the name of each operation that is started.
watching: list[Callable[[str], None]] = []


def caller() -> str:
    """The innermost line that is not of clew, as "file:line"."""
    frame: Any = sys._getframe(1)
    last = frame
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<frozen"):
            break
        last = frame
        frame = frame.f_back
    frame = frame or last
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _ended_ranks(ranks: list[int]) -> list[tuple[int, str]]:
    folder = os.environ.get("CLEW_LAUNCH_FOLDER")
    if not folder:
        return []
    found = []
    for rank in ranks:
        try:
            with open(os.path.join(folder, f"rank-{rank}.ended")) as file:
                found.append((rank, file.read()))
        except OSError:
            pass
    return found


def wait_for(
    test: Callable[[], Any],
    group: Any,
    what: str,
    limit: float | None,
    notice: Callable[[], None] | None = None,
) -> None:
    """Asks `test` until it says True.

    Args:
        test: whether the operation is complete.
        group: its group.
        what: its name, for messages.
        limit: most seconds.
        notice: called about once a second where it takes long.

    Raises:
        RuntimeError: after the limit, or where a rank of the group has ended meanwhile.
    """
    for _ in range(_EAGER):
        if test():
            return
    start = time.perf_counter()
    look = 2.0
    while not test():
        waited = time.perf_counter() - start
        if waited < _NAPS_AFTER:
            os.sched_yield()
            continue
        time.sleep(min(_LONGEST_NAP, _NAP + waited / 200))
        if limit is not None and waited > limit:
            raise RuntimeError(
                f"distributed.{what}: rank {group.global_rank} of group {group.group_name!r} "
                f"waited {waited:.1f} s at {caller()}, more than the limit of {limit:g} s; another "
                "rank did not come to this operation, or is slow (`timeout=` of "
                "init_process_group and new_group sets the limit; `clew launch --check` compares "
                "what the ranks call)"
            )
        if waited > look:
            look = waited + 1.0
            if notice is not None:
                notice()
            ended = _ended_ranks(group.ranks)
            if ended:
                # What it sent before its end may still be on its way.
                time.sleep(0.2)
                if test():
                    return
                rank, where = ended[0]
                raise RuntimeError(
                    f"distributed.{what}: rank {group.global_rank} waits at {caller()} for rank "
                    f"{rank}, which has ended ({where}); every rank must call the same operations"
                )


class Work:
    """An operation that was started and that `wait()` completes; `async_op=True` gives one.

    Args:
        group: its process group.
        what: its name.
        requests: what to ask whether it is complete.
        finish: what is left to do on this rank then.
        result: the tensors that it fills.
        keep: what must stay alive meanwhile.

    Example:
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> work: dist.Work = dist.all_reduce(clew.ones(2), async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        group: Any,
        what: str,
        requests: list[Any],
        finish: Callable[[], Any] | None = None,
        result: Any = None,
        keep: Any = None,
    ) -> None:
        self._group, self._what, self._finish = group, what, finish
        self._requests = [r for r in requests if r is not None]
        self._result, self._keep = result, keep
        self._source = -1
        for watch in watching:
            watch(what)
        if not self._requests:
            self._end()

    def _end(self) -> None:
        finish, self._finish, self._keep = self._finish, None, None
        if finish is not None:
            finish()

    def wait(self, timeout: Any = None) -> bool:
        """Waits until the tensors hold the result.

        Args:
            timeout: a timedelta; the group's limit if None.

        Returns:
            True.
        """
        if self._requests:
            limit = self._group.limit if timeout is None else timeout.total_seconds()
            while self._requests:
                wait_for(self._requests[-1].Test, self._group, self._what, limit or None)
                self._requests.pop()
            self._end()
        return True

    def is_completed(self) -> bool:
        """Whether it is complete; asking lets the transfer go on."""
        while self._requests:
            if not self._requests[-1].Test():
                return False
            self._requests.pop()
            if not self._requests:
                self._end()
        return True

    def is_success(self) -> bool:
        """Whether it is complete."""
        return self.is_completed()

    def exception(self) -> None:
        """None: what fails raises in `wait()`."""

    def synchronize(self) -> None:
        """Waits."""
        self.wait()

    def source_rank(self) -> int:
        """Who sent, of a message received from anyone."""
        return self._source

    def result(self) -> Any:
        """The tensors that it fills."""
        self.wait()
        return self._result

    def get_future(self) -> Any:
        """The result as a Future, which completes the operation when it is asked."""
        return LazyFuture(lambda: self.wait() and self._result, self.is_completed)


class LazyFuture(Future):
    """A Future whose value is made when somebody asks for it.

    Args:
        make: gives the value.
        ready: whether that would not wait.
    """

    def __init__(self, make: Callable[[], Any], ready: Callable[[], bool]) -> None:
        super().__init__()
        self._make, self._ready, self._made = make, ready, False

    def wait(self) -> Any:
        """The value."""
        if not self._made:
            self._made = True
            try:
                self.set_result(self._make())
            except Exception as error:
                self.set_exception(error)
        return Future.value(self)

    def value(self) -> Any:
        """The value."""
        return self.wait()

    def done(self) -> bool:
        """Whether the value would be there at once."""
        return self._made or self._ready()

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """A Future of what a function makes of this one."""

        def make() -> Any:
            self.wait()
            return callback(self)

        return LazyFuture(make, self.done)
