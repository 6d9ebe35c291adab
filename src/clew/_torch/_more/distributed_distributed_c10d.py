"""What programs ask of groups and of ways to send."""

from __future__ import annotations

import warnings
from typing import Any

from clew._base.provenance import user_level
from clew._torch._more import distributed as _more
from clew._torch._more.distributed import _rank_not_in_group as _rank_not_in_group

# Names that PyTorch's module of groups has, too.
_SHARED = frozenset(
    "DebugLevel GroupName all_gather_coalesced all_gather_single all_reduce_coalesced "
    "get_debug_level get_default_backend_for_device get_pg_count record_comm "
    "reduce_scatter_single supports_complex".split()
)


def is_xccl_available() -> bool:
    """Whether Intel's library is there: no."""
    return False


def _get_global_rank(group: Any, rank: int) -> int:
    """The earlier name of :func:`get_global_rank`."""
    from clew.distributed import get_global_rank

    warnings.warn(
        "torch.distributed.distributed_c10d._get_global_rank is deprecated; use get_global_rank",
        FutureWarning,
        stacklevel=user_level(),
    )
    return get_global_rank(group, rank)


def __getattr__(name: str) -> Any:
    if name == "_pg_map":
        from clew.distributed._groups import _state

        return {group: (group.name(), None) for group in _state.groups}
    if name.startswith("is_"):
        from clew import distributed

        return getattr(distributed, name)
    if name in _SHARED:
        return getattr(_more, name)
    raise AttributeError(name)
