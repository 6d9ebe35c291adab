"""A bound on the bytes of tensors, kept by making saved tensors again."""

from __future__ import annotations

import functools
import gc
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any, ClassVar, ParamSpec, TypeVar

from clew import _C, OutOfMemoryError, Tensor
from clew._base.sizes import bytes_or_fraction
from clew._insight.debug.memory import amount
from clew._program.enough import Enough, open_lines
from clew._program.steps import in_steps
from clew._program.trainings import Line, Trainings, watch
from clew._tensor.html import as_printed

__all__ = ["BudgetReport", "memory_budget"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NO_LIMIT = (1 << 63) - 1
_SMALL_NS = 2000  # of a call, on average: noting one takes about a tenth of it


@dataclass(frozen=True)
class BudgetReport:
    """What a budget did.

    Attributes:
        limit: the bytes that were allowed; None without a limit.
        peak: the most bytes that were live in the region.
        given_up: how many saved tensors were given up, and `given_up_bytes`, of how many bytes.
        made_again: how many calls ran once more, and `seconds`, the time that took.
        written: how many went to the offload directory, and `written_bytes`, of how many bytes.
        kept: calls whose results could not have been made again.
    """

    limit: int | None
    peak: int
    given_up: int
    given_up_bytes: int
    made_again: int
    seconds: float
    written: int
    written_bytes: int
    kept: int

    _repr_html_ = as_printed

    def __str__(self) -> str:
        limit = "no limit" if self.limit is None else f"a budget of {amount(self.limit, 'B')}"
        lines = [f"peak {amount(self.peak, 'B')} under {limit}"]
        if self.given_up:
            lines.append(
                f"  {self.given_up} saved tensors of {amount(self.given_up_bytes, 'B')} were given "
                f"up; {self.made_again} calls ran again in {self.seconds:.3g} s"
            )
        if self.written:
            lines.append(
                f"  {self.written} of them went to the disk: {amount(self.written_bytes, 'B')}"
            )
        return "\n".join(lines)


class memory_budget:
    """Bounds the bytes of all tensors: what forward saves is given up and made again as needed.

    Saved tensors are the bulk of what training holds. When live bytes would pass the limit, those
    that are cheapest for their size and longest unused give up their bytes; backward makes them
    again from the calls that made them, or reads them from the offload directory (dynamic tensor
    rematerialisation, Kirisame et al. 2021, https://arxiv.org/abs/2006.09616). Random calls repeat
    their draws; gradients have the same bits as without a budget. A context manager and a
    decorator.

    What a variable of the program holds, parameters, gradients and optimizer state stay, as does
    what cannot be made again: results of tensors that share memory with NumPy, of vmap, of
    autobatch. Calls do not wait in a budget: what `clew.compile` compiled runs eagerly there.

    Args:
        limit: bytes as an int or as text ("600 MB", "1.5 GiB"); a fraction up to 1.0 of what this
            line's region took the first time, which runs without a limit, for each training that
            comes here (told by its first parameter); None: no limit, for a report alone.
        offload: a directory. Saved tensors that are dearer to make than to write and read go to a
            file there, which has no name and goes with the process.

    Raises:
        ValueError: a limit that is no size.
        NotADirectoryError, OSError: a directory that cannot be written.
        clew.OutOfMemoryError: at the call for which there is no room whatever is given up; says
            what holds the bytes, and what would do.

    >>> model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
    >>> with clew.memory_budget("2 GB") as budget:
    ...     model(clew.ones(256, 64)).sum().backward()
    >>> budget.report().peak <= 2_000_000_000
    True
    """

    _enough: ClassVar[dict[tuple[CodeType | None, int], Enough]] = {}
    _lines: ClassVar[dict[tuple[CodeType | None, int, object], Line]] = {}
    _trainings: ClassVar[dict[tuple[CodeType | None, int, float], Trainings]] = {}

    def __init__(
        self, limit: int | float | str | None, *, offload: str | os.PathLike[str] | None = None
    ) -> None:
        self._fraction: float | None = None
        self._limit: int | None = None
        if limit is not None:
            found = bytes_or_fraction("memory_budget", "limit", limit, least=1)
            if isinstance(found, float):
                self._fraction = found
            else:
                self._limit = found
        self._file: Any = None
        if offload is not None:
            from clew.autograd._offload import open_file, path_of

            self._file = open_file("memory_budget", path_of("memory_budget", offload))
            weakref.finalize(self, self._file.close)  # graphs have a descriptor of their own
        self._region: int | None = None
        self._line: Line | None = None
        self._before: tuple[int, ...] = ()
        self._peak = 0  # of the region before its training was known
        self._watch: Any = None  # of a fraction, until it is
        self._here_all: Trainings | None = None
        self._report: BudgetReport | None = None

    def _enter(self, code: CodeType | None, line: int) -> None:
        if self._region is not None:
            raise RuntimeError("memory_budget: this budget is open already; make another one")
        if len(self._lines) + len(self._trainings) > 1000:  # of code that is made again and again
            self._lines.clear()
            self._trainings.clear()
            self._enough.clear()
        self._before = _C._budget_counts()
        self._peak = 0
        if self._fraction is None:
            here = self._lines.setdefault((code, line, self._limit), Line())
            self._begin(here, self._enough.setdefault((code, line), Enough()), self._limit)
            return
        trainings = self._trainings.setdefault((code, line, self._fraction), Trainings())
        self._here_all = trainings
        self._begin(*trainings.apart, trainings.at_first(self._fraction))
        self._watch = watch(self._known_as)

    def _known_as(self, parameter: Tensor) -> None:
        """The region's training shows: its own limit holds from now on."""
        before, self._watch = self._region, None
        assert before is not None and self._fraction is not None and self._here_all is not None
        here, known = self._here_all.of(parameter)
        limit = max(int(self._fraction * here.full_peak), 1) if here.full_peak else None
        self._peak = _C._budget_peak(before)
        _C._end_budget(before)
        open_lines.remove(self._known)
        self._begin(here, known, limit)

    def _begin(self, here: Line, known: Enough, limit: int | None) -> None:
        self._line, self._known, self._now = here, known, limit
        fd = -1 if self._file is None else self._file.fileno()
        if limit is None:
            limit = _NO_LIMIT
        # A line that never needed its limit pays nothing until more bytes are live than before.
        # Where that is near the limit, what is made first can go should more be needed now.
        # A fraction of the first round, which had none, is a limit that was not tried yet.
        late = self._now is None or (here.reached is False and here.peak <= limit)
        note_from = min(max(limit // 2, here.peak), limit) if late else 0
        note_first = limit // 2 if note_from > limit // 4 * 3 else 0
        if known.left_garbage:
            known.left_garbage = False
            gc.collect()
        enough = 0 if late else here.enough(limit)
        self._region = _C._begin_budget(limit, fd, note_from, note_first, enough, here.first)
        open_lines.append(known)

    def __enter__(self) -> memory_budget:
        frame = sys._getframe(1)
        self._enter(frame.f_code, frame.f_lineno)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        region, here = self._region, self._line
        assert region is not None and here is not None
        self._report = self._count()
        *_, noted, _, ns, deep, first = _C._budget_counts()  # of this region, while it is open
        small = ns - self._before[-3] < _SMALL_NS * (noted - self._before[-5])
        # What backward saves for another backward goes before that one begins: all is noted then.
        small = small and deep == self._before[-2]
        self._region = None
        _C._end_budget(region)
        open_lines.remove(self._known)
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.remove()
        if self._here_all is not None:
            measured = self._report.peak if self._now is None and error is None else None
            no_room = isinstance(error, OutOfMemoryError)
            self._here_all.ended(measured, no_room, watch is not None)
        if error is None:
            self._known.ended(self._now, self._report.peak, self._report.given_up)
        report = self._report
        refused = error is not None or self._known.left_garbage
        here.reached = bool(here.reached) or report.given_up > 0 or refused
        here.peak = max(report.peak, here.peak * 15 // 16)
        here.ended(report.given_up_bytes, first, small, refused)
        if self._now is None and error is None:
            here.full_peak = max(here.full_peak, self._report.peak)

    def _count(self) -> BudgetReport:
        counts = [b - a for a, b in zip(self._before, _C._budget_counts(), strict=True)]
        _, given_up, given_bytes, made, ns, written, written_bytes, _, _, unmade, *_ = counts
        peak = max(_C._budget_peak(self._region), self._peak)
        return BudgetReport(
            self._now, peak, given_up, given_bytes, made, ns / 1e9, written, written_bytes, unmade
        )

    def report(self) -> BudgetReport:
        """What the budget did, so far or in the region that ended last.

        Raises:
            RuntimeError: before the first region.
        """
        if self._region is not None:
            return self._count()
        if self._report is None:
            raise RuntimeError("memory_budget: there is nothing to report before the region began")
        return self._report

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """A function that runs in the budget each time it is called; of a generator each step."""
        region = functools.partial(self._opened, getattr(function, "__code__", None))
        stepped = in_steps(function, region)
        if stepped is not None:
            return functools.wraps(function)(stepped)

        @functools.wraps(function)
        def within(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with region():
                return function(*args, **kwargs)

        return within

    @contextmanager
    def _opened(self, code: CodeType | None) -> Iterator[None]:
        if self._region is not None:  # the function calls itself
            yield
            return
        self._enter(code, 0)
        try:
            yield
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        self.__exit__(None, None, None)
