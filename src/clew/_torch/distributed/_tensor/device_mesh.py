"""The name that `clew.distributed.device_mesh` had in older versions of PyTorch."""

from __future__ import annotations

from clew.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
