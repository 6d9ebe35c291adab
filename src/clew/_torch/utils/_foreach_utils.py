"""Tensors by device and dtype, for operations on lists of them."""

from __future__ import annotations

from typing import Any

__all__ = ["_group_tensors_by_device_and_dtype"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[Any, tuple[list[list[Any]], list[int]]]:
    """Several lists, split alike by device and dtype of the first one's tensors; the places too."""
    groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        lists, places = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for column, items in zip(lists, tensorlistlist):
            if items:
                column.append(items[i])
        places.append(i)
    return groups


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
