"""The classes that a user has allowed files to construct."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_allowed: list[Any] = []  # classes and functions, or (one, "module.name") pairs


def allow(entries: list[Any]) -> None:
    """Adds to the list."""
    for entry in entries:
        if isinstance(entry, tuple):
            if len(entry) != 2 or not callable(entry[0]) or not isinstance(entry[1], str):
                raise TypeError(
                    f"add_safe_globals: a pair must be (class, 'module.name'); got {entry!r}"
                )
        elif not callable(entry):
            raise TypeError(f"add_safe_globals: entries must be classes; got {entry!r}")
        if entry not in _allowed:
            _allowed.append(entry)


def entries() -> list[Any]:
    """A copy of the list."""
    return list(_allowed)


def replace(entries: list[Any]) -> None:
    """Puts another list in its place."""
    _allowed[:] = entries


def is_allowed(value: Any) -> bool:
    """Whether a class or function is on the list."""
    return any(value is (e[0] if isinstance(e, tuple) else e) for e in _allowed)


def by_name() -> dict[str, Callable[..., Any]]:
    """The list by full name."""
    named = {}
    for entry in _allowed:
        if isinstance(entry, tuple):
            named[entry[1]] = entry[0]
        else:
            named[f"{entry.__module__}.{entry.__qualname__}"] = entry
    return named


def named_by_torch(module: str, name: str) -> Any:
    """What clew has under a name of PyTorch's, such as ``torch.nn``, ``Linear``; None without."""
    from clew._cli.run import _home

    home = "clew" if module == "torch" else _home(module.removeprefix("torch."))
    if home is None:
        return None
    found: Any = importlib.import_module(home)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
