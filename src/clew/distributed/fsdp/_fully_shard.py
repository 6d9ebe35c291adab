"""fully_shard: parameters, gradients and optimizer state in parts (Zhao et al., FSDP, 2023).

Between uses a parameter is a DTensor cut along its first dim. When a module is called its
parameters are put together by one recorded operation, whose gradient cuts the sums of the
gradients. What the module's operations save of them is not kept: it is put together again when
backward asks for it. While one module works, the next one's parameters are on their way.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import clew
from clew import nn
from clew.distributed.fsdp._shard_group import _Group, _Member
from clew.distributed.tensor import DTensor, Partial, Replicate, Shard
from clew.distributed.tensor._api import _whole_mesh, distribute_tensor, part_of, wrap
from clew.distributed.tensor.placement_types import _StridedShard
from clew.utils._second_runs import within

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of the work on sharded parameters.

    Args:
        param_dtype: of parameters while they are whole, and so of the computation.
        reduce_dtype: in which gradients are added; param_dtype if None.
        output_dtype: of the module's outputs.
        cast_forward_inputs: make floating inputs param_dtype.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts lie in the CPU's memory; here they always do.

    Args:
        pin_memory: accepted.
    """

    pin_memory: bool = True


class UnshardHandle:
    """What `unshard(async_op=True)` gives, to wait for.

    Args:
        group: the parameters that are put together.

    Example:
        >>> from clew.distributed.tensor import DTensor
        >>> from clew.distributed.fsdp import UnshardHandle, fully_shard
        >>> import clew.distributed as dist
        >>> model = fully_shard(nn.Linear(4, 2))
        >>> handle: UnshardHandle = model.unshard(async_op=True)
        >>> handle.wait()
        >>> type(model.weight) is DTensor
        False
        >>> dist.destroy_process_group()
    """

    def __init__(self, group: Any) -> None:
        self._group = group

    def wait(self) -> None:
        """Waits until the parameters are whole."""
        if self._group.whole is None:
            self._group.unshard()


