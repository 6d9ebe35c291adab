"""Moving elements between processes so that a tensor lies in another way, with gradients.

The gradient of what is replicated is replicated, that of a shard is a shard, and that of what is
partial is replicated: every process's part goes into the sum once. So each change has a change
back. Along each dim of the mesh a change is one collective of the group there. Of a maximum,
minimum or product each process's part has a gradient of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew._C import Tensor
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
    cutting_order,
)

_Function = clew.autograd.Function
_OPS = {
    "sum": c10d.ReduceOp.SUM,
    "avg": c10d.ReduceOp.AVG,
    "product": c10d.ReduceOp.PRODUCT,
    "max": c10d.ReduceOp.MAX,
    "min": c10d.ReduceOp.MIN,
}


def chunk_sizes(size: int, count: int) -> list[int]:
    """Sizes of the parts that `clew.chunk` makes, with zeros for processes that get none."""
    each = -(-size // count) if size else 0
    return [max(0, min(each, size - each * i)) for i in range(count)]


def local_sizes(
    sizes: Sequence[int], mesh: Any, placements: Sequence[Placement], place: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Sizes of a process's part, and where it begins.

    Args:
        sizes: of the whole.
        mesh: the mesh.
        placements: along each of its dims.
        place: the process's place in it.
    """
    here, begin = list(sizes), [0] * len(sizes)
    for i in cutting_order(placements):
        p = placements[i]
        if isinstance(p, Shard):
            parts = chunk_sizes(here[p.dim], mesh.size(i))
            begin[p.dim] += sum(parts[: place[i]])
            here[p.dim] = parts[place[i]]
    return here, begin


def _cut(x: Tensor, dim: int, group: Any) -> Tensor:
    parts = chunk_sizes(x.shape[dim], group.size())
    mine = x.narrow(dim, sum(parts[: group.rank()]), parts[group.rank()])
    # A copy, so that the whole's memory can go.
    return mine.clone(memory_format=clew.contiguous_format)


def _joined(x: Tensor, dim: int, group: Any, size: int) -> Tensor:
    parts = chunk_sizes(size, group.size())
    shapes = [[*x.shape[:dim], n, *x.shape[dim + 1 :]] for n in parts]
    if 0 in (*x.shape[:dim], *x.shape[dim + 1 :]):  # nobody in the group has an element
        return clew.empty([*x.shape[:dim], size, *x.shape[dim + 1 :]], dtype=x.dtype)
    made = [clew.empty(s, dtype=x.dtype) for s in shapes]
    c10d.all_gather(made, x.contiguous(), group)
    return clew.cat(made, dim)


def _combined(x: Tensor, group: Any, op: str) -> Tensor:
    made = x.contiguous().clone()
    c10d.all_reduce(made, _OPS[op], group)
    return made


def _combine_and_cut(x: Tensor, dim: int, group: Any, op: str) -> Tensor:
    parts = chunk_sizes(x.shape[dim], group.size())
    if len(set(parts)) > 1 or not parts[0]:
        return _cut(_combined(x, group, op), dim, group)
    made = clew.empty([*x.shape[:dim], parts[0], *x.shape[dim + 1 :]], dtype=x.dtype)
    stacked = clew.stack([c.contiguous() for c in x.chunk(group.size(), dim)])
    c10d.reduce_scatter_tensor(made, stacked, _OPS[op], group)
    return made


