"""Many samples at once: a program written for one sample runs in batches."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from types import CodeType, TracebackType
from typing import Any, TypeVar

from clew import _C
from clew._base.settling import settle
from clew._base.tasks import Turns, stays
from clew._program.region import Opening
from clew._program.steps import in_steps
from clew._tensor.html import as_printed
from clew._tensor.structured import parts_of
from clew.utils._pytree import tree_leaves

__all__ = ["BatchReport", "Group", "autobatch"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Group:
    """Calls that ran as one.

    Attributes:
        operation: its name.
        place: the line that made the first of them.
        members: how many there were.
        why_alone: why a call ran by itself; None where there were several.
    """

    operation: str
    place: str
    members: int
    why_alone: str | None


@dataclass(frozen=True)
class BatchReport:
    """What became of the calls of the region that began last.

    Attributes:
        calls: how many were gathered.
        groups: what ran, in order (the first 65,536).
        observations: the lines that asked for values, each with the number of calls that ran then;
            the end of the region has an empty line.
    """

    calls: int
    groups: tuple[Group, ...]
    observations: tuple[tuple[str, int], ...]

    _repr_html_ = as_printed

    def __str__(self) -> str:
        lines = [f"{self.calls} calls ran as {len(self.groups)}"]
        members: Counter[tuple[str, str]] = Counter()
        runs: Counter[tuple[str, str]] = Counter()
        alone: dict[tuple[str, str], str] = {}
        for g in self.groups:
            key = (g.operation, g.place)
            members[key] += g.members
            runs[key] += 1
            if g.why_alone:
                alone[key] = g.why_alone
        for key, count in members.most_common():
            operation, place = key
            line = f"  {count:7d} as {runs[key]:6d}  {operation}  {place}"
            lines.append(line + (f"  ({alone[key]})" if runs[key] == count else ""))
        for place, count in self.observations:
            what = f"asked for a value at {place}" if place else "the region ended"
            lines.append(f"  {count:7d} calls waited when {what}")
        return "\n".join(lines)


# Regions in a row that found too little to batch, until those of the same line run at once; and how
# many of them do before one is tried again.
_TRIES, _PAUSE = 3, 31


@dataclass(slots=True)
class _Line:
    """What the regions that one line opens were like.

    Attributes:
        code: of the line, kept so that no other code has its address.
        useless: how many in a row found too little.
        pause: how many still run at once.
    """

    code: CodeType
    useless: int = 0
    pause: int = 0

    @classmethod
    def at(cls, code: CodeType, instruction: int) -> _Line:
        """Of one place in a program."""
        key = (id(code), instruction)
        line = _history.get(key)
        if line is None:
            if len(_history) > 1000:  # of code that is made again and again
                _history.clear()
            line = _history[key] = cls(code)
        return line

    def skips(self) -> bool:
        """Whether a region that begins now is to run at once."""
        if not self.pause or _C._gathers():
            return False
        self.pause -= 1
        _C._begin_batch_report()
        return True

    def learn(self) -> None:
        """Takes note of whether the region that has ended paid."""
        paid = _C._batch_paid()
        if paid:
            self.useless = 0
        elif paid is False:
            self.useless += 1
            self.pause = _PAUSE if self.useless >= _TRIES else 0


# By the address of the code and the instruction: to hash code takes long.
_history: dict[tuple[int, int], _Line] = {}
_tops = threading.local()


class autobatch:
    """Runs the operations of many samples in batches, in a region of any Python program.

    The region's Python runs one sample after the other, as it stands: recursion, loops, branches.
    Operations check their arguments, give results of the right shape and dtype, and wait. When a
    value is asked for (``item()``, ``print``, ``if``, NumPy ...), or when the region ends, those
    that are the same operation on operands of the same kind run as one call, in an order that makes
    such calls few (after Neubig et al., On-the-fly Operation Batching in Dynamic Computation
    Graphs, 2017, and Chen et al., ED-Batch, 2023). What backward needs is recorded of the batches,
    so that backward is batched, too.

    Results are those of the plain program within the rounding of a product of more rows. Writing
    in place, random draws other than dropout's, and saved-tensor hooks run at once. Where the
    regions of one line found too little to batch three times in a row, the next 31 run at once.
    A context manager and a decorator.

    >>> cell = clew.nn.Linear(4, 4)
    >>> samples = [clew.randn(4) for _ in range(8)]
    >>> with clew.autobatch():
    ...     losses = [cell(cell(x).tanh()).square().mean() for x in samples]
    >>> clew.stack(losses).mean().backward()
    >>> clew.autobatch.report().calls, len(clew.autobatch.report().groups)
    (40, 5)
    """

    def __init__(self) -> None:
        # For each time it was entered and calls are gathered: what was on before, and the line.
        self._openings: list[tuple[Opening, _Line] | None] = []

    def __enter__(self) -> autobatch:
        frame = sys._getframe(1)
        return self._enter(frame.f_code, frame.f_lasti)

    def _enter(self, code: CodeType, instruction: int) -> autobatch:
        line = _Line.at(code, instruction)
        if line.skips():
            self._openings.append(None)
            return self
        before = _C._gathers()
        self._openings.append((Opening(before or None, _tops), line))
        self._thread = threading.get_ident()
        _C._gather(True)
        if not before:
            _C._begin_batch_report()
        return self

    def __del__(self) -> None:
        """Ends what an interrupt kept from being left, in __enter__ or __exit__."""
        openings = vars(self).get("_openings")  # none where an interrupt came before
        if openings and threading.get_ident() == self._thread:
            for opened in reversed(openings):
                if opened is not None:
                    _C._gather(bool(opened[0].close()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._openings:
            raise RuntimeError("autobatch: the region was not entered, or has ended already")
        opened = self._openings[-1]
        if opened is None:
            self._openings.pop()
            return
        opening, line = opened
        before = bool(opening.close())
        _C._gather(before)
        self._openings.pop()
        if before:
            return
        try:
            _C._run_gathered()
        except Exception:
            # An exception on its way goes first: whoever asks for what could not be computed gets
            # the error of that.
            if error is None:
                raise
        line.learn()

    def __call__(self, function: F) -> F:
        """The function, each call of which is such a region; of a generator each step."""
        own = getattr(function, "__code__", None)
        code: CodeType = own if isinstance(own, CodeType) else type(self).__call__.__code__
        stepped = in_steps(function, partial(_Called, code))
        if stepped is not None:
            return wraps(function)(stepped)  # type: ignore[return-value]

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with _Called(code):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    @staticmethod
    def report() -> BatchReport:
        """What ran together in the region that began last, and what did not, by line.

        >>> with clew.autobatch():
        ...     results = [(clew.ones(3) * i).sum() for i in range(4)]
        >>> print(clew.autobatch.report())  # doctest: +ELLIPSIS
        8 calls ran as ...
        """
        calls, ends, gathered = _C._batch_report()
        return BatchReport(
            gathered,
            tuple(Group(*c) for c in calls),
            tuple((place if observed else "", count) for observed, count, place in ends),
        )

    @staticmethod
    def map(function: Callable[..., Any], samples: Iterable[Any]) -> list[Any]:
        """``[function(sample) for sample in samples]`` in batches, across ``item()`` and ``if``.

        Each sample runs as a task. One that asks for a value is parked; when all are parked, what
        waits runs in batches, and they go on. Grad mode, autocast, other modes and context
        variables belong to their task. An exception of one sample closes the others, in order, and
        is raised with the sample's number as a note. Draws of samples that have asked for values
        come in the order in which the tasks go on: the same for the same seed, but not the plain
        loop's. Where the maps of one line cost more than they gain three times in a row and nothing
        is drawn, the samples of the next 31 run one after the other.

        Args:
            function: called with one sample.
            samples: any iterable.

        Returns: the results, in the order of the samples.

        Raises:
            ImportError: without the package greenlet (``pip install greenlet``).

        >>> def halvings(x):
        ...     n = 0
        ...     while x.sum() > 1:
        ...         x, n = x / 2, n + 1
        ...     return n
        >>> clew.autobatch.map(halvings, [clew.full((3,), float(i)) for i in (1, 10, 100)])
        [2, 5, 9]
        """
        try:
            import greenlet
        except ImportError:
            raise ImportError(
                "autobatch.map: needs the package greenlet; install it with "
                "pip install greenlet (clew[autobatch])"
            ) from None
        hub = greenlet.getcurrent()
        if _C._parks():
            if vars(_workers).get("hub") is not hub:  # a task of another map, parked as a whole
                return [function(sample) for sample in samples]
            _C._park_with(None)  # an interrupt left it
        tasks = _Tasks(greenlet, function, list(samples))
        caller = sys._getframe(1)
        line = _Line.at(caller.f_code, caller.f_lasti)
        if line.skips():
            tasks.run(last=False)
            return tasks.results
        inside, place = _C._gathers(), _C._stream_place()
        _gathered(tasks.run)
        # Draws come in another order where the samples run one after the other.
        if not inside and place == _C._stream_place():
            line.learn()
        return tasks.results


class _Called(autobatch):
    """The region of a call of a decorated function: as if its first line opened it."""

    def __init__(self, code: CodeType) -> None:
        super().__init__()
        self._code = code

    def __enter__(self) -> autobatch:
        return self._enter(self._code, -1)


class _Tasks:
    """The samples of a `map`, each in a greenlet that goes back to the map's own to wait.

    Attributes:
        results: of the samples that are through; None for the others.
    """

    def __init__(self, greenlet: Any, function: Callable[..., Any], samples: list[Any]) -> None:
        self._greenlet, self._hub = greenlet, greenlet.getcurrent()
        self._function, self._samples = function, samples
        self.results: list[Any] = [None] * len(samples)
        self._stayed = stays()
        self._idle = _idle_workers()
        self._left: dict[int, Any] = {}  # by sample, those that are not through
        self._running: int | None = None
        self._closing = False
        self._turns = Turns()

    def run(self, last: bool) -> None:
        """Runs all samples; last: what waits at the end runs, too."""
        self._turns.start()
        try:
            _workers.hub = self._hub
            _C._park_with(self._park)
            self._begin()
            while self._left:
                _run_parked()
                for i in list(self._left):
                    self._go_on(i)
        except BaseException as error:
            self._to_hub()
            self._close(error)
            raise
        finally:
            try:
                _C._park_with(None)
            finally:
                self._turns.end()
            vars(_workers).pop("hub", None)
            del self._idle[_MOST_IDLE:]
        if last:
            _run_last(self.results)

    def _park(self) -> bool:
        """The core calls it where a value is asked for; whether others have run meanwhile."""
        # A closed task is not asked to go on.
        if self._closing or self._greenlet.getcurrent() is self._hub:
            return False
        # The levels of an open vmap are the thread's, the parameters that functional_call puts
        # in place are the module's: other tasks would find them.
        if _C._vmap_depth() or stays() > self._stayed:
            return False
        own = self._turns.leave()
        try:
            self._hub.switch(None)
        finally:
            self._turns.resume(own)
        return True

    def _begin(self) -> None:
        for i in range(len(self._samples)):
            worker = self._idle.pop() if self._idle else self._hired()
            worker.parent, worker.gr_context = self._hub, contextvars.copy_context()
            self._left[i] = worker
            self._go_on(i, partial(self._work_on, i))

    def _hired(self) -> Any:
        """A new worker, which waits. It began without a job: what it begins with is kept alive as
        long as it is.
        """
        worker = self._greenlet.greenlet(_work, self._hub)
        worker.switch()
        return worker

    def _work_on(self, i: int) -> None:
        self.results[i] = self._function(self._samples[i])

    def _go_on(self, i: int, *job: Callable[[], None]) -> None:
        worker = self._left[i]
        self._running = i
        answer = worker.switch(*job)
        self._running = None
        if answer is None:  # it is parked, and has left as _park() does
            return
        self._to_hub()
        if answer is True:  # the sample is through
            del self._left[i]
            worker.gr_context = None
            self._idle.append(worker)
        elif worker.dead:  # greenlet gives its own exception as if it were an answer
            self._running = i
            raise answer

    def _to_hub(self) -> None:
        _C._to_hub()
        self._turns.to_hub()

    def _close(self, error: BaseException) -> None:
        """Ends the other tasks, in order, where one has raised an error."""
        if self._running is not None:
            _add_note(error, f"in sample {self._running} of autobatch.map")
        self._closing = True
        for i, left in self._left.items():
            if left.dead:
                continue
            try:
                left.throw()
            except BaseException as other:
                what = f"{type(other).__name__} when it was closed: {other}"
                _add_note(error, f"sample {i} raised {what}")
            self._to_hub()


# Greenlets of a thread that wait for the next `map`: to make one takes as long as a small model's
# step of a sample.
_MOST_IDLE = 256
_workers = threading.local()


def _idle_workers() -> list[Any]:
    """Those that a map may use. A greenlet keeps the place on the stack where it began: one that
    began further out than a module call that is open would run over what the core holds there.
    """
    place = _C._here()
    if place is None or place[3] is not None:  # it is not known, or a module's call is open
        return []
    idle: list[Any] = vars(_workers).setdefault("idle", [])
    return idle


def _work() -> None:
    """Does one job after the other in a greenlet; its parent gets True before each."""
    import greenlet

    while True:
        job: Callable[[], None] = greenlet.getcurrent().parent.switch(True)
        job()
        del job


def _gathered(run: Callable[[bool], None]) -> None:
    """Calls something in an autobatch that always gathers, with whether what waits runs at its end:
    no other region is open.
    """
    before = _C._gathers()
    try:
        try:
            _C._gather(True)
            if not before:
                _C._begin_batch_report()
            run(not before)
        finally:  # at once, whatever interrupts
            _C._gather(before)
    except BaseException:
        if not before:
            _run_parked()
        raise
    if not before:
        _C._run_gathered()


def _run_last(results: list[Any]) -> None:
    """Runs what waits when all tasks are through; names the first sample that lacks a value."""
    try:
        _C._run_gathered()
    except Exception as error:
        for i, result in enumerate(results):
            if not all(map(_is_there, tree_leaves(result))):
                _add_note(error, f"in sample {i} of autobatch.map")
                break
        raise


def _is_there(value: Any) -> bool:
    """Whether a result is computed, if it is a tensor."""
    if not isinstance(value, _C.Tensor) or value.is_meta:
        return True
    try:
        settle(*parts_of((value,)))
    except Exception:
        return False
    return True


def _run_parked() -> None:
    """Runs what waits; a task whose value could not be computed gets the error when it goes on."""
    try:
        _C._run_gathered()
    except Exception:
        return


def _add_note(error: BaseException, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:  # before Python 3.11
        vars(error)["__notes__"] = [*getattr(error, "__notes__", []), note]
