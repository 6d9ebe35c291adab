"""A model of DistributedDataParallel among processes with unequal numbers of batches.

Before each batch the processes that have one say who they are, whether gradients will be reduced,
and whether buffers are sent; who has none answers with zeros, and takes part in what follows.
"""

from __future__ import annotations

from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed.algorithms.join import Join, JoinHook, last_joiner

__all__ = ["ModelHook", "begin_batch"]


def _told(model: Any, here: bool, synced: bool, sends: bool) -> tuple[int, int, bool, bool]:
    """How many processes have a batch, the first of them, and what they will do."""
    group = model.process_group
    told = clew.zeros(group.size() + 2)
    if here:
        told[group.rank()], told[-2], told[-1] = 1.0, float(synced), float(sends)
    c10d.all_reduce(told, group=group)
    have = told[:-2].tolist()
    active = sum(1 for v in have if v)
    first = next((i for i, v in enumerate(have) if v), 0)
    return active, first, bool(told[-2].item()), bool(told[-1].item())


def begin_batch(model: Any, synced: bool, sends: bool) -> int:
    """Says what this process will do; the place in the group of who sends buffers."""
    Join.notify_join_context(model)
    active, first, _, _ = _told(model, True, synced, sends)
    model._reducer.divisor = model.process_group.size() if model._divides_by_all else active
    return first


class ModelHook(JoinHook):
    """Shadows a model.

    Args:
        model: a DistributedDataParallel.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def main_hook(self) -> None:
        """Shadows the collectives of one batch of the others."""
        model = self.model
        if model._reducer is None:
            return
        active, first, synced, sends = _told(model, False, False, False)
        model._reducer.divisor = model.process_group.size() if model._divides_by_all else active
        if sends:
            model._send_buffers(first)
        if synced:
            model._reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Gives all processes the parameters and buffers of one that finished last."""
        model = self.model
        if model._reducer is None:
            return
        model._reducer.divisor = model.process_group.size()
        root = last_joiner(model.process_group, is_last_joiner)
        for name, t in [*model.module.named_parameters(), *model.module.named_buffers()]:
            if name not in model._ignored:
                c10d.broadcast(t.detach(), group=model.process_group, group_src=root)
