"""Processes in a grid, with a group along each dim."""

from __future__ import annotations

import math
import weakref
from typing import Any

import clew
from clew.distributed import distributed_c10d as c10d
from clew.distributed._groups import _state

__all__ = ["DeviceMesh", "init_device_mesh"]


# The newest mesh of each kind, by its processes and names.
_live: weakref.WeakValueDictionary[tuple[str, Any], DeviceMesh] = weakref.WeakValueDictionary()


class DeviceMesh:
    """A grid of processes, with a group along each of its dims.

    Args:
        device_type: "cpu".
        mesh: the global ranks in their places; all processes give the same.
        mesh_dim_names: names of the dims.
        args: not used.

    Example:
        >>> from clew.distributed.tensor import DeviceMesh
        >>> import clew.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> mesh = DeviceMesh("cpu", [[0]], mesh_dim_names=("data", "model"))
        >>> mesh.size(), mesh["data"].ndim
        (1, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Any = None,
        _groups: list[Any] | None = None,
        **args: Any,
    ) -> None:
        self.device_type = device_type
        self.mesh = clew.as_tensor(mesh, device="cpu").to(clew.int32)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        names = self.mesh_dim_names
        if names is not None and (len(names) != self.mesh.ndim or len(set(names)) != len(names)):
            raise RuntimeError(
                f"DeviceMesh: the {self.mesh.ndim} dims need as many different names; got {names}"
            )
        self._root: DeviceMesh | None = None  # the mesh that this one is a part of
        self._flattened: dict[str, DeviceMesh] = {}  # of the mesh that this one is a part of, too
        if not c10d.is_initialized():
            c10d.init_process_group("gloo")
        total, ranks = c10d.get_world_size(), self.mesh.reshape(-1).tolist()
        if len(set(ranks)) != len(ranks) or any(not 0 <= r < total for r in ranks):
            raise RuntimeError(
                f"DeviceMesh: the ranks must be distinct, of 0 to {total - 1}; got "
                f"{self.mesh.tolist()}"
            )
        where = (self.mesh == c10d.get_rank()).nonzero()
        self._place = where[0].tolist() if len(where) else None
        self._groups = self._make_groups() if _groups is None else _groups
        _live[_kind(self.mesh.tolist(), names)] = self

    def _make_groups(self) -> list[Any]:
        """A group along each dim; all processes make all groups, in one order.

        Of all processes there is one already. A group more for each mesh, such as that of each
        module of a model, takes one of MPI's communicators, of which there are some thousand; and
        what the ranks call is compared, and their gradients meet in shared memory, by group.
        """
        everyone = c10d._get_default_group()
        made = []
        for dim in range(self.ndim):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            mine = None
            for line in lines:
                one = everyone if line == everyone.ranks else c10d.new_group(line)
                if isinstance(one, c10d.ProcessGroup):
                    mine = one
            made.append(mine)
        return made

    @property
    def ndim(self) -> int:
        """How many dims the grid has."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.mesh.shape)

    def _dim(self, mesh_dim: Any) -> int:
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"DeviceMesh: no dim is named {mesh_dim!r}: {self.mesh_dim_names}")
            assert self.mesh_dim_names is not None
            return self.mesh_dim_names.index(mesh_dim)
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(f"DeviceMesh: name one of its {self.ndim} dims")
            return 0
        return int(mesh_dim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in all or along a dim.

        Args:
            mesh_dim: the dim's number; None for all.
        """
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process in the group of all."""
        return c10d.get_rank()

    def get_local_rank(self, mesh_dim: Any = None) -> int:
        """The place of this process along a dim.

        Args:
            mesh_dim: the dim's number or name; not needed where there is one dim.

        Raises:
            RuntimeError: if this process is not in the grid.
        """
        dim = self._dim(mesh_dim)
        if self._place is None:
            raise RuntimeError("DeviceMesh.get_local_rank: this process is not in the grid")
        return int(self._place[dim])

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process; None where it is not in the grid."""
        return None if self._place is None else tuple(self._place)

    def get_group(self, mesh_dim: Any = None) -> Any:
        """The group along a dim that this process is in; None where it is not in the grid.

        Args:
            mesh_dim: the dim's number or name; not needed where there is one dim.
        """
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dims."""
        return list(self._groups)

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Any = None
    ) -> DeviceMesh:
        """The mesh of a group of one dim, or of a list of groups, one for each dim.

        Args:
            group: a group that this process is in, or a list of them.
            device_type: "cpu".
            mesh: the global ranks in their places; needed for a list of groups.
            mesh_dim_names: names of the dims.

        Raises:
            ValueError: if a mesh is missing, or does not have a group for each dim.
        """
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("DeviceMesh.from_group: several groups need `mesh`")
            mesh = c10d.get_process_group_ranks(groups[0])
        places = clew.as_tensor(mesh, device="cpu")
        if places.ndim != len(groups):
            raise ValueError(
                f"DeviceMesh.from_group: a mesh of {places.ndim} dims needs as many groups; got "
                f"{len(groups)}"
            )
        return DeviceMesh(device_type, places, mesh_dim_names=mesh_dim_names, _groups=groups)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Its processes along one dim; `mesh[name]` gives the same from then on."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        if not name:
            raise RuntimeError("DeviceMesh._flatten: give a name, since the dims have none")
        found = self._flattened.get(name)
        if found is None:
            ranks = self.mesh.reshape(-1)
            # Only the members call it, and each for its own part of a larger mesh.
            group = c10d.new_group(ranks.tolist(), use_local_synchronization=True)
            found = DeviceMesh(self.device_type, ranks, mesh_dim_names=(name,), _groups=[group])
            self._flattened[name] = found
        return found

    def __getitem__(self, names: Any) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if len(wanted) == 1 and wanted[0] in self._flattened:
            return self._flattened[wanted[0]]
        dims = [self._dim(name) for name in wanted]
        place = self._place or [0] * self.ndim
        index = tuple(slice(None) if d in dims else place[d] for d in range(self.ndim))
        part = self.mesh[index]
        kept = sorted(dims)
        part = part.permute([kept.index(d) for d in dims])
        groups = [self._groups[d] for d in dims]
        made = DeviceMesh(self.device_type, part, mesh_dim_names=wanted, _groups=groups)
        made._flattened, made._root = self._flattened, self._root or self
        return made

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeviceMesh)
            and self.mesh_dim_names == other.mesh_dim_names
            and self.mesh.tolist() == other.mesh.tolist()
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}, {self.mesh_dim_names})"


