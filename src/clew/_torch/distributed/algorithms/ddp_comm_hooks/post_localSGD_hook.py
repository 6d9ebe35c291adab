"""Gradients averaged over all processes at first, and within subgroups from some step on."""

from __future__ import annotations

from typing import Any

from clew import distributed as dist
from clew.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from clew.futures import Future


class PostLocalSGDState:
    """The state of `post_localSGD_hook`.

    Args:
        process_group: the group at first; the one of all processes if None.
        subgroup: the group later; the processes of one machine if None.
        start_localSGD_iter: from which step on it is later.
        post_local_gradient_allreduce: whether the subgroup averages gradients then.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts a step at its last bucket.

        Args:
            bucket: a GradBucket.
        """
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Any:
    """Averages gradients over all processes at first, and then within a subgroup.

    Args:
        state: a PostLocalSGDState.
        bucket: a GradBucket.

    Returns:
        A Future of the averaged elements.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        made: Any = Future()
        made.set_result(bucket.buffer())
        return made
    if state.subgroup is None:
        state.subgroup, _ = dist.new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
