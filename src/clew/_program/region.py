"""Regions of a program in which operations wait."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from clew import _C
from clew._program.steps import in_steps

__all__ = ["Opening", "deferred"]

F = TypeVar("F", bound=Callable[..., Any])
# Operations on fewer elements run at once: what fits into the second cache is found there by the
# next operation anyway.
LEAST = 65536


class Opening:
    """A region that was entered, and what was switched on before: another region's, or nothing.

    Coroutines leave their regions in any order. What the last one leaves behind is what was on
    before the first.

    Args:
        before: what was on; None when nothing was.
        tops: where the thread's innermost region of this kind is known.
    """

    def __init__(self, before: int | None, tops: threading.local) -> None:
        self.before = before
        self._tops = tops
        self._open = True
        self._outer: Opening | None = None if before is None else getattr(tops, "top", None)
        tops.top = self

    def close(self) -> int | None:
        """What is to be on now."""
        self._open = False
        first = self
        while first._outer is not None and not first._outer._open:
            first = first._outer
        self._tops.top = first._outer
        return first.before


_tops = threading.local()


class deferred:
    """Delays operations in a region, so that successive ones run as one pass over memory.

    The region's Python runs as it stands. An operation on large tensors checks its arguments,
    records what backward needs, and returns at once; its values are computed when something asks
    for them (``item()``, ``print``, ``if``, NumPy, saving ...), or when the region ends. Those that
    work element by element then run together, piece by piece in the processor's cache.
    Results have the same bits as without it. Backward through what was recorded here waits, too.

    Args:
        least: the number of elements from which operations wait; smaller ones run at once.

    >>> x = clew.linspace(0, 1, 100_000)
    >>> with clew.deferred():
    ...     y = (x * 2 + 1).sqrt().mean()
    >>> y
    tensor(1.3987)
    """

    def __init__(self, least: int = LEAST) -> None:
        if isinstance(least, bool) or not isinstance(least, int) or least < 0:
            raise ValueError(f"deferred: least must be an int of at least 0; got {least!r}")
        self._least = least
        self._openings: list[Opening] = []

    def __enter__(self) -> deferred:
        self._openings.append(Opening(_C._defer(self._least), _tops))
        self._thread = threading.get_ident()
        return self

    def __del__(self) -> None:
        """Ends what an interrupt kept from being left, in __exit__."""
        openings = vars(self).get("_openings")  # none where arguments were refused
        if openings and threading.get_ident() == self._thread:
            for opening in reversed(openings):
                _C._defer(opening.close())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before = self._openings[-1].close()
        _C._defer(before)
        self._openings.pop()
        if before is not None:
            return
        try:
            _C._run_deferred()
        except Exception:
            # An exception on its way goes first: whoever asks for what could not be computed gets
            # the error of that.
            if error is None:
                raise

    def __call__(self, function: F) -> F:
        """The function, each call of which is such a region; of a generator each step."""
        stepped = in_steps(function, functools.partial(deferred, self._least))
        if stepped is not None:
            return functools.wraps(function)(stepped)  # type: ignore[return-value]

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with deferred(self._least):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]
