"""Tensors that lie on several processes, and factories of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.distributed.device_mesh import DeviceMesh, init_device_mesh

from . import _rules as _rules  # it tells DTensor what to do
from ._api import DTensor, distribute_module, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

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


def _sizes(size: tuple[Any, ...]) -> Any:
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else size


def _made(make: Callable[..., clew.Tensor], *given: Any, **options: Any) -> DTensor:
    """One whole on every process, of which each keeps its part."""
    known = {"requires_grad", "dtype", "layout", "device_mesh", "placements"}
    if unknown := sorted(options.keys() - known):
        raise TypeError(
            f"distributed.tensor.{make.__name__}: unexpected keyword argument {unknown[0]!r}"
        )
    if options.get("layout") not in (None, clew.strided):
        raise NotImplementedError(
            f"distributed.tensor.{make.__name__}: layout must be clew.strided; got "
            f"{options['layout']}"
        )
    whole = make(*given, dtype=options.get("dtype"))
    made = distribute_tensor(whole, options.get("device_mesh"), options.get("placements"))
    return made.requires_grad_(options.get("requires_grad", False))


def zeros(*size: Any, **options: Any) -> DTensor:
    """A distributed tensor of zeros.

    Args:
        size: of the whole.
        options: by name: `requires_grad`, whether it takes a gradient; `dtype`; `layout`, None or
            `clew.strided`; `device_mesh`, one of all processes if None; `placements`, how it lies
            along each dim of the mesh, replicated if None.

    Returns:
        A DTensor.

    Example:
        >>> from clew.distributed.tensor import Shard, init_device_mesh, zeros
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> zeros(2, 3, device_mesh=mesh, placements=[Shard(0)]).placements
        (Shard(dim=0),)
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.zeros, _sizes(size), **options)


def ones(*size: Any, **options: Any) -> DTensor:
    """A distributed tensor of ones; arguments as of `zeros`.

    Example:
        >>> from clew.distributed.tensor import ones
        >>> ones(2).full_tensor()
        tensor([1., 1.])
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.ones, _sizes(size), **options)


def empty(*size: Any, **options: Any) -> DTensor:
    """A distributed tensor of any numbers; arguments as of `zeros`.

    Example:
        >>> from clew.distributed.tensor import empty
        >>> empty(2, 3).shape
        clew.Size([2, 3])
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.empty, _sizes(size), **options)


def full(size: Any, fill_value: Any, **options: Any) -> DTensor:
    """A distributed tensor of one value everywhere.

    Args:
        size: of the whole.
        fill_value: the value.
        options: as of `zeros`.

    Example:
        >>> from clew.distributed.tensor import full
        >>> full((2,), 3.0).full_tensor()
        tensor([3., 3.])
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.full, size, fill_value, **options)


def rand(*size: Any, **options: Any) -> DTensor:
    """A distributed tensor of uniform numbers in [0, 1), drawn by the first process.

    Args:
        size: of the whole.
        options: as of `zeros`.

    Example:
        >>> from clew.distributed.tensor import rand
        >>> rand(2, 3).shape
        clew.Size([2, 3])
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.rand, _sizes(size), **options)


def randn(*size: Any, **options: Any) -> DTensor:
    """A distributed tensor of standard normal numbers, drawn by the first process.

    Args:
        size: of the whole.
        options: as of `zeros`.

    Example:
        >>> from clew.distributed.tensor import randn
        >>> randn(2, 3).shape
        clew.Size([2, 3])
        >>> clew.distributed.destroy_process_group()
    """
    return _made(clew.randn, _sizes(size), **options)
