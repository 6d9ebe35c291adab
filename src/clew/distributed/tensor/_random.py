"""Rules for operations that draw numbers: those of one process, of which each keeps its part."""

from __future__ import annotations

import zlib
from typing import Any

import clew
from clew._base.overriding import DisableTorchFunctionSubclass
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor._api import wrap
from clew.distributed.tensor._redistribute import redistribute_local
from clew.distributed.tensor.placement_types import Partial, Replicate

R = Replicate()


def agreed(c: Any) -> Any:
    """A whole to draw, without elements yet; raises where the processes would draw others.

    Numbers are drawn in the order of memory. Of a part with one row that order is not known, so
    it is the first process's.
    """
    x, place = c.operands[0], c.mesh.get_coordinate()
    generator = c.kwargs.get("generator") or clew.default_generator
    state = zlib.crc32(generator.get_state().numpy().tobytes())
    ends = clew.tensor([state, -state, *x.stride()])
    for i in range(c.mesh.ndim):
        if place[i]:
            ends[2:] = -1
        c10d.all_reduce(ends, c10d.ReduceOp.MAX, c.mesh.get_group(i))
    if ends[0] != -ends[1]:
        raise RuntimeError(
            f"DTensor: {c.name}: the processes' random number generators are in different states, "
            "so each would draw other numbers; call clew.manual_seed() with one seed on all of "
            "them, and give what each draws for itself a clew.Generator of its own"
        )
    return clew.empty_strided(x._sizes, ends[2:].tolist(), dtype=x.dtype)


def in_place(c: Any) -> Any:
    """Draws the whole, so that the numbers are those of one process, and keeps the part."""
    x = c.operands[0]
    if len(c.operands) > 1 or c.plain:
        raise NotImplementedError(f"DTensor: {c.name}: parameters must be numbers; got a tensor")
    if any(isinstance(p, Partial) for p in x._placements):
        raise NotImplementedError(f"DTensor: {c.name} of what is partial; redistribute() first")
    c.refuse_copy()
    whole = agreed(c)
    if all(isinstance(p, Replicate) for p in x._placements):
        c.with_operands([x])
        return x
    with clew.no_grad():
        c.with_operands([whole])
        part = redistribute_local(whole, x._sizes, c.mesh, [R] * c.mesh.ndim, x._placements)
        with DisableTorchFunctionSubclass():
            x.copy_(part)
    return x


def dropout(c: Any) -> Any:
    """The whole's mask is drawn, and each process's part of it used."""
    x = c.operands[0]
    ones = agreed(c).fill_(1)
    mask = clew.nn.functional.dropout(ones, c.argument(1, "p", 0.5), True)
    way = tuple(R if isinstance(p, Partial) else p for p in x._placements)
    part = redistribute_local(mask, x._sizes, c.mesh, [R] * c.mesh.ndim, way)
    scale = wrap(part, c.mesh, way, x._sizes)
    return x.mul_(scale) if c.argument(3, "inplace", False) else x * scale