def _moved(x: Tensor, old: Placement, new: Placement, group: Any, size: int) -> Tensor:
    """x, which lies in the old way along the group, in the new way.

    Args:
        x: this process's part.
        old: how it lies.
        new: how it is to lie.
        group: the processes.
        size: of the dim that `old` cuts, before it is cut.
    """
    if old == new:
        return x
    if isinstance(old, Shard):
        if isinstance(new, Shard):
            return _cut(_joined(x, old.dim, group, size), new.dim, group)
        whole = _joined(x, old.dim, group, size)
        return _moved(whole, Replicate(), new, group, 0)
    if isinstance(old, Partial):
        if isinstance(new, Shard):
            return _combine_and_cut(x, new.dim, group, old.reduce_op)
        return _moved(_combined(x, group, old.reduce_op), Replicate(), new, group, 0)
    if isinstance(new, Shard):
        return _cut(x, new.dim, group)
    # Replicated, to parts of a sum or product: one process has it all. Of the others all have.
    assert isinstance(new, Partial)
    if group.rank() == 0 or new.reduce_op not in ("sum", "product"):
        return x
    return clew.zeros_like(x) if new.reduce_op == "sum" else clew.ones_like(x)


class _Move(_Function):
    @staticmethod
    def forward(ctx: Any, x: Any, old: Any, new: Any, group: Any, size: int) -> Any:
        ctx.change, ctx.shape = (old, new, group), x.shape
        made = _moved(x.detach(), old, new, group, size)
        return made.view_as(made) if made._storage_key() == x._storage_key() else made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        old, new, group = ctx.change
        shape = ctx.shape
        if isinstance(new, Partial) and not new._linear:  # of what is replicated: see move()
            if new.reduce_op == "product" and group.rank() != 0:
                grad = clew.zeros_like(grad)
            return move(grad, Partial(), Replicate(), group, 0), None, None, None, None
        # Of gradients, what is partial is replicated.
        source = Replicate() if isinstance(new, Partial) else new
        target = Replicate() if isinstance(old, Partial) else old
        g = move(grad, source, target, group, shape[new.dim] if isinstance(new, Shard) else 0)
        if isinstance(new, Partial) and new.reduce_op == "avg":
            g = g * group.size()  # every process has a share in it
        if isinstance(old, Partial) and old.reduce_op == "avg":
            g = g / group.size()
        return g, None, None, None, None


def move(x: Any, old: Placement, new: Placement, group: Any, size: int) -> Any:
    """`_moved`, with its gradient."""
    if old == new:
        return x
    whole: Placement = Replicate()
    if isinstance(old, Partial) and not old._linear:
        return move(_Combine.apply(x, old.reduce_op, group), whole, new, group, 0)
    if isinstance(new, Partial) and not new._linear and old != whole:
        return move(move(x, old, whole, group, size), whole, new, group, 0)
    return _Move.apply(x, old, new, group, size)


class _Combine(_Function):
    """A maximum, minimum or product over the processes."""

    @staticmethod
    def forward(ctx: Any, x: Any, op: str, group: Any) -> Any:
        made = _combined(x.detach(), group, op)
        ctx.how = op, group
        ctx.save_for_backward(x, made)
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (op, group), (x, made) = ctx.how, ctx.saved_tensors
        grad = sum_gradients(grad, [group])  # each process uses it for its own part
        if op == "product":
            n, mine = group.size(), group.rank()
            parts = sum_gradients(move(x[None], Shard(0), Replicate(), group, n), [group])
            others = clew.cat([parts[:mine], parts[mine + 1 :]]).prod(0)
            return grad * others.conj(), None, None
        # Processes that have the same greatest element share its gradient, as amax() does.
        mine = (x == made).to(grad.dtype)
        return grad * mine / _combined(mine, group, "sum"), None, None


class _Same(_Function):
    """x itself, whose gradient is changed."""

    @staticmethod
    def forward(ctx: Any, x: Any, change: Any) -> Any:
        ctx.change = change
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.change(grad), None


class _Sum(_Function):
    """The sum over processes, each of which goes on to compute the same."""

    @staticmethod
    def forward(ctx: Any, x: Any, groups: Any) -> Any:
        ctx.groups, made = groups, x.detach()
        for group in groups:
            made = _combined(made, group, "sum")
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return sum_gradients(grad, ctx.groups), None  # each summand's process has its own use of it


