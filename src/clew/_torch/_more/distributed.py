"""What programs ask of a group."""

from __future__ import annotations

from typing import Any

_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "hpu": "hccl"}


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is outside of a group."""
    from clew.distributed import GroupMember

    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def get_default_backend_for_device(device: Any) -> str:
    """The backend that programs name for a device, such as "gloo" for the CPU.

    Args:
        device: a device, or its name.

    Raises:
        ValueError: for other devices.
    """
    kind = device.split(":")[0] if isinstance(device, str) else getattr(device, "type", None)
    if kind not in _BACKENDS:
        raise ValueError(f"get_default_backend_for_device: no backend is known for {device!r}")
    return _BACKENDS[kind]
