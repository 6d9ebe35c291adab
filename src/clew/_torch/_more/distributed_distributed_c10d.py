"""What programs ask of groups and of ways to send."""

from __future__ import annotations

from typing import Any

from clew._torch._more.distributed import _rank_not_in_group as _rank_not_in_group


def is_xccl_available() -> bool:
    """Whether Intel's library is there: no."""
    return False


def __getattr__(name: str) -> Any:
    if name == "_pg_map":
        from clew.distributed._groups import _state

        return {group: (group.name(), None) for group in _state.groups}
    raise AttributeError(name)
