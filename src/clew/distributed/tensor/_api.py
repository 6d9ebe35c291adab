"""DTensor: a tensor whose parts lie on the processes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import clew
from clew._base.overriding import DisableTorchFunctionSubclass
from clew._C import Tensor
from clew.distributed import distributed_c10d as c10d
from clew.distributed.device_mesh import DeviceMesh, init_device_mesh
from clew.distributed.tensor._redistribute import (
    alike,
    in_first,
    local_sizes,
    redistribute_local,
    sum_gradients,
    summand,
)
from clew.distributed.tensor._saving import makers, parts_of, rebuilt
from clew.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    normalized,
)

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


def _whole_mesh(mesh: Any) -> DeviceMesh:
    if mesh is None:
        return init_device_mesh("cpu", (c10d.get_world_size(),) if c10d.is_initialized() else (1,))
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"DTensor: device_mesh must be a DeviceMesh; got {type(mesh).__name__}")
    return mesh


def _expect_equal(sizes: Sequence[int], mesh: DeviceMesh) -> None:
    """Raises where processes would make wholes of different sizes."""
    ends = clew.tensor([*sizes, *(-s for s in sizes)])
    for i in range(mesh.ndim):
        c10d.all_reduce(ends, c10d.ReduceOp.MAX, mesh.get_group(i))
    most, least = ends[: len(sizes)].tolist(), [-s for s in ends[len(sizes) :].tolist()]
    if most != least:
        raise ValueError(
            f"DTensor.from_local: the parts are of unequal sizes, from which processes find wholes "
            f"of up to {tuple(most)} and of {tuple(least)}; give the whole's by shape and stride"
        )


_GRAD: Any = vars(Tensor)["grad"]


# What runs a call; clew.distributed.tensor._rules fills it.
rules: dict[str, Callable[..., Any]] = {}


class DTensor(Tensor):
    """A tensor of which each process of a mesh has a part; operations on it are the whole's.

    What a process holds is this object's own memory, so optimizers and initialisation in place work
    on it. An operation moves what has to be moved, computes on each process's part, and says how
    the result lies. `DTensor.from_local` and `distribute_tensor` make one; `data` and `device`,
    which the class takes as `Tensor` does, leave out where the parts lie.

    Example:
        >>> from clew.distributed.tensor import DTensor, Shard, init_device_mesh
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> x = DTensor.from_local(clew.ones(2, 3), mesh, [Shard(0)])
        >>> (x @ x.mT).full_tensor().tolist()
        [[3.0, 3.0], [3.0, 3.0]]
        >>> clew.distributed.destroy_process_group()
    """

    _mesh: Any
    _placements: tuple[Placement, ...]
    _sizes: tuple[int, ...]
    _copied = False  # a view that other processes' elements had to come for, so it is none

    # ---- making and taking apart ----

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor of which every process gives its part.

        Args:
            local_tensor: this process's part; gradients go through.
            device_mesh: the mesh; one of all processes if None.
            placements: how it lies along each dim of the mesh; replicated if None.
            run_check: compare the parts' sizes, and send what is replicated from the first process
                to the others.
            shape: of the whole; needed where the parts are of unequal sizes.
            stride: accepted; the whole has no memory.
            grad_placements: how the part's gradient is to lie. That of a shard is a shard, any
                other whole; `Partial()` makes it the first process's, and zeros on the others.
        """
        mesh = _whole_mesh(device_mesh)
        if isinstance(local_tensor, DTensor):
            raise TypeError("DTensor.from_local: the part must be a plain tensor; got a DTensor")
        kinds = normalized(placements, mesh.ndim, local_tensor.ndim)
        if shape is None:
            sizes = list(local_tensor.shape)
            for i, p in enumerate(kinds):
                if isinstance(p, Shard):
                    sizes[p.dim] *= mesh.size(i)
        else:
            sizes = list(shape)
            mine = local_sizes(sizes, mesh, kinds, mesh.get_coordinate() or [0] * mesh.ndim)[0]
            if mine != list(local_tensor.shape):
                raise ValueError(
                    f"DTensor.from_local: a whole of {tuple(sizes)} under {list(kinds)} has a part "
                    f"of {tuple(mine)} here; got {tuple(local_tensor.shape)}"
                )
        if run_check:
            _expect_equal(sizes, mesh)
            local_tensor = local_tensor.clone()
            for i, p in enumerate(kinds):
                if isinstance(p, Replicate):
                    c10d.broadcast(local_tensor.detach(), group=mesh.get_group(i), group_src=0)
        hints: Sequence[Any] = [None] * mesh.ndim
        if grad_placements is not None:
            hints = normalized(grad_placements, mesh.ndim, local_tensor.ndim)
        sums, firsts = [], []
        for i, (kind, hint) in enumerate(zip(kinds, hints)):
            linear = isinstance(kind, Partial) and kind._linear
            if isinstance(hint, Partial) and (linear or isinstance(kind, Replicate)):
                firsts.append(mesh.get_group(i))
            elif linear and (hint is None or isinstance(hint, Replicate)):
                sums.append(mesh.get_group(i))
            elif hint is not None and hint != kind:
                raise NotImplementedError(
                    f"DTensor.from_local: a gradient that lies as {hint} of what lies as {kind}; "
                    "redistribute() it"
                )
        made = summand(in_first(local_tensor, firsts), sums)
        return wrap(made, mesh, kinds, sizes)

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """This process's part; gradients go through.

        Args:
            grad_placements: how the part's gradient lies, where that is not how the part lies:
                `Partial()` where the part is replicated and each process computes something else.

        Returns:
            A plain tensor.
        """
        kinds: Sequence[Any] = [None] * self._mesh.ndim
        if grad_placements is not None:
            kinds = normalized(grad_placements, self._mesh.ndim, self.ndim)
        summed, equal = [], []
        for i, (mine, given) in enumerate(zip(self._placements, kinds)):
            linear = isinstance(mine, Partial) and mine._linear
            if linear and (given is None or isinstance(given, Replicate)):
                equal.append(self._mesh.get_group(i))
            elif isinstance(given, Partial) and (linear or isinstance(mine, Replicate)):
                summed.append(self._mesh.get_group(i))
            elif given is not None and given != mine:
                raise NotImplementedError(
                    f"DTensor.to_local: a gradient that lies as {given} of what lies as {mine}; "
                    "redistribute() first"
                )
        local = part_of(self)
        return alike(sum_gradients(local, summed), equal)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor lying in another way; gradients go back the same way.

        Args:
            device_mesh: None, or its own.
            placements: how it is to lie along each dim of the mesh.
            async_op: accepted; the move is complete when this returns.
            forward_dtype: the dtype in which it moves.
            backward_dtype: must be None.
        """
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("DTensor.redistribute: to another mesh; use full_tensor()")
        if placements is None:
            raise RuntimeError("DTensor.redistribute: placements are needed")
        if backward_dtype is not None:
            raise NotImplementedError("DTensor.redistribute: backward_dtype must be None")
        kinds = normalized(placements, self._mesh.ndim, self.ndim)
        local = part_of(self)
        if forward_dtype is not None:
            local = local.to(forward_dtype)
        moved = redistribute_local(local, self._sizes, self._mesh, self._placements, kinds)
        return wrap(moved, self._mesh, kinds, self._sizes)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole, on every process.

        Args:
            grad_placements: as of to_local().
        """
        whole = self.redistribute(placements=[Replicate()] * self._mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- what it is ----

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self._mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dim of the mesh."""
        return self._placements

    @property
    def _local_tensor(self) -> Tensor:
        return part_of(self)

    @property
    def shape(self) -> Any:
        """Sizes of the whole."""
        return clew.Size(self._sizes)

    @property
    def grad(self) -> Any:
        """The gradient, lying like the tensor; whole where the tensor is a sum of parts."""
        with DisableTorchFunctionSubclass():
            own = _GRAD.__get__(self)
        return None if own is None else self._as_gradient(own)

    @grad.setter
    def grad(self, value: Any) -> None:
        part = self._gradient_part(value)
        with DisableTorchFunctionSubclass():
            _GRAD.__set__(self, part)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _gradient_placements(self) -> tuple[Placement, ...]:
        # A summand's gradient is that of the sum.
        sums = [isinstance(p, Partial) and p._linear for p in self._placements]
        return tuple(Replicate() if s else p for s, p in zip(sums, self._placements))

    def _as_gradient(self, own: Tensor) -> DTensor:
        """The gradient of which this is the process's part, which is all that a graph knows."""
        return wrap(own, self._mesh, self._gradient_placements(), self._sizes)

    def _outline(self) -> DTensor:
        """A tensor that lies alike, without elements."""
        return self._with_part(clew.empty(0, dtype=self.dtype))

    def _with_part(self, part: Tensor) -> DTensor:
        return wrap(part, self._mesh, self._placements, self._sizes)

    def _gradient_part(self, value: Any) -> Any:
        """This process's part of a gradient that may lie in another way than the tensor."""
        if not isinstance(value, DTensor):
            return value
        return part_of(value.redistribute(placements=self._gradient_placements()))

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls a function with the gradient, each time it is computed.

        Args:
            hook: hook(grad), where a tensor that it returns replaces the gradient.

        Returns:
            A handle, whose remove() takes the hook out.
        """
        whole = self._outline()  # not self: its hooks would keep it

        def with_part(grad: Tensor) -> Any:
            return whole._gradient_part(hook(whole._as_gradient(grad)))

        with DisableTorchFunctionSubclass():
            return super().register_hook(with_part)

    def _refuse(self, name: str) -> Any:
        raise NotImplementedError(
            f"DTensor: {name} of a distributed tensor; use full_tensor(), which every process has, "
            "or to_local(), this process's part, as local_map() does"
        )

    def size(self, dim: int | None = None) -> Any:
        """Sizes of the whole, or one of them."""
        return self.shape if dim is None else self._sizes[dim]

    def numel(self) -> int:
        """How many elements the whole has."""
        n = 1
        for s in self._sizes:
            n *= s
        return n

    nelement = numel

    @property
    def nbytes(self) -> int:
        """How many bytes the whole's elements take."""
        return self.numel() * self.element_size()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.full_tensor().__array__(*args, **kwargs)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return self._refuse("__dlpack__()")

    def __len__(self) -> int:
        if not self._sizes:
            raise TypeError("len() of a 0-d tensor")
        return self._sizes[0]

    def __repr__(self, *args: Any, **kwargs: Any) -> str:
        return (
            f"DTensor(local_tensor={part_of(self).detach()!r}, device_mesh={self._mesh!r}, "
            f"placements={list(self._placements)})"
        )

    def __format__(self, spec: str) -> str:
        if all(isinstance(p, Replicate) for p in self._placements):
            return format(part_of(self), spec)
        if spec:
            self._refuse("format()")
        return repr(self)

    def _part_to_step(self, state: dict[str, Any]) -> tuple[Tensor, dict[str, Any]] | None:
        """This process's part with its gradient, and its part of an optimizer's state.

        None where they do not lie alike, or the state is not complete yet.
        """
        with DisableTorchFunctionSubclass():
            grad = self.grad
        ways = self._placements
        alike = isinstance(grad, DTensor) and grad._placements == ways
        if not alike or any(isinstance(way, Partial) for way in ways):
            return None
        parts: dict[str, Any] = {}
        for name, value in state.items():
            if isinstance(value, DTensor) and value._placements == ways:
                parts[name] = part_of(value)
            elif type(value) is Tensor and value.numel() == 1:
                parts[name] = value
            else:
                return None
        own = part_of(self).detach()
        own.grad = part_of(grad).detach()
        return own, parts

    def _distributed_parts(self) -> tuple[Any, ...]:
        """This process's part and how the whole lies, for a file of this process."""
        with DisableTorchFunctionSubclass():
            local = self.as_subclass(Tensor).detach()
        return parts_of(self, local)

    def _copy_of_whole(self, dtype: Any, device: Any) -> Tensor:
        """What tensor() and new_tensor() make of this."""
        return self.detach().to(device=device, dtype=dtype, copy=True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, self._distributed_parts()

    def __deepcopy__(self, memo: Any) -> Any:
        with DisableTorchFunctionSubclass():
            local = self.as_subclass(Tensor).detach().clone()
        made = wrap(local, self._mesh, self._placements, self._sizes)
        made.requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            made._is_param = True  # type: ignore[attr-defined]
        memo[id(self)] = made
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return rules["call"](func, args, kwargs or {})


makers["from_local"] = DTensor.from_local


def part_of(x: DTensor) -> Tensor:
    """This process's part, recorded."""
    with DisableTorchFunctionSubclass():
        return x.as_subclass(Tensor)


def wrap(local: Any, mesh: Any, placements: Sequence[Placement], sizes: Sequence[int]) -> DTensor:
    """The tensor of which this is a process's part."""
    with DisableTorchFunctionSubclass():
        made = local.as_subclass(DTensor)
    made._mesh, made._placements, made._sizes = mesh, tuple(placements), tuple(sizes)
    return made


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A tensor that every process has, in parts.

    Args:
        tensor: the whole; a leaf's parts are leaves.
        device_mesh: the mesh; one of all processes if None.
        placements: how it is to lie along each dim of the mesh; replicated if None.
        src_data_rank: the place in each group of the process whose values count; with None each
            process takes its own.

    Example:
        >>> from clew.distributed.tensor import Shard, distribute_tensor, init_device_mesh
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> distribute_tensor(clew.arange(4), mesh, [Shard(0)]).placements
        (Shard(dim=0),)
        >>> clew.distributed.destroy_process_group()
    """
    mesh = _whole_mesh(device_mesh)
    kinds = normalized(placements, mesh.ndim, tensor.ndim)
    if isinstance(tensor, DTensor):
        return tensor.redistribute(placements=kinds)
    if any(isinstance(p, Partial) for p in kinds):
        raise ValueError(f"distribute_tensor: a whole is not partial; got {list(kinds)}")
    if mesh.get_coordinate() is None:
        raise RuntimeError("distribute_tensor: this process is not in the mesh")
    if not tensor.is_leaf:
        raise RuntimeError("distribute_tensor: the tensor must be a leaf; see DTensor.from_local")
    needs = tensor.requires_grad
    whole = tensor.detach().clone()
    if src_data_rank is not None:
        for i in range(mesh.ndim):
            c10d.broadcast(whole, group=mesh.get_group(i), group_src=src_data_rank)
    same = [Replicate()] * mesh.ndim
    local = redistribute_local(whole, whole.shape, mesh, same, kinds).detach()
    made = wrap(local, mesh, kinds, whole.shape)
    return made.requires_grad_(needs)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Any = None,
    output_fn: Any = None,
) -> Any:
    """A module whose parameters and buffers are distributed.

    Args:
        module: is changed, and returned.
        device_mesh: the mesh; one of all processes if None.
        partition_fn: called with each submodule's name, the submodule, and the mesh; replaces
            parameters. What it leaves is replicated.
        input_fn: called with the module, its inputs, and the mesh, before the module.
        output_fn: called with the module, its output, and the mesh, after it.

    Example:
        >>> from clew.distributed.tensor import distribute_module
        >>> from clew.distributed.tensor import init_device_mesh
        >>> net = distribute_module(nn.Linear(2, 1), init_device_mesh("cpu", (1,)))
        >>> net.weight.placements
        (Replicate(),)
        >>> clew.distributed.destroy_process_group()
    """
    mesh = _whole_mesh(device_mesh)
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate_rest(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, output: output_fn(m, output, mesh))
    return module


def replicate_rest(module: Any, mesh: DeviceMesh) -> None:
    """Replicates the parameters and buffers of a module itself that are plain tensors."""
    for name, p in module._parameters.items():
        if p is not None and not isinstance(p, DTensor):
            set_parameter(module, name, p, mesh, [Replicate()] * mesh.ndim)
    for name, b in module._buffers.items():
        if b is not None and not isinstance(b, DTensor):
            module._buffers[name] = distribute_tensor(b, mesh)


def set_parameter(
    module: Any, name: str, p: Any, mesh: DeviceMesh, placements: Any, src_data_rank: Any = 0
) -> None:
    """Puts a distributed parameter in the place of a plain one."""
    if isinstance(p, DTensor):
        return
    from clew.nn.parameter import Parameter

    made = distribute_tensor(p.detach(), mesh, placements, src_data_rank=src_data_rank)
    module.register_parameter(name, Parameter(made, requires_grad=p.requires_grad))
