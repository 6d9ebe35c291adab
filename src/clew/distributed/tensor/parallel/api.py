"""Applying styles to a module's parts by name."""

from __future__ import annotations

import fnmatch
import warnings
from typing import Any

from clew.distributed.tensor._api import DTensor, _whole_mesh
from clew.distributed.tensor.parallel.style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any,
    device_mesh: Any = None,
    parallelize_plan: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Divides a module between the processes of a one-dimensional mesh.

    Args:
        module: is changed, and returned.
        device_mesh: the mesh; one of all processes if None.
        parallelize_plan: a style for the module, or styles by the names of its parts, in which `*`
            stands for any name. A parameter that several parts share stays one where it is divided
            alike.
        src_data_rank: the process whose parameters count; with None each takes its own.

    Returns:
        The module.

    Example:
        >>> from clew.distributed.tensor.parallel import parallelize_module
        >>> from clew.distributed.tensor import init_device_mesh
        >>> from clew.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
        >>> net = clew.nn.Sequential(clew.nn.Linear(4, 8), clew.nn.ReLU(), clew.nn.Linear(8, 2))
        >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        >>> net = parallelize_module(net, init_device_mesh("cpu", (1,)), plan)
        >>> net(clew.ones(1, 4)).shape
        clew.Size([1, 2])
        >>> clew.distributed.destroy_process_group()
    """
    mesh = _whole_mesh(device_mesh)
    if parallelize_plan is None:
        warnings.warn("parallelize_module: there is no plan, so nothing is divided", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "parallelize_module: the plan must be a ParallelStyle or a dict of them; got "
            f"{type(parallelize_plan).__name__}"
        )
    tied = _tied(module)
    for path, style in parallelize_plan.items():
        found = [module]  # an empty path is the module itself
        for name in path.split(".") if path else ():
            found = [
                part
                for one in found
                for own, part in one.named_children()
                if fnmatch.fnmatch(own, name)
            ]
        if not found:
            warnings.warn(
                f"parallelize_module: the module has no part {path!r}; its parts are "
                f"{[n for n, _ in module.named_modules() if n][:8]}",
                stacklevel=2,
            )
        for part in found:
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    for places in tied:
        _tie(places)
    return module


def _tied(module: Any) -> list[list[tuple[Any, str]]]:
    """Where parameters are that are in several places."""
    places: dict[int, list[tuple[Any, str]]] = {}
    for part in module.modules():
        for name, p in part._parameters.items():
            if p is not None:
                places.setdefault(id(p), []).append((part, name))
    return [at for at in places.values() if len(at) > 1]


def _tie(places: list[tuple[Any, str]]) -> None:
    """Makes one parameter again of those that a plan made of one."""
    made = [owner._parameters[name] for owner, name in places]
    first = made[0]
    if all(p is first for p in made):
        return
    if all(isinstance(p, DTensor) and p.placements == first.placements for p in made):
        for owner, name in places:
            owner._parameters[name] = first
        return
    warnings.warn(
        "parallelize_module: a parameter that several parts share is divided in other ways by "
        f"their styles, and is one for each from now on: {[name for _, name in places]} of "
        f"{[type(owner).__name__ for owner, _ in places]}",
        stacklevel=3,
    )
