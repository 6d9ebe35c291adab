"""Meshes of processes, by their earlier path."""

from clew.distributed.device_mesh import DeviceMesh as DeviceMesh
from clew.distributed.device_mesh import init_device_mesh as init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
