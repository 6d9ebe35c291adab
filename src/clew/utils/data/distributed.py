"""The sampler that divides a dataset among several processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import clew

from .sampler import Sampler, T_co

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[T_co]):
    """The share of one process in a dataset, all shares of equal length.

    Args:
        dataset: something with a length.
        num_replicas: how many processes share it; those of the process group when None.
        rank: which of them this is; the one in the process group when None.
        shuffle: random order, the same in all processes.
        seed: of that order.
        drop_last: leave out samples that do not divide evenly; otherwise some come twice.

    Example:
        >>> from clew.utils.data import DistributedSampler
        >>> list(DistributedSampler("abcd", num_replicas=2, rank=1, shuffle=False))
        [1, 3]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from clew import distributed

            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: rank must be in [0, {num_replicas - 1}]; got {rank}"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        if drop_last and len(dataset) % num_replicas:
            self.num_samples = math.ceil((len(dataset) - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[T_co]:
        n = len(self.dataset)
        if self.shuffle:
            generator = clew.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = clew.randperm(n, generator=generator).tolist()
        else:
            order = list(range(n))
        if not self.drop_last and order:
            repeats = math.ceil(self.total_size / len(order))
            order = order * repeats
        share: Any = order[: self.total_size][self.rank :: self.num_replicas]
        return iter(share)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses another random order; call it before every epoch.

        Args:
            epoch: its number.
        """
        self.epoch = epoch
