"""Anomaly detection: backward stops at the gradient that became NaN, and says where its operation
ran.
"""

from __future__ import annotations

import threading

from clew import _C
from clew._base.arguments import need_bools
from clew._base.tasks import of_tasks

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Mode(threading.local):
    on = False
    check_nan = True


_mode = of_tasks(_Mode())


def _switch(on: bool, check_nan: bool) -> dict[str, bool]:
    before = {"on": _mode.on, "check_nan": _mode.check_nan}
    _mode.on, _mode.check_nan = on, check_nan
    _C._keep_whole_stacks(on)
    _C._set_anomaly(on and check_nan)
    return before


class set_detect_anomaly:
    """Switches anomaly detection on or off in this thread, at once, or for a ``with`` block.

    Args:
        mode: whether it is on.
        check_nan: whether backward raises when a gradient becomes NaN.

    >>> with clew.autograd.set_detect_anomaly(True):
    ...     clew.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        need_bools("set_detect_anomaly", mode=mode, check_nan=check_nan)
        self._before = _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(**self._before)


class detect_anomaly:
    """Within it, operations keep the stack that called them, and backward raises at the first
    gradient that became NaN.

    Errors in backward tell the forward call with its whole stack. Unlike PyTorch's, this costs
    little (lines are kept as they run, no text is made), does not warn when it is entered, and
    belongs to the thread that enters it.

    Args:
        check_nan: whether NaN raises; errors tell their forward call either way.

    Raises:
        RuntimeError: from backward, at the operation whose gradient became NaN.

    >>> x = clew.tensor([0.0], requires_grad=True)
    >>> with clew.autograd.detect_anomaly():
    ...     y = (x * 0).sqrt() * 0
    ...     y.sum().backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True) -> None:
        need_bools("detect_anomaly", check_nan=check_nan)
        self.check_nan = bool(check_nan)
        self._before: list[dict[str, bool]] = []

    def __enter__(self) -> None:
        self._before.append(_switch(True, self.check_nan))

    def __exit__(self, *exc: object) -> None:
        _switch(**self._before.pop())


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly detection on or off in this thread.

    Args:
        enabled: whether it is on.
        check_nan: whether backward raises when a gradient becomes NaN.

    >>> clew.set_anomaly_enabled(True)
    >>> clew.is_anomaly_enabled()
    True
    >>> clew.set_anomaly_enabled(False)
    """
    need_bools("set_anomaly_enabled", enabled=enabled, check_nan=check_nan)
    _switch(bool(enabled), bool(check_nan))


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread.

    >>> clew.is_anomaly_enabled()
    False
    """
    return _mode.on


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN.

    >>> clew.is_anomaly_check_nan_enabled()
    True
    """
    return _mode.check_nan
