"""Tensors that lie on several processes, and factories of them."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributed.device_mesh import DeviceMesh, init_device_mesh
from clew.distributed.tensor._api import DTensor, distribute_module, distribute_tensor
from clew.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]


def _made(whole: Any, device_mesh: Any, placements: Any, requires_grad: bool) -> DTensor:
    made = distribute_tensor(whole, device_mesh, placements)
    return made.requires_grad_(requires_grad)


def _sizes(size: Any) -> Any:
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """Zeros.

    Args:
        size: of the whole.
        requires_grad: whether it takes a gradient.
        dtype: its dtype.
        layout: accepted.
        device_mesh: the mesh; one of all processes if None.
        placements: how it lies along each dim of the mesh; replicated if None.
    """
    return _made(clew.zeros(_sizes(size), dtype=dtype), device_mesh, placements, requires_grad)


def ones(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """Ones; arguments as of `zeros`."""
    return _made(clew.ones(_sizes(size), dtype=dtype), device_mesh, placements, requires_grad)


def empty(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """Anything; arguments as of `zeros`."""
    return _made(clew.empty(_sizes(size), dtype=dtype), device_mesh, placements, requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """One value everywhere; the other arguments as of `zeros`."""
    return _made(clew.full(size, fill_value, dtype=dtype), device_mesh, placements, requires_grad)


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """Uniform numbers, the first process's; arguments as of `zeros`."""
    return _made(clew.rand(_sizes(size), dtype=dtype), device_mesh, placements, requires_grad)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Any = None,
    layout: Any = None,
    device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:
    """Normal numbers, the first process's; arguments as of `zeros`."""
    return _made(clew.randn(_sizes(size), dtype=dtype), device_mesh, placements, requires_grad)
