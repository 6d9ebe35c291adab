"""DTensors in files: each process saves its own part, and how the whole lies.

A file holds one process's parts, so each process writes a file of its own and reads it again.
`clew.distributed.checkpoint` saves the whole, for any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew._C import Tensor
from clew.distributed.device_mesh import DeviceMesh, live_mesh
from clew.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)
from clew.nn.parameter import Parameter

__all__ = ["makers", "parts_of", "rebuilt"]

# What makes a DTensor; clew.distributed.tensor._api fills it.
makers: dict[str, Callable[..., Any]] = {}


def parts_of(x: Any, local: Tensor) -> tuple[Any, ...]:
    """What `rebuilt` takes: plain data, and the part as a plain tensor.

    Args:
        x: the DTensor.
        local: this process's part of it, without a record.
    """
    names = x._mesh.mesh_dim_names
    return (
        local,
        x._mesh.mesh.tolist(),
        None if names is None else list(names),
        [_words(p) for p in x._placements],
        list(x._sizes),
        bool(x.requires_grad),
        bool(getattr(x, "_is_param", False)),
    )


def _words(p: Placement) -> list[Any]:
    if isinstance(p, _StridedShard):
        return ["strided", p.dim, p.split_factor]
    if isinstance(p, Shard):
        return ["shard", p.dim]
    return ["partial", p.reduce_op] if isinstance(p, Partial) else ["replicate"]


def _placement(words: Any) -> Placement:
    if isinstance(words, list):
        if words == ["replicate"]:
            return Replicate()
        if len(words) == 2 and words[0] == "shard":
            return Shard(words[1])
        if len(words) == 3 and words[0] == "strided":
            return _StridedShard(words[1], split_factor=words[2])
        if len(words) == 2 and words[0] == "partial":
            return Partial(words[1])
    raise ValueError(f"load: a DTensor's placement is {words!r}")


def rebuilt(
    local: Any, ranks: Any, names: Any, placements: Any, sizes: Any, requires_grad: Any, param: Any
) -> Tensor:
    """The DTensor of which a process saved its part.

    The mesh is the one that lies on the same processes, or a new one, which all of them make: then
    all processes load, in the same order.

    Args:
        local: this process's part.
        ranks: the mesh's processes in their places, as nested lists.
        names: of the mesh's dims, or None.
        placements: how it lies, in words.
        sizes: of the whole.
        requires_grad: whether it does.
        param: whether it is a parameter.

    Raises:
        RuntimeError: if these processes are not there.
        ValueError: if the part is not one of such a whole.
    """
    if type(local) is not Tensor or not isinstance(placements, list):
        raise ValueError("load: a DTensor has no part or no placements")
    kinds = [_placement(p) for p in placements]
    mesh = live_mesh(ranks, names)
    if mesh is None:
        try:
            mesh = DeviceMesh("cpu", ranks, mesh_dim_names=names)
        except RuntimeError as error:
            raise RuntimeError(
                f"load: the file has one process's part of a DTensor that lies on the processes "
                f"{ranks}; load it on as many, or save it with clew.distributed.checkpoint, which "
                f"any number can load ({error})"
            ) from None
    made = makers["from_local"](local.detach(), mesh, kinds, shape=sizes)
    if param:
        return Parameter(made, requires_grad=bool(requires_grad))
    return made.requires_grad_(bool(requires_grad))
