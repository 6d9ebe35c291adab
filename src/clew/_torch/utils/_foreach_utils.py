"""Tensors by device and dtype, for operations on lists of them."""

from __future__ import annotations

from typing import Any

from clew.optim import Optimizer

__all__ = ["_group_tensors_by_device_and_dtype"]


_group_tensors_by_device_and_dtype = Optimizer._group_tensors_by_device_and_dtype


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices whose lists are one kernel: none."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _has_foreach_support(tensors: Any, device: Any) -> bool:
    """Whether all are tensors on such a device: no."""
    return False


def _device_has_foreach_support(device: Any) -> bool:
    """Whether lists on a device are one kernel: no."""
    return False
