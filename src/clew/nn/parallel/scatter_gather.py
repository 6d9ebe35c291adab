"""Spreading values over devices: over one, they stay as they are."""

from __future__ import annotations

from typing import Any

import clew

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _need_one(name: str, devices: Any) -> None:
    if len(devices) > 1:
        raise RuntimeError(f"nn.parallel.{name}: clew computes on one device; got {devices}")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """The inputs for each device, in a list: there is one device, which gets them unchanged.

    Args:
        inputs: tensors in containers.
        target_gpus: the devices, at most one.
        dim: not used: nothing is cut.

    Returns:
        A tuple with the inputs.

    Raises:
        RuntimeError: for several devices.

    Example:
        >>> from clew.nn.parallel import scatter
        >>> scatter(clew.ones(2), [0])
        (tensor([1., 1.]),)
    """
    _need_one("scatter", target_gpus)
    return (inputs,)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0) -> tuple[Any, Any]:
    """The inputs and named inputs for each device, of which there is one: unchanged, in lists.

    Args:
        inputs: tensors in containers.
        kwargs: named ones.
        target_gpus: the devices, at most one.
        dim: not used: nothing is cut.

    Returns:
        A tuple with the inputs, and a tuple with the named ones.

    Raises:
        RuntimeError: for several devices.

    Example:
        >>> from clew.nn.parallel.scatter_gather import scatter_kwargs
        >>> scatter_kwargs((1, 2), {"scale": 3}, [0])
        (((1, 2),), ({'scale': 3},))
    """
    _need_one("scatter_kwargs", target_gpus)
    return (inputs,), (kwargs or {},)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Joins the outputs of all devices.

    Args:
        outputs: one of each device: a tensor, None, or dicts, lists and tuples of them.
        target_device: not used: tensors are on the CPU.
        dim: the dim along which tensors are joined.

    Returns:
        One output, with `clew.cat` of the tensors in its places.

    Example:
        >>> from clew.nn.parallel import gather
        >>> gather([clew.ones(1), clew.zeros(1)], "cpu")
        tensor([1., 0.])
    """
    first = outputs[0]
    if isinstance(first, clew.Tensor):
        return clew.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    return type(first)(gather(list(parts), target_device, dim) for parts in zip(*outputs))


def replicate(network: Any, devices: Any, detach: bool = False) -> list[Any]:
    """A list with a module for each device: the module itself, for there is one device.

    Args:
        network: the module.
        devices: the devices, at most one.
        detach: not used: there are no copies.

    Raises:
        RuntimeError: for several devices.

    Example:
        >>> from clew.nn.parallel.replicate import replicate
        >>> net = nn.Linear(2, 1)
        >>> replicate(net, [0])[0] is net
        True
    """
    _need_one("replicate", devices)
    return [network]


def parallel_apply(
    modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Calls each module with its inputs, one after another.

    Args:
        modules: the modules.
        inputs: the arguments of each, a tuple or a single one.
        kwargs_tup: the named arguments of each.
        devices: not used.

    Returns:
        A list of what they return.

    Example:
        >>> from clew.nn.parallel.parallel_apply import parallel_apply
        >>> parallel_apply([nn.ReLU(), nn.Tanh()], [clew.zeros(1), clew.zeros(1)])
        [tensor([0.]), tensor([0.])]
    """
    named = kwargs_tup or [{}] * len(modules)
    return [
        m(*(i if isinstance(i, tuple) else (i,)), **k) for m, i, k in zip(modules, inputs, named)
    ]
