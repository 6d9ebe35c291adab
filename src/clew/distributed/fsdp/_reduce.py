"""Gradients added up over ranks, of which each keeps its part."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributed import _collectives, _near
from clew.distributed._process_group import ReduceOp
from clew.distributed._work import Work

_LARGE = 1 << 16  # bytes from which on a tensor travels alone, without being copied


def bundles(tensors: list[Any]) -> list[list[int]]:
    """Numbers of tensors that travel together: small ones of one dtype, each large one alone."""
    small: dict[Any, list[int]] = {}
    made: list[list[int]] = []
    for i, t in enumerate(tensors):
        if t.numel() * t.element_size() >= _LARGE:
            made.append([i])
        elif t.dtype in small:
            small[t.dtype].append(i)
        else:
            small[t.dtype] = [i]
            made.append(small[t.dtype])
    return made


def _divided(grad: Any, kind: Any, count: int, total: float, out: Any = None) -> Any:
    """A gradient divided, its first dim filled up with zeros: (count, elements of a part)."""
    rows = -(-grad.shape[0] // count)
    sizes = (rows * count, *grad.shape[1:])
    if out is None:
        if rows * count == grad.shape[0]:
            return grad.to(kind).div(total).reshape(count, -1)
        out = clew.empty(sizes, dtype=kind)
    out = out.view(sizes)
    clew.div(grad.to(kind), total, out=out[: grad.shape[0]])
    out[grad.shape[0] :].zero_()
    return out.view(count, -1)


def cut_sums(group: Any, grads: Any, kinds: list[Any], total: float, of: str) -> list[Any]:
    """Sums of gradients over the ranks, divided; of each this rank's part of the first dim.

    Args:
        group: of the ranks.
        grads: whole, of the same sizes on all.
        kinds: the dtype of each sum.
        total: what sums are divided by; first, so that they do not overflow.
        of: whose gradients they are, the same on all ranks.

    Returns:
        Flat parts, with zeros where the first dim does not divide.
    """
    count = group.size()
    parts = [-(-g.shape[0] // count) * (g.numel() // max(1, g.shape[0])) for g in grads]
    one = len(set(kinds)) == 1 and kinds[0] in (clew.float32, clew.float64)
    slots = _near.shared(group, count * sum(parts) * kinds[0].itemsize) if one else None
    if slots is None:
        return _by_messages(group, grads, kinds, total, of)
    slots.free()
    room, at, places = slots.mine.view(kinds[0]), 0, []
    for grad, n in zip(grads, parts):
        _divided(grad, kinds[0], count, total, room[at : at + count * n])
        places.append(at + group.rank() * n)
        at += count * n
    group.check("reduce_scatter of gradients", f"({at}, {kinds[0]}, {of})")
    Work(group, "reduce_scatter_tensor", [slots.written()]).wait()
    rooms = [every.view(kinds[0]) for every in slots.all]
    made = []
    for place, n in zip(places, parts):
        first, *others = (every[place : place + n] for every in rooms)
        sums = first + others[0]
        for other in others[1:]:
            sums.add_(other)
        made.append(sums)
    slots.read()
    return made


def _by_messages(group: Any, grads: Any, kinds: list[Any], total: float, of: str) -> list[Any]:
    count = group.size()
    whole = [_divided(grad, kind, count, total) for grad, kind in zip(grads, kinds)]
    begun = []
    for together in bundles(whole):
        rows = [whole[i] for i in together]
        flat = rows[0] if len(rows) == 1 else clew.cat(rows, 1)
        sums = clew.empty(flat.shape[1], dtype=flat.dtype)
        work = _collectives._reduce_scatter(
            "reduce_scatter_tensor", group, sums, flat, ReduceOp.SUM, True, f", {of}"
        )
        begun.append((together, sums, work))
    made: list[Any] = [None] * len(whole)
    for together, sums, work in begun:
        work.wait()
        at = 0
        for i in together:
            made[i] = sums[at : at + whole[i].shape[1]]
            at += whole[i].shape[1]
    return made
