"""Timing statements: Timer, what it measures, and tables that compare measurements."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Iterable
from typing import Any

import clew

__all__ = ["Compare", "Measurement", "Timer"]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def _unit(seconds: float) -> tuple[float, str]:
    """The largest unit that makes a number of at least 1."""
    return next((u for u in _UNITS if seconds >= u[0]), _UNITS[-1])


class Measurement:
    """The times that a statement took, in several runs.

    Args:
        number_per_run: how often the statement ran in each run.
        raw_times: seconds of each run, of all its repetitions together.
        label: what is measured.
        sub_label: which variant.
        description: which column of a table it belongs to.
        env: the environment, such as a machine's name.
        num_threads: with how many threads.
        stmt: the statement.

    Raises:
        ValueError: if there is no time, or `number_per_run` is below 1.

    Example:
        >>> from clew.utils.benchmark import Measurement
        >>> m = Measurement(10, [0.2, 0.4, 0.3])
        >>> m.times, m.median
        ([0.02, 0.04, 0.03], 0.03)
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        stmt: str = "",
    ) -> None:
        if not raw_times or number_per_run < 1:
            raise ValueError("Measurement: at least one time of at least one run is needed")
        self.number_per_run = number_per_run
        self.raw_times = list(raw_times)
        self.label = label
        self.sub_label = sub_label
        self.description = description
        self.env = env
        self.num_threads = num_threads
        self.stmt = stmt

    @property
    def times(self) -> list[float]:
        """Seconds of the statement in each run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """How far the middle half of them spreads."""
        times = sorted(self.times)
        if len(times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """Label and variant, or the statement."""
        parts = [p for p in (self.label, self.sub_label) if p]
        return ": ".join(parts) or self.stmt

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Joins the runs of measurements that are about the same.

        Args:
            measurements: some.

        Returns:
            one Measurement for each kind of task.
        """
        groups: dict[Any, list[Measurement]] = {}
        for m in measurements:
            key = (m.number_per_run, m.label, m.sub_label, m.description, m.env)
            groups.setdefault((*key, m.num_threads, m.stmt), []).append(m)
        return [
            Measurement(
                key[0],
                [t for m in found for t in m.raw_times],
                found[0].label,
                found[0].sub_label,
                found[0].description,
                found[0].env,
                found[0].num_threads,
                found[0].stmt,
            )
            for key, found in groups.items()
        ]

    def __repr__(self) -> str:
        scale, unit = _unit(self.median)
        runs = "run" if len(self.raw_times) == 1 else "runs"
        threads = "thread" if self.num_threads == 1 else "threads"
        spread = f"  IQR: {self.iqr / scale:.2f} {unit}\n" if len(self.raw_times) > 1 else ""
        return (
            f"<clew.utils.benchmark.Measurement>\n{self.title}\n"
            f"  Median: {self.median / scale:.2f} {unit}\n{spread}"
            f"  {len(self.raw_times)} {runs} of {self.number_per_run}, {self.num_threads} {threads}"
        )


