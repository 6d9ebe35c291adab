"""Spreading values over devices: over one, they stay as they are."""

from __future__ import annotations

from typing import Any

import clew

__all__ = ["gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def _need_one(name: str, devices: Any) -> None:
    if len(devices) > 1:
        raise RuntimeError(f"nn.parallel.{name}: clew computes on one device; got {devices}")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """The inputs for each device.

    Args:
        inputs: tensors in containers.
        target_gpus: the devices: one.
        dim: the dim along which they would be cut.
    """
    _need_one("scatter", target_gpus)
    return (inputs,)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0) -> tuple[Any, Any]:
    """The inputs and named inputs for each device.

    Args:
        inputs: tensors in containers.
        kwargs: named ones.
        target_gpus: the devices: one.
        dim: the dim along which they would be cut.
    """
    _need_one("scatter_kwargs", target_gpus)
    return (inputs,), (kwargs or {},)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The outputs of all devices, joined.

    Args:
        outputs: one of each device.
        target_device: where they go.
        dim: the dim along which they are joined.
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
    """A module for each device.

    Args:
        network: the module.
        devices: the devices: one.
        detach: accepted.
    """
    _need_one("replicate", devices)
    return [network]


def parallel_apply(
    modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """What each module gives for its inputs.

    Args:
        modules: the modules.
        inputs: the arguments of each.
        kwargs_tup: the named arguments of each.
        devices: accepted.
    """
    named = kwargs_tup or [{}] * len(modules)
    return [
        m(*(i if isinstance(i, tuple) else (i,)), **k) for m, i, k in zip(modules, inputs, named)
    ]
