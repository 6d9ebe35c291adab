"""Parameters averaged over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d


def average_parameters(params: Iterable[Any], process_group: Any) -> None:
    """Gives each parameter the mean that it has over the processes.

    Args:
        params: parameters, the same on all processes.
        process_group: the group; the one of all processes if None.
    """
    group = process_group if process_group is not None else c10d._get_default_group()
    if not isinstance(group, c10d.ProcessGroup):
        return  # this process is not in it
    by_dtype: dict[Any, list[Any]] = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    with clew.no_grad():
        for same in by_dtype.values():
            flat = clew.cat([p.detach().reshape(-1) for p in same]).div_(group.size())
            c10d.all_reduce(flat, group=group)
            for p, part in zip(same, flat.split([p.numel() for p in same])):
                p.copy_(part.view(p.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Those parameters that have a gradient.

    Args:
        params: parameters, or an optimizer's groups of them.
    """
    found = []
    for one in params:
        for p in one["params"] if isinstance(one, dict) else [one]:
            if p.grad is not None:
                found.append(p)
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Averages those parameters that have a gradient.

    Args:
        params: parameters, or an optimizer's groups of them.
        process_group: the group; the one of all processes if None.
    """
    average_parameters(get_params_to_average(params), process_group)