class Timer:
    """Times a statement, with one thread unless more are asked for.

    Args:
        stmt: Python code.
        setup: code that runs once before.
        global_setup: accepted when empty; it is for C++.
        timer: a clock.
        globals: what names in the code mean.
        label: what is measured.
        sub_label: which variant.
        description: which column of a table it belongs to.
        env: on what.
        num_threads: how many threads operations use.
        language: Python.

    Example:
        >>> from clew.utils.benchmark import Timer
        >>> timer = Timer("x + 1", globals={"x": clew.ones(4)})
        >>> timer.timeit(10).number_per_run
        10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Timer: stmt must be a str; put functions into globals and call them")
        if global_setup or str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise ValueError("Timer: only Python code is timed")
        import textwrap

        self._names = {"label": label, "sub_label": sub_label, "description": description}
        self._env, self._threads = env, num_threads
        self._stmt = textwrap.dedent(stmt).strip()
        scope = {"clew": clew, **(globals or {})}
        setup = textwrap.dedent(setup).strip() or "pass"
        self._timer = timeit.Timer(self._stmt, setup, timer, scope)

    def _run(self, number: int) -> float:
        before = clew.get_num_threads()
        clew.set_num_threads(self._threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            clew.set_num_threads(before)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        names = self._names
        return Measurement(
            number,
            times,
            names["label"],
            names["sub_label"],
            names["description"],
            self._env,
            self._threads,
            self._stmt,
        )

    def timeit(self, number: int = 1000000) -> Measurement:
        """Runs the statement many times as one run.

        Args:
            number: how often.

        Returns:
            a Measurement of one run.
        """
        self._run(max(number // 100, min(number, 2)))  # to get warm
        return self._measured(number, [self._run(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises: use blocked_autorange."""
        raise NotImplementedError("Timer.repeat: use blocked_autorange")

    def autorange(self, callback: Any = None) -> None:
        """Raises: use blocked_autorange."""
        raise NotImplementedError("Timer.autorange: use blocked_autorange")

    def _block(self, seconds: float) -> int:
        """How often the statement must run for a time that the clock measures well."""
        number = 1
        while self._run(number) < min(seconds / 1000, 1e-3) and number < 10**8:
            number *= 10
        return number

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Runs blocks of statements until a time has passed.

        Args:
            callback: called with the number of statements and the seconds of each block.
            min_run_time: seconds.

        Returns:
            a Measurement.
        """
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Any = None,
    ) -> Measurement:
        """Runs blocks until the middle half of the times spreads little.

        Args:
            threshold: largest spread, as part of the median.
            min_run_time: seconds at least.
            max_run_time: seconds at most.
            callback: called with the number of statements and the seconds of each block.

        Returns:
            a Measurement.
        """
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < max_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            if sum(times) >= min_run_time and len(times) > 3:
                found = self._measured(number, times)
                if found.iqr <= threshold * found.median:
                    break
        return self._measured(number, times)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Raises: instructions are not counted."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are not counted")


class Compare:
    """A table of measurements: variants in rows, descriptions in columns.

    Args:
        results: the measurements.

    Example:
        >>> from clew.utils.benchmark import Compare, Measurement
        >>> ours = Measurement(1, [0.002], label="add", description="ours")
        >>> theirs = Measurement(1, [0.004], label="add", description="theirs")
        >>> Compare([ours, theirs]).print()
                        | ours | theirs
        -------------------------------
        add (1 threads) |    2 |      4
        Times are medians in ms.
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements.

        Args:
            results: more of them.
        """
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Does nothing: the table has three figures."""

    def colorize(self, rowwise: bool = False) -> None:
        """Does nothing: the table is plain text.

        Args:
            rowwise: not used.
        """

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        columns = list(dict.fromkeys(m.description or "" for m in merged))
        rows: dict[Any, dict[str, Measurement]] = {}
        for m in merged:
            key = (m.label or "", m.num_threads, m.env or "", m.sub_label or m.stmt)
            rows.setdefault(key, {})[m.description or ""] = m
        if not rows:
            return ""
        scale, unit = _unit(min(m.median for m in merged))
        cells = [["", *columns]]
        for (label, threads, env, name), found in rows.items():
            title = " ".join(p for p in (label, env, name) if p) + f" ({threads} threads)"
            values = [f"{found[c].median / scale:.3g}" if c in found else "" for c in columns]
            cells.append([title, *values])
        widths = [max(len(r[k]) for r in cells) for k in range(len(columns) + 1)]
        lines = [
            " | ".join([r[0].ljust(widths[0]), *(v.rjust(w) for v, w in zip(r[1:], widths[1:]))])
            for r in cells
        ]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join([*lines, f"Times are medians in {unit}."])

    def print(self) -> None:
        """Prints the table."""
        print(str(self))
