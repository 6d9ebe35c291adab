"""Functions written for parts, and plain tensors among distributed ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed.tensor._api import DTensor
from clew.distributed.tensor._call import replicates_plain
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from clew.utils import _pytree as pytree

__all__ = ["implicit_replication", "local_map"]


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A region in which a plain tensor beside distributed ones counts as replicated.

    It must be the same on all processes, which nobody checks. Its gradient is the whole's.

    Example:
        >>> from clew.distributed.tensor import Shard, distribute_tensor, init_device_mesh
        >>> from clew.distributed.tensor.experimental import implicit_replication
        >>> x = distribute_tensor(clew.ones(2, 3), init_device_mesh("cpu", (1,)), [Shard(0)])
        >>> with implicit_replication():
        ...     y = x + clew.ones(3)
        >>> y.placements
        (Shard(dim=0),)
        >>> clew.distributed.destroy_process_group()
    """
    token = replicates_plain.set(True)
    try:
        yield
    finally:
        replicates_plain.reset(token)


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: Any = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """A function of distributed tensors that runs a function of plain ones on each one's part.

    Args:
        func: gets this process's parts in the distributed tensors' places; what else is passed it
            gets as it is. None makes a decorator.
        out_placements: how the result lies along each dim of the mesh; of several results a tuple
            of these, with None for what is no tensor.
        in_placements: for each positional argument, in tuples and lists one after the other, how it
            must lie; None for what is no tensor. With None they may lie in any way.
        in_grad_placements: the same for the gradients that `func` gives its arguments. With None a
            gradient lies as its argument, but is a sum over a dim of the mesh along which the
            argument is replicated and no result is: processes then compute different things.
        device_mesh: the mesh of the results; that of the first distributed argument if None.
        redistribute_inputs: move arguments that lie in another way instead of raising.

    Returns:
        The function. Without a distributed argument it is `func` itself.

    Raises:
        ValueError: an argument does not lie as it must; there are not as many placements as
            arguments or results; along a dim of the mesh some results are replicated and others
            not, so that `in_grad_placements` must say what gradients are.

    Example:
        >>> from clew.distributed.tensor import Partial, Shard, distribute_tensor, init_device_mesh
        >>> from clew.distributed.tensor.experimental import local_map
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> product = local_map(clew.mm, [Partial()], ([Shard(1)], [Shard(0)]))
        >>> x = distribute_tensor(clew.ones(2, 4), mesh, [Shard(1)])
        >>> product(x, distribute_tensor(clew.ones(4, 3), mesh, [Shard(0)])).full_tensor()
        tensor([[4., 4., 4.],
                [4., 4., 4.]])
        >>> clew.distributed.destroy_process_group()
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    several = isinstance(out_placements, tuple) and not any(
        isinstance(p, Placement) for p in out_placements
    )
    outs = out_placements if several else (out_placements,)

    @functools.wraps(func)
    def run(*args: Any, **kwargs: Any) -> Any:
        given, shape = pytree.tree_flatten(args)
        meshes = [x.device_mesh for x in given if isinstance(x, DTensor)]
        if not meshes:
            return func(*args, **kwargs)
        mesh = meshes[0] if device_mesh is None else device_mesh
        wanted = _one_each("in_placements", in_placements, given)
        hints = _one_each("in_grad_placements", in_grad_placements, given)
        parts, even = [], True
        for i, x in enumerate(given):
            if isinstance(x, DTensor):
                x = _lying(i, x, wanted[i], redistribute_inputs)
                even = even and _is_even(x)
                hint = hints[i] if hints[i] is not None else _gradients(i, x, outs)
                x = x.to_local(grad_placements=hint)
            parts.append(x)
        results, form = pytree.tree_flatten(func(*pytree.tree_unflatten(parts, shape), **kwargs))
        if len(results) != len(outs):
            raise ValueError(
                f"local_map: out_placements must have one item for each of {len(results)} results; "
                f"got {len(outs)}"
            )
        made = [_result(y, way, mesh, even) for y, way in zip(results, outs)]
        return pytree.tree_unflatten(made, form)

    return run


def _one_each(what: str, placements: Any, given: Sequence[Any]) -> Sequence[Any]:
    if placements is None:
        return [None] * len(given)
    if len(placements) != len(given):
        raise ValueError(
            f"local_map: {what} must have one item for each of {len(given)} arguments; got "
            f"{len(placements)}"
        )
    for i, (one, x) in enumerate(zip(placements, given)):
        if one is not None and not isinstance(x, clew.Tensor):
            raise ValueError(
                f"local_map: {what} must be None for argument {i}, which is no tensor; got {one}"
            )
    return list(placements)


def _lying(i: int, x: DTensor, wanted: Any, moves: bool) -> DTensor:
    if wanted is None or tuple(wanted) == x.placements:
        return x
    if not moves:
        raise ValueError(
            f"local_map: argument {i} must lie as {list(wanted)}; got {list(x.placements)}. "
            "redistribute() it, or pass redistribute_inputs=True"
        )
    return x.redistribute(placements=wanted)


def _is_even(x: DTensor) -> bool:
    count = [1] * x.ndim
    for i, p in enumerate(x.placements):
        if isinstance(p, Shard):
            count[p.dim] *= x.device_mesh.size(i)
    return all(size % n == 0 for size, n in zip(x.shape, count))


def _gradients(i: int, x: DTensor, outs: Sequence[Any]) -> Any:
    """How the gradient of an argument lies that nobody spoke of."""
    if not (x.requires_grad and clew.is_grad_enabled()):
        return None
    made: list[Placement] = list(x.placements)
    for k, p in enumerate(made):
        kinds = {isinstance(way[k], Replicate) for way in outs if way is not None}
        if not isinstance(p, Replicate) or kinds == {True}:
            made[k] = Replicate() if isinstance(p, Partial) else p
        elif len(kinds) == 2:
            raise ValueError(
                f"local_map: along dim {k} of the mesh argument {i} and some results are "
                "replicated and other results are not; say by in_grad_placements whether each "
                "process has all of its gradient (Replicate()) or a summand (Partial())"
            )
        else:
            made[k] = Partial()
    return made


def _result(y: Any, way: Any, mesh: Any, even: bool) -> Any:
    if not isinstance(y, clew.Tensor) or isinstance(y, DTensor) or way is None:
        if way is None and not isinstance(y, clew.Tensor):
            return y
        raise ValueError(
            "local_map: out_placements must be how the result lies where func gives a plain "
            f"tensor, and None where it gives none; got {way} for a {type(y).__name__}"
        )
    if even:
        return DTensor.from_local(y, mesh, way)
    sizes = list(y.shape)
    for i, p in enumerate(way):
        if isinstance(p, Shard):
            size = clew.tensor(sizes[p.dim])
            c10d.all_reduce(size, group=mesh.get_group(i))
            sizes[p.dim] = int(size)
    return DTensor.from_local(y, mesh, way, shape=sizes)
