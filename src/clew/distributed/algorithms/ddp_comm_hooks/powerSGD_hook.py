"""Gradients as products of thin matrices, found by a power iteration, with what is lost added to
the next step's (Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression, 2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed._work import LazyFuture
from clew.distributed.algorithms.ddp_comm_hooks.default_hooks import _mean

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What the hook keeps from step to step.

    Args:
        process_group: the group; that of all processes if None.
        matrix_approximation_rank: columns of the thin matrices.
        start_powerSGD_iter: how many steps exchange exact means first; at least 2 with error
            feedback or a warm start.
        min_compression_rate: a matrix is compressed if that makes it so many times smaller.
        use_error_feedback: add what was lost to the next step's gradients.
        warm_start: begin with the matrices of the step before.
        orthogonalization_epsilon: added to lengths that are divided by, where it is not 0.
        random_seed: of the first matrices.
        compression_stats_logging_frequency: accepted; see `compression_stats`.
        batch_tensors_with_same_shape: accepted; the result is the same.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
        >>> PowerSGDState(None, matrix_approximation_rank=2).compression_stats()
        (0.0, 0, 0)
    """

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "PowerSGDState: start_powerSGD_iter must be at least 2 with use_error_feedback or "
                f"warm_start; got {start_powerSGD_iter}"
            )
        if matrix_approximation_rank < 1:
            raise ValueError(
                f"PowerSGDState: matrix_approximation_rank must be positive; got "
                f"{matrix_approximation_rank}"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)  # gives each drawing's seed
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but the group: what was saved goes on with the group of all processes."""
        return {k: v for k, v in self.__dict__.items() if k != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=None)

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts a step, at its last bucket.

        Args:
            bucket: a GradBucket.
        """
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times less was sent, and the numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after


def _orthogonalize(p: Any, epsilon: float) -> None:
    """Makes the columns orthonormal in place: by reflections, or with an epsilon by Gram and
    Schmidt's way.
    """
    if epsilon == 0 and p.dtype in (clew.float32, clew.float64):
        p.copy_(clew.linalg.qr(p)[0])
        return
    for i in range(p.shape[1]):
        column = p[:, i : i + 1]
        length = column.norm() + epsilon
        column.div_(length if length.item() else 1.0)
        rest = p[:, i + 1 :]
        if rest.shape[1]:
            rest.sub_(column @ (column.mT @ rest))


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Any:
    """Averages matrices of gradients as products of thin ones, P Q^T; vectors and small matrices as
    they are.

    Args:
        state: a PowerSGDState; changed.
        bucket: a GradBucket; its elements are overwritten.

    Returns:
        A Future of the averaged elements. Before step `start_powerSGD_iter` they are the exact
        mean.

    Example:
        >>> from clew.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
        >>> from clew.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> state = PowerSGDState(None, start_powerSGD_iter=2)
        >>> bucket = dist.GradBucket(0, clew.tensor([1.0, 2.0]), [clew.zeros(2)], last=True)
        >>> powerSGD_hook(state, bucket).wait()
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    group = state.process_group
    group = group if group is not None else c10d._get_default_group()
    flat, index, n = bucket.buffer(), bucket.index(), group.size()
    exact = state.iter < state.start_powerSGD_iter
    state.maybe_increase_iter(bucket)
    if exact:
        return _mean(group, flat)
    if state.use_error_feedback:
        error = state.error_dict.get(index)
        if error is not None:
            flat.add_(error)
        given = flat.clone()
    thick: list[Any] = []
    thin: list[Any] = []
    for g in bucket.gradients():
        m = g.view(g.shape[0], -1) if g.ndim else None
        rank = 0 if m is None else min(*m.shape, state.matrix_approximation_rank)
        small = m is not None and sum(m.shape) * rank * state.min_compression_rate < m.numel()
        state.total_numel_before_compression += g.numel()
        sent = sum(m.shape) * rank if m is not None and small else g.numel()
        state.total_numel_after_compression += sent
        (thin if small else thick).append((m, rank) if small else g)
    qs = state.q_memory_dict.get(index)
    if qs is None or not state.warm_start:
        draw = clew.Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
        qs = [clew.randn(m.shape[1], rank, generator=draw, dtype=m.dtype) for m, rank in thin]
        state.q_memory_dict[index] = qs
    for q in qs:
        _orthogonalize(q, state.orthogonalization_epsilon)
    plain = clew.cat([g.reshape(-1) for g in thick]) if thick else flat[:0].clone()
    ps = [m @ q for (m, _), q in zip(thin, qs)]
    packed = clew.cat([plain, *(p.reshape(-1) for p in ps)])
    first = c10d.all_reduce(packed, group=group, async_op=True)

    def finish() -> Any:
        first.wait()
        at = plain.numel()
        begin = 0
        for g in thick:
            g.copy_(packed[begin : begin + g.numel()].view(g.shape) / n)
            begin += g.numel()
        for p in ps:
            p.copy_(packed[at : at + p.numel()].view(p.shape))
            at += p.numel()
            _orthogonalize(p, state.orthogonalization_epsilon)
        for (m, _), p, q in zip(thin, ps, qs):
            q.copy_(m.mT @ p)
        if qs:
            together = clew.cat([q.reshape(-1) for q in qs]) / n
            c10d.all_reduce(together, group=group)
            at = 0
            for (m, _), p, q in zip(thin, ps, qs):
                q.copy_(together[at : at + q.numel()].view(q.shape))
                at += q.numel()
                m.copy_(p @ q.mT)
        if state.use_error_feedback:
            kept = given - flat
            # What was sent as it is lost nothing.
            begin = 0
            for g in bucket.gradients():
                if any(g._address() == t._address() for t in thick):
                    kept[begin : begin + g.numel()] = 0
                begin += g.numel()
            state.error_dict[index] = kept
        return flat

    return LazyFuture(finish, first.is_completed)