def _same(x: Any, groups: Sequence[Any], change: Any) -> Any:
    if not (groups and x.requires_grad):
        return x
    return _Same.apply(x, lambda grad: change(grad, groups))


def sum_gradients(x: Any, groups: Sequence[Any]) -> Any:
    """x itself, which is the same on processes that compute different things with it.

    Its gradient is the sum over them, with which they go on to compute the same.
    """
    return _same(x, groups, sum_over)


def sum_over(x: Any, groups: Sequence[Any]) -> Any:
    """The sum of the processes' summands, with which they go on to compute the same."""
    return _Sum.apply(x, groups)


def summand(x: Any, groups: Sequence[Any]) -> Any:
    """x itself, a summand that the process made of what only it has.

    Its gradient is that of the sum, of which the processes go on to compute different things.
    """
    return _same(x, groups, sum_gradients)


def new_summand(x: Any, groups: Sequence[Any]) -> Any:
    """The same of what was just computed, which may change in place afterwards."""
    if not groups or x._is_view():
        return summand(x, groups) if groups else x
    if x.requires_grad:
        x.register_hook(lambda grad: sum_gradients(grad, groups))
    return x


def alike(x: Any, groups: Sequence[Any]) -> Any:
    """x itself, of which the processes find equal gradients, each with what only it has.

    That they are one is seen in the gradient's gradient: only the first process's counts.
    """
    return _same(x, groups, in_first)


def in_first(x: Any, groups: Sequence[Any]) -> Any:
    """x itself, whose gradient the first process has, and the others zeros."""
    return _same(x, groups, _at_first)


def _at_first(x: Any, groups: Sequence[Any]) -> Any:
    for group in groups:
        x = move(x, Replicate(), Partial(), group, 0)
    return x


def redistribute_local(
    x: Any,
    sizes: Sequence[int],
    mesh: Any,
    old: Sequence[Placement],
    new: Sequence[Placement],
) -> Any:
    """A process's part of a tensor that is to lie in another way.

    Args:
        x: its part.
        sizes: of the whole.
        mesh: the mesh.
        old: how it lies.
        new: how it is to lie.
    """
    place = mesh.get_coordinate()
    if place is None:
        raise RuntimeError("DTensor: this process is not in the mesh")
    if list(old) == list(new):
        return x
    now = list(old)
    if any(isinstance(p, _StridedShard) for p in (*old, *new)):
        for i in reversed(cutting_order(old)):
            if isinstance(now[i], Shard):
                x = _one(x, sizes, mesh, now, i, Replicate(), place)
                now[i] = Replicate()
        for i in cutting_order(new):
            x = _one(x, sizes, mesh, now, i, new[i], place)
            now[i] = new[i]
        return x
    # Dims of the mesh cut in their order: one that is to change must find later ones whole along
    # the dims that it cuts, before and after.
    changed = {i for i in range(len(now)) if now[i] != new[i]}
    whole: set[int] = set()
    for i in range(len(now)):
        if i in changed or i in whole:
            dims = {p.dim for p in (now[i], new[i]) if isinstance(p, Shard)}
            for j in range(i + 1, len(now)):
                later = now[j]
                if isinstance(later, Shard) and later.dim in dims:
                    whole.add(j)
    for i in sorted(whole, reverse=True):
        x = _one(x, sizes, mesh, now, i, Replicate(), place)
        now[i] = Replicate()
    for i, target in enumerate(new):
        x = _one(x, sizes, mesh, now, i, target, place)
        now[i] = target
    return x


def _one(
    x: Any,
    sizes: Sequence[int],
    mesh: Any,
    now: list[Placement],
    i: int,
    new: Placement,
    place: Any,
) -> Any:
    old, size = now[i], 0
    if isinstance(old, Shard):
        others = [p if j != i else Replicate() for j, p in enumerate(now)]
        size = local_sizes(sizes, mesh, others, place)[0][old.dim]
    return move(x, old, new, mesh.get_group(i), size)
