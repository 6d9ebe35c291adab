"""What held memory when most of it was held, of a whole program: `clew run --memory`."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from clew import _C
from clew._insight.debug.memory import MemoryTable, amount, memory_of
from clew._insight.debug.observing import Observation
from clew._insight.debug.place import here

__all__ = ["PeakWatch"]

_GROWTH = 1.03  # a new table is made when so much more is alive than in the last one
_SHARE = 0.05  # of the time so far, which tables may take besides
_SMALL = 1 << 20  # of fewer bytes tables are made more rarely
_SMALL_GROWTH = 1.5


class PeakWatch:
    """Looks at memory after each operation of forward and around steps; keeps the highest table.

    The peak is the allocator's; the table is of the highest moment that was looked at. Looking
    inside of backward would change what backward may write over, so there it is not done.

    Attributes:
        table: who held memory at the highest moment that was looked at.
        place: the line that ran then.
        peak: the most bytes that were live.
    """

    def __init__(self) -> None:
        self.table = MemoryTable()
        self.place: Any = None
        self.peak = 0
        self._status = 0
        self._live = 0  # when the table was made
        self._spent = 0.0
        self._started = time.perf_counter()
        self._undo: list[Any] = []
        self._profiles = False  # whether new threads tell when they begin

    def __enter__(self) -> PeakWatch:
        from clew.optim import optimizer

        self._observation = Observation(self._look, _C.functions)
        self._profiles = threading.getprofile() is None
        if self._profiles:
            threading.setprofile(self._begin_thread)
        self._undo = [
            optimizer.register_optimizer_step_pre_hook(self._look),
            optimizer.register_optimizer_step_post_hook(self._look),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        self._observation.close()
        if self._profiles and threading.getprofile() == self._begin_thread:
            threading.setprofile(None)
        for handle in self._undo:
            handle.remove()
        self.peak = max(self.peak, _C._memory_stats()["peak_bytes"])
        if self._status and not self.peak:
            return  # the error that was printed tells all
        sys.stdout.flush()
        print(self, file=sys.stderr)

    def ended(self, status: int) -> None:
        """The program returned; of one that failed before its first tensor nothing is printed.

        Args:
            status: its exit status.
        """
        self._status = status

    def _begin_thread(self, *_: Any) -> None:
        """A new thread calls its first function: its operations are looked at, too."""
        sys.setprofile(None)
        Observation(self._look, _C.functions)

    def _look(self, *_: Any) -> None:
        stats = _C._memory_stats()
        live = stats["live_bytes"]
        self.peak = max(self.peak, stats["peak_bytes"])
        if live <= self._live:
            return
        now = time.perf_counter()
        growth = _GROWTH if live > _SMALL else _SMALL_GROWTH
        if live < growth * self._live and self._spent > _SHARE * (now - self._started):
            return
        self.table, self._live, self.place = memory_of(sys._getframe(1)), live, here()
        self._spent += time.perf_counter() - now

    def __str__(self) -> str:
        share = self.table.bytes / self.peak if self.peak else 1.0
        at = f", at {self.place.text}" if self.place is not None else ""
        head = f"peak of the memory of tensors: {amount(self.peak, 'B')}"
        return f"{head}\nwho held it when {share:.0%} of that was alive{at}:\n{self.table}"
