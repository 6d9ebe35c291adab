"""The norm of tensors some of which are distributed."""

from __future__ import annotations

import math
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor._api import DTensor, part_of
from clew.distributed.tensor.placement_types import Partial, Replicate, Shard

__all__ = ["total_norm"]


def total_norm(tensors: list[Any], norm_type: float) -> Any:
    """The norm of the wholes taken as one vector, the same on all processes.

    Args:
        tensors: plain and distributed ones.
        norm_type: the norm's order; inf for the greatest size.

    Returns:
        A distributed tensor of which every process has the whole.
    """
    greatest = math.isinf(norm_type)
    sums: dict[Any, tuple[Any, Any]] = {}  # by the groups over which they are added
    for t in tensors:
        groups: list[Any] = []
        if isinstance(t, DTensor):
            if any(isinstance(p, Partial) for p in t._placements):
                t = t.redistribute(placements=[Replicate()] * t._mesh.ndim)
            cut = [i for i, p in enumerate(t._placements) if isinstance(p, Shard)]
            groups = [t._mesh.get_group(i) for i in cut]
            t = part_of(t)
        x = t.detach().double().abs()
        own = (x.amax() if x.numel() else x.sum()) if greatest else x.pow(norm_type).sum()
        key = tuple(id(g) for g in groups)
        before = sums.get(key)
        if before is not None:
            own = clew.maximum(before[0], own) if greatest else before[0] + own
        sums[key] = own, groups
    mesh = next(t._mesh for t in tensors if isinstance(t, DTensor))
    total = clew.zeros((), dtype=clew.float64)
    for own, groups in sums.values():
        for group in groups:
            c10d.all_reduce(own, c10d.ReduceOp.MAX if greatest else c10d.ReduceOp.SUM, group)
        total = clew.maximum(total, own) if greatest else total + own
    made = (total if greatest else total.pow(1 / norm_type)).to(tensors[0].dtype)
    return DTensor.from_local(made, mesh, [Replicate()] * mesh.ndim)