class FSDPModule:
    """The class that `fully_shard` adds to a module's own.

    Example:
        >>> from clew.distributed.fsdp import FSDPModule, fully_shard
        >>> import clew.distributed as dist
        >>> model = fully_shard(nn.Linear(4, 2))
        >>> isinstance(model, FSDPModule), isinstance(model, nn.Linear)
        (True, True)
        >>> dist.destroy_process_group()
    """

    _fsdp_group: Any

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError(
            "fully_shard: a sharded module cannot be copied, for its parts belong to groups of "
            "processes; copy its state_dict(), or the module before it is sharded"
        )

    def _groups(self, recurse: bool) -> list[Any]:
        parts = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return [p._fsdp_group for p in parts if isinstance(p, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Puts this module's parameters together.

        Args:
            async_op: give a handle to wait for instead of waiting.
        """
        group = self._fsdp_group
        if async_op:
            group.renew()
            if group.whole is None and group.pending is None:
                with clew.no_grad():
                    group.pending = group._begin()
            return UnshardHandle(group)
        UnshardHandle(group).wait()
        return None

    def reshard(self) -> None:
        """Lets go of whole parameters."""
        self._fsdp_group.reshard()

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward adds gradients up over the processes.

        Args:
            requires_gradient_sync: with False whole gradients are kept until a backward with True.
            recurse: the modules within, too.
        """
        for group in self._groups(recurse):
            group.sync = bool(requires_gradient_sync)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters go after forward.

        Args:
            reshard_after_forward: whether they do.
            recurse: of the modules within, too.
        """
        for group in self._groups(recurse):
            group.reshard_after_forward = bool(reshard_after_forward)

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether whole values go after backward.

        Args:
            reshard_after_backward: with False they are kept, and need not be put together again
                until the optimizer's next step.
            recurse: of the modules within, too.
        """
        for group in self._groups(recurse):
            group.reshard_after_backward = bool(reshard_after_backward)

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward adds gradients up over the copies, on a mesh of two dims.

        Args:
            requires_all_reduce: with False what is added up over the shards waits for a backward
                with True.
            recurse: of the modules within, too.
        """
        for group in self._groups(recurse):
            group.all_reduce = bool(requires_all_reduce)

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Says whether more backward passes follow; here each ends with its own gradients.

        Args:
            is_last_backward: needs no answer.
        """

    def set_post_optim_event(self, event: Any) -> None:
        """Says when the optimizer is done, to streams of a device; here it is when it returns.

        Args:
            event: needs no answer.
        """

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Says whether backward needs this module's parameters; here it asks for what it needs.

        Args:
            unshard_in_backward: needs no answer.
        """

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by, instead of the number of processes.

        Args:
            factor: the number.
        """
        self._fsdp_group.divide = factor

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Which modules' parameters are on their way while this one works.

        Args:
            modules: the first one counts.
        """
        self._fsdp_group.given.add("after")
        self._fsdp_group.after = weakref.ref(modules[0]._fsdp_group) if modules else None

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """The same in backward.

        Args:
            modules: the first one counts.
        """
        self._fsdp_group.given.add("before")
        self._fsdp_group.before = weakref.ref(modules[0]._fsdp_group) if modules else None


class _Order(threading.local):
    """Which group is used after which, within a thread's outermost call."""

    depth = 0
    last: Any = None


_order = _Order()


def _around(module: Any, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    group = module._fsdp_group
    outermost = _order.depth == 0
    if outermost:
        _order.last = None
    policy = group.policy
    if policy.param_dtype is not None and policy.cast_forward_inputs:
        args, kwargs = _cast((args, kwargs), policy.param_dtype)
    last = _order.last() if _order.last is not None else None
    if last is not None and last is not group:
        if "after" not in last.given:
            last.after = weakref.ref(group)
        if "before" not in group.given:
            group.before = weakref.ref(last)
    _order.last = weakref.ref(group)
    reshard = group.reshard_after_forward
    reshard = (not outermost) if reshard is None else reshard
    _order.depth += 1
    group.calls += 1
    try:
        if group.calls == 1:
            group.unshard()
            group.ahead(group.after)
        with (
            group.hooks() if reshard and clew.is_grad_enabled() else nullcontext(),
            within(group.whole_again),
        ):
            output = run(*args, **kwargs)
    except BaseException:
        reshard = True  # no backward follows, which would let go of what is whole
        group.give_up()
        raise
    finally:
        _order.depth -= 1
        group.calls -= 1
        if reshard or not clew.is_grad_enabled():
            group.reshard()
    return output if policy.output_dtype is None else _cast(output, policy.output_dtype)


def _cast(x: Any, dtype: Any) -> Any:
    if isinstance(x, clew.Tensor):
        return x.to(dtype) if x.is_floating_point() else x
    if isinstance(x, dict):
        return {k: _cast(v, dtype) for k, v in x.items()}
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(_cast(v, dtype) for v in x)
    return x


_classes: dict[type, type] = {}


def _class_of(kind: Any) -> type:
    """The class that is `kind` and an FSDPModule."""
    if kind in _classes:
        return _classes[kind]

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        own = kind.forward
        return _around(self, functools.partial(own, self), args, kwargs)

    made = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"forward": forward})
    return _classes.setdefault(kind, made)


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Has another method put the parameters together as forward does.

    Args:
        module: what `fully_shard` returned; others are left alone.
        method_name: its name.

    Example:
        >>> from clew.distributed.fsdp import fully_shard, register_fsdp_forward_method
        >>> import clew.distributed as dist
        >>> class Net(nn.Linear):
        ...     def logits(self, x):
        ...         return self(x).log_softmax(-1)
        >>> model = fully_shard(Net(4, 2))
        >>> register_fsdp_forward_method(model, "logits")
        >>> model.logits(clew.ones(1, 4)).shape
        clew.Size([1, 2])
        >>> dist.destroy_process_group()
    """
    if not isinstance(module, FSDPModule):
        return
    own = getattr(module, method_name)

    @functools.wraps(own)
    def method(*args: Any, **kwargs: Any) -> Any:
        return _around(module, own, args, kwargs)

    setattr(module, method_name, method)


def _reshard(given: Any, count: int) -> bool | None:
    """Whether whole parameters go after forward: as long as they are not to stay on each."""
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, int) or given < 1 or count % given:
        raise ValueError(
            f"fully_shard: reshard_after_forward must be a bool, None, or a number that divides "
            f"the {count} processes; got {given!r}"
        )
    return given > 1


def _cut_dim(p: Any, placement_of: Any) -> int:
    """The dim along which a parameter is cut."""
    placement = None if placement_of is None else placement_of(p)
    if placement is None:
        return 0
    if type(placement) is not Shard or not -p.ndim <= placement.dim < p.ndim:
        raise ValueError(
            "fully_shard: shard_placement_fn must give None or Shard(dim) of one of the "
            f"parameter's {p.ndim} dims; got {placement!r}"
        )
    return placement.dim % p.ndim


def _cut(p: Any, mesh: Any, dim: int) -> DTensor:
    """A parameter's part: of a plain one, or of what lies on other dims of a larger mesh."""
    ways: list[Any] = [Replicate()] * (mesh.ndim - 1) + [Shard(dim)]
    if not isinstance(p, DTensor):
        return distribute_tensor(p.detach(), mesh, ways, src_data_rank=None)
    root = mesh._root
    if root is None or p._mesh._root is not root:
        raise ValueError(
            "fully_shard: a parameter that is distributed already lies on one part of a larger "
            f"mesh, and `mesh` must be another part of it, as in mesh['dp']; got {mesh} beside "
            f"{p._mesh}"
        )
    names = (*mesh.mesh_dim_names, *p._mesh.mesh_dim_names)
    if len(set(names)) < len(names) or any(isinstance(q, Partial) for q in p._placements):
        raise ValueError(
            f"fully_shard: a parameter that lies as {list(p._placements)} along "
            f"{p._mesh.mesh_dim_names} cannot be cut along {mesh.mesh_dim_names}"
        )
    part = distribute_tensor(part_of(p).detach(), mesh, ways, src_data_rank=None)
    factor = 1
    for i, q in enumerate(p._placements):
        factor *= p._mesh.size(i) if isinstance(q, Shard) and q.dim == dim else 1
    if factor > 1:
        ways[-1] = _StridedShard(dim, split_factor=factor)
    return wrap(part_of(part), root[names], [*ways, *p._placements], p._sizes)


def fully_shard(
    module: Any,
    *,
    mesh: Any = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Any = None,
) -> Any:
    """Spreads a module's parameters, their gradients and so the optimizer's state over processes.

    Apply it to the parts of a model first, then to the model: each call takes the parameters that
    no inner one has. Make the optimizer afterwards.

    Args:
        module: a module, or a list of modules that are called in this order; changed in place.
        mesh: along its last dim parameters are cut; along a first of two they are copied. One of
            all processes if None. Parameters that `parallelize_module` cut along another part of
            the same larger mesh are cut further.
        reshard_after_forward: let go of whole parameters after forward, and put them together again
            in backward; None does, but not for the outermost module. A number larger than 1, in
            PyTorch of processes that keep all parts between them, is as True.
        shard_placement_fn: gives a parameter's `Shard(dim)`; the first dim is cut where it is None
            or gives None.
        mp_policy: dtypes.
        offload_policy: accepted; everything is on the CPU.
        ignored_params: parameters that stay as they are.

    Returns:
        The module, which is an `FSDPModule` now.

    Example:
        >>> from clew.distributed.fsdp import fully_shard
        >>> net = clew.nn.Linear(4, 2)
        >>> fully_shard(net)(clew.ones(1, 4)).sum().backward()
        >>> net.weight.grad.full_tensor()
        tensor([[1., 1., 1., 1.],
                [1., 1., 1., 1.]])
        >>> clew.distributed.destroy_process_group()
    """
    if isinstance(module, (list, tuple)):
        for one in module:
            fully_shard(
                one,
                mesh=mesh,
                reshard_after_forward=reshard_after_forward,
                shard_placement_fn=shard_placement_fn,
                mp_policy=mp_policy,
                offload_policy=offload_policy,
                ignored_params=ignored_params,
            )
        return module
    if not isinstance(module, nn.Module):
        raise TypeError(f"fully_shard: expected a Module; got {type(module).__name__}")
    if isinstance(module, FSDPModule):
        raise ValueError("fully_shard: the module is sharded already")
    where = _whole_mesh(mesh)
    if where.ndim > 2:
        raise ValueError(f"fully_shard: the mesh must have one or two dims; got {where.ndim}")
    reshard = _reshard(reshard_after_forward, where.size(where.ndim - 1))
    ignored = {id(p) for p in ignored_params or ()}
    taken = {
        id(m.sharded)
        for part in module.modules()
        if isinstance(part, FSDPModule)
        for m in part._fsdp_group.members
    }
    places: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    for part in module.modules():
        for name, p in part._parameters.items():
            if p is None or id(p) in ignored or id(p) in taken:
                continue
            if p.ndim == 0:
                raise ValueError(
                    f"fully_shard: parameter {name!r} has no dim to cut; give it one, or "
                    "name it in ignored_params"
                )
            places.setdefault(id(p), (p, []))[1].append((part, name))
    members = []
    for p, at in places.values():
        if getattr(p, "_was_sharded", False):
            raise ValueError(
                f"fully_shard: parameter {at[0][1]!r} is shared with a module that was sharded "
                "before, which has one of its own since; apply fully_shard to a module that "
                "contains both instead of to them"
            )
    for p, at in places.values():
        dim = _cut_dim(p, shard_placement_fn)
        outer = p if isinstance(p, DTensor) else None
        sharded = nn.Parameter(_cut(p, where, dim), requires_grad=p.requires_grad)
        p._was_sharded = True  # seen where another module has it, too
        for owner, name in at:
            owner._parameters[name] = sharded
        members.append(_Member(sharded, at, dim, outer))
    policy = mp_policy or MixedPrecisionPolicy()
    group = _Group(type(module).__name__, where, members, policy, reshard)
    module.__class__ = _class_of(type(module))
    object.__setattr__(module, "_fsdp_group", group)
    return module