def _kind(ranks: Any, names: Any) -> tuple[str, Any]:
    return str(ranks), None if names is None else tuple(names)


def live_mesh(ranks: Any, names: Any) -> DeviceMesh | None:
    """A mesh of these processes whose groups still exist, if there is one.

    Args:
        ranks: the processes in their places, as nested lists.
        names: of the dims, or None.
    """
    mesh = _live.get(_kind(ranks, names))
    alive = {id(group) for group in _state.groups}
    if mesh is None or not all(g is None or id(g) in alive for g in mesh._groups):
        return None
    return mesh


def init_device_mesh(
    device_type: str, mesh_shape: Any, *, mesh_dim_names: Any = None, **args: Any
) -> DeviceMesh:
    """Makes a grid of all processes, by rank; begins the group of all if there is none.

    Args:
        device_type: "cpu".
        mesh_shape: its sizes, whose product is the number of processes; one may be -1.
        mesh_dim_names: names of the dims.
        args: not used.

    Returns:
        A `DeviceMesh`.

    Raises:
        RuntimeError: if the processes do not fill a grid of these sizes.

    Example:
        >>> from clew.distributed.tensor import init_device_mesh
        >>> import clew.distributed as dist
        >>> mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
        >>> mesh.shape, mesh.get_coordinate()
        ((1, 1), (0, 0))
        >>> dist.destroy_process_group()
    """
    sizes = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    if not c10d.is_initialized():
        c10d.init_process_group("gloo")
    total = c10d.get_world_size()
    if -1 in sizes:
        rest = total // -math.prod(sizes)
        sizes = tuple(rest if n == -1 else n for n in sizes)
    if math.prod(sizes) != total:
        raise RuntimeError(f"init_device_mesh: {total} processes do not form a grid of {sizes}")
    ranks = clew.arange(total, dtype=clew.int32, device="cpu").reshape(sizes)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
