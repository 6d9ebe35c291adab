"""What programs ask of a group."""

from __future__ import annotations

from typing import Any


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is outside of a group."""
    from clew.distributed import GroupMember

    return group is not None and group == GroupMember.NON_GROUP_MEMBER
