"""Settings of PyTorch that have little or no effect on clew."""

from __future__ import annotations

from clew._base.arguments import need_bools

__all__ = [
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_warn_always",
]

_LEVELS = ("default", "warn", "error")
_state = {"deterministic": 0, "warn_always": False}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """What an operation that is not deterministic would do; there is none.

    Args:
        debug_mode: "default" or 0, "warn" or 1, "error" or 2.

    >>> clew.set_deterministic_debug_mode("warn")
    >>> clew.get_deterministic_debug_mode()
    1
    >>> clew.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)) or isinstance(debug_mode, bool):
        raise TypeError(
            "set_deterministic_debug_mode: debug_mode must be an int or a str; got "
            f"{type(debug_mode).__name__}"
        )
    if debug_mode not in (*_LEVELS, 0, 1, 2):
        raise RuntimeError(
            "set_deterministic_debug_mode: debug_mode must be default, warn, error, 0, 1 or 2; "
            f"got {debug_mode!r}"
        )
    level = _LEVELS.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    _state["deterministic"] = level


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: what `set_deterministic_debug_mode` was given.

    >>> clew.get_deterministic_debug_mode()
    0
    """
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether an operation that is not deterministic would only warn; there is none.

    >>> clew.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _state["deterministic"] == 1


def set_warn_always(b: bool) -> None:
    """Whether warnings that come once a process, as that of a complex number's lost part, come
    each time. All others go to Python's filters each time, which decide how often they are shown.

    Args:
        b: what `is_warn_always_enabled` says afterwards.

    >>> clew.set_warn_always(False)
    """
    need_bools("set_warn_always", b=b)
    _state["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given.

    >>> clew.is_warn_always_enabled()
    False
    """
    return bool(_state["warn_always"])
