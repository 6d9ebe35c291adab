"""Processes in a grid: of one process, with as many dims as one likes."""

from __future__ import annotations

from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of one process.

    Args:
        device_type: "cpu".
        mesh: the ranks in their places: zeros.
        mesh_dim_names: names of the dims.
        args: accepted.

    Example:
        >>> mesh = DeviceMesh("cpu", [[0]], mesh_dim_names=("data", "model"))
        >>> mesh.size(), mesh["data"].ndim
        (1, 1)
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Any = None, **args: Any
    ) -> None:
        self.device_type = device_type
        self.mesh = clew.as_tensor(mesh).to(clew.int32)
        if self.mesh.numel() != 1 or int(self.mesh.reshape(-1)[0].item()) != 0:
            raise NotImplementedError(
                f"DeviceMesh: clew's groups have one process, of rank 0; got {self.mesh.tolist()}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)

    @property
    def ndim(self) -> int:
        """How many dims the grid has."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes, all 1."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """1."""
        return 1

    def get_rank(self) -> int:
        """0."""
        return 0

    def get_local_rank(self, mesh_dim: Any = None) -> int:
        """0."""
        return 0

    def get_coordinate(self) -> list[int]:
        """The place of this process."""
        return [0] * self.ndim

    def get_group(self, mesh_dim: Any = None) -> Any:
        """The group along a dim."""
        return c10d.new_group([0])

    def get_all_groups(self) -> list[Any]:
        """The groups along all dims."""
        return [self.get_group() for _ in range(self.ndim)]

    def __getitem__(self, names: Any) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        for name in wanted:
            if name not in (self.mesh_dim_names or ()):
                raise KeyError(f"DeviceMesh: no dim is named {name!r}: {self.mesh_dim_names}")
        zeros = clew.zeros((1,) * len(wanted), dtype=clew.int32)
        return DeviceMesh(self.device_type, zeros, mesh_dim_names=wanted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self.mesh_dim_names == other.mesh_dim_names

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}, {self.mesh_dim_names})"


def init_device_mesh(
    device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None, **args: Any
) -> DeviceMesh:
    """A grid of all processes.

    Args:
        device_type: "cpu".
        mesh_shape: its sizes, all 1.
        mesh_dim_names: names of the dims.
        args: accepted.
    """
    sizes = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    if any(n not in (1, -1) for n in sizes):
        raise RuntimeError(f"init_device_mesh: there is one process; got a grid of {sizes}")
    if not c10d.is_initialized():
        c10d.init_process_group("gloo")
    zeros = clew.zeros((1,) * len(sizes), dtype=clew.int32)
    return DeviceMesh(device_type, zeros, mesh_dim_names=mesh_dim_names)
