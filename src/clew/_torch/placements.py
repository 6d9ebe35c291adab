"""How a tensor would lie on a grid of processes: values that say it."""

from __future__ import annotations

from dataclasses import dataclass


class Placement:
    """How a tensor lies along one dim of a grid."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether the processes' tensors are to be added up."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dim."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all."""


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' tensors are to be combined."""

    reduce_op: str = "sum"
