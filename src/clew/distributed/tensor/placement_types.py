"""How a distributed tensor lies along a dim of its mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dim of a mesh: `Shard`, `Replicate` or `Partial`.

    Example:
        >>> from clew.distributed.tensor import Partial, Placement, Replicate, Shard
        >>> [isinstance(p, Placement) for p in (Shard(0), Replicate(), Partial())]
        [True, True, True]
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut.

        Args:
            dim: along which dim; any if None.
        """
        return False

    def is_replicate(self) -> bool:
        """Whether every process has all of it."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes' tensors have still to be combined.

        Args:
            reduce_op: in which way; any if None.
        """
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == getattr(other, "__dict__", None)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.__dict__.values()))


class Shard(Placement):
    """Each process has a part along a dim, as `clew.chunk` cuts it; the last ones may have none.

    Args:
        dim: the tensor's dim.

    Example:
        >>> from clew.distributed.tensor import Shard
        >>> Shard(1).is_shard(1)
        True
    """

    def __init__(self, dim: int) -> None:
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"Shard: dim must be an int; got {dim!r}")
        self.dim = dim

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut: True, along its dim.

        Args:
            dim: along which dim; any if None.
        """
        return dim is None or self.dim == dim

    def _at(self, dim: int) -> Shard:
        """The same cut along another dim."""
        return Shard(dim)

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """How long the part of one process is, and where it begins.

        Args:
            curr_local_size: how long the dim is.
            num_chunks: over how many processes it is cut.
            rank: which of them.

        Example:
            >>> from clew.distributed.tensor import Shard
            >>> Shard.local_shard_size_and_offset(10, 4, 3)
            (1, 9)
        """
        whole = -(-curr_local_size // num_chunks)
        begin = min(whole * rank, curr_local_size)
        return min(whole, curr_local_size - begin), begin

    def _local_shard_size_and_offset(
        self, curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class _StridedShard(Shard):
    """A part of what later dims of the mesh cut along the same dim: they cut first.

    `fully_shard` makes it of parameters that tensor parallelism cut before.

    Args:
        dim: the tensor's dim.
        split_factor: into how many parts the later dims of the mesh cut.

    Example:
        >>> from clew.distributed.tensor.placement_types import _StridedShard
        >>> _StridedShard(0, split_factor=2)
        _StridedShard(dim=0, sf=2)
    """

    def __init__(self, dim: int, *, split_factor: int) -> None:
        super().__init__(dim)
        self.split_factor = split_factor

    def _at(self, dim: int) -> Shard:
        return _StridedShard(dim, split_factor=self.split_factor)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


def cutting_order(placements: Sequence[Placement]) -> list[int]:
    """The dims of the mesh in the order in which they cut a tensor.

    Args:
        placements: along each of them.
    """
    return sorted(range(len(placements)), key=lambda i: isinstance(placements[i], _StridedShard))


class Replicate(Placement):
    """Every process has the whole.

    Example:
        >>> from clew.distributed.tensor import Replicate
        >>> Replicate().is_replicate()
        True
    """

    def is_replicate(self) -> bool:
        """Whether every process has all of it."""
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """The whole is what the processes' tensors give when they are combined.

    Args:
        reduce_op: "sum", "avg", "product", "max" or "min".

    Example:
        >>> from clew.distributed.tensor import Partial
        >>> Partial().is_partial("sum")
        True
    """

    def __init__(self, reduce_op: str = "sum") -> None:
        if reduce_op not in ("sum", "avg", "product", "max", "min"):
            raise ValueError(
                'Partial: reduce_op must be "sum", "avg", "product", "max" or "min"; got '
                f"{reduce_op!r}"
            )
        self.reduce_op = reduce_op

    @property
    def _linear(self) -> bool:
        """Whether the parts of a sum of wholes are the sums of their parts."""
        return self.reduce_op in ("sum", "avg")

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes' tensors have still to be combined: True, in this way.

        Args:
            reduce_op: in which way; any if None.
        """
        return reduce_op is None or self.reduce_op == reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def normalized(placements: Any, mesh_ndim: int, ndim: int) -> tuple[Placement, ...]:
    """One placement for each dim of the mesh, with dims counted from the front.

    Args:
        placements: those given, or None for Replicate.
        mesh_ndim: how many there must be.
        ndim: of the tensor.
    """
    if placements is None:
        return (Replicate(),) * mesh_ndim
    given = (placements,) if isinstance(placements, Placement) else tuple(placements)
    if len(given) != mesh_ndim:
        raise ValueError(
            f"DTensor: the mesh has {mesh_ndim} dims, so there must be as many placements; got "
            f"{list(given)}"
        )
    made: list[Placement] = []
    for p in given:
        if not isinstance(p, Placement):
            raise TypeError(f"DTensor: a placement is Shard, Replicate or Partial; got {p!r}")
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                raise IndexError(f"DTensor: {p} of a tensor of {ndim} dims")
            p = p._at(p.dim % ndim)
        made.append(p)
    return tuple(made)
