"""Rules for operations that write into a part of a tensor, or into another one beside the result.

A process writes what it has where that is enough. Else every process writes into the whole, of
which it then takes its part, so that gradients go where those of one process would.
"""

from __future__ import annotations

from typing import Any

import clew
from clew._C import Tensor
from clew.distributed.tensor import _shapes
from clew.distributed.tensor._api import DTensor, wrap
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["RULES"]

R = Replicate()


def _target(c: Any) -> Any:
    """The tensor that is written, if it can be."""
    x = c.operands[0]
    if not c.args or x is not c.args[0]:
        raise NotImplementedError(f"DTensor: {c.name} of a plain tensor with a distributed one")
    c.refuse_copy()
    if any(isinstance(p, Partial) for p in x._placements):
        raise NotImplementedError(f"DTensor: {c.name} of what is partial; redistribute() first")
    return x


def _write_whole(c: Any) -> Any:
    x = _target(c)
    same = (R,) * c.mesh.ndim
    parts = c.parts([same] * len(c.operands), same)
    if all(isinstance(p, Replicate) for p in x._placements):
        c.with_operands([x, *parts[1:]])
        return x
    whole = parts[0].clone()
    c.with_operands([whole, *parts[1:]])
    return x.copy_(wrap(whole, c.mesh, same, x._sizes).redistribute(placements=x._placements))


def written_whole(c: Any) -> Any:
    """In place, by the operation that is not known to need less than the whole."""
    c.refuse_plain()
    return _write_whole(c)


def setitem(c: Any) -> None:
    """x[key] = value."""
    x, (key, value) = _target(c), c.args[1:]
    if isinstance(value, Tensor) and not isinstance(value, DTensor) and value.ndim:
        c.refuse_plain()
    kept = _shapes.kept_dims(key, x.ndim)
    cut = [p.dim for p in x._placements if isinstance(p, Shard)]
    if kept is not None and all(d in kept for d in cut):
        place = x[key]
        if not isinstance(value, Tensor):
            place.fill_(value)
            return
        while value.ndim > place.ndim and value.shape[0] == 1:
            value = value.squeeze(0)
        place.copy_(value)
        return
    masked = isinstance(key, DTensor) and key.dtype is clew.bool and key._sizes == x._sizes
    if masked and len(c.operands) == 2:  # and a number
        c.with_operands([x, c.parts([x._placements] * 2, x._placements)[1]])
        return
    _write_whole(c)


def batch_norm(c: Any) -> Any:
    """Statistics are those of the whole; channels may lie apart, and when evaluating anything."""
    c.refuse_plain()
    x = c.operands[0]
    if not c.args or x is not c.args[0]:
        raise RuntimeError("DTensor: batch_norm of a plain tensor with distributed statistics")
    training, count = bool(c.argument(5, "training", False)), len(c.operands) - 1

    def rule(i: int) -> tuple[list[Placement], Placement]:
        p = x._placements[i]
        if isinstance(p, Shard) and (p.dim == 1 or not training):
            return [p, *[Shard(0) if p.dim == 1 else R] * count], p
        return [R] * (1 + count), R

    columns = [rule(i) for i in range(c.mesh.ndim)]
    wanted = [tuple(column[0][k] for column in columns) for k in range(1 + count)]
    out = tuple(column[1] for column in columns)
    parts = c.parts(wanted, out)
    running = [c.argument(1, "running_mean"), c.argument(2, "running_var")]
    moved = [
        k
        for k, y in enumerate(c.operands)
        if training and any(y is s for s in running) and y._placements != wanted[k]
    ]
    for k in moved:
        parts[k] = parts[k].detach().clone()
    made = c.with_operands(parts)
    with clew.no_grad():
        for k in moved:
            y = c.operands[k]
            new = wrap(parts[k], c.mesh, wanted[k], y._sizes)
            y.copy_(new.redistribute(placements=y._placements))
    return c.wrapped(made, None, out, x._sizes)


RULES = {
    "setitem": setitem,
    "batch_norm": batch_norm,
    **dict.fromkeys(
        "index_put_ index_add_ index_copy_ index_fill_ index_reduce_ scatter_ scatter_add_ "
        "scatter_reduce_ masked_scatter_ put_ tril_ triu_ fill_diagonal_ cumsum_ cumprod_".split(),
        written_whole,
    ),
}
