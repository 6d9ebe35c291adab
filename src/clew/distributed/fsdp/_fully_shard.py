"""fully_shard: parameters, gradients and optimizer state in parts (Zhao et al., FSDP, 2023).

Between uses a parameter is a DTensor cut along its first dim. When a module is called its
parameters are put together by one recorded operation, whose gradient cuts the sums of the
gradients. What the module's operations save of them is not kept: it is put together again when
backward asks for it. While one module works, the next one's parameters are on their way.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import clew
from clew import nn
from clew.autograd.function import once_differentiable
from clew.distributed import distributed_c10d as c10d
from clew.distributed.fsdp import _reduce
from clew.distributed.tensor import DTensor, Replicate, Shard
from clew.distributed.tensor._api import _whole_mesh, distribute_tensor, part_of

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


class _Member:
    """One parameter: its part, and where it is an attribute."""

    def __init__(self, sharded: Any, places: list[tuple[Any, str]]) -> None:
        self.sharded, self.places = sharded, places
        self.sizes = tuple(sharded._sizes)


class _Group:
    """The parameters that are put together when one module is called."""

    def __init__(
        self, mesh: Any, members: list[_Member], policy: MixedPrecisionPolicy, reshard: Any
    ) -> None:
        self.members, self.policy, self.reshard_after_forward = members, policy, reshard
        self.across = mesh.get_group(mesh.ndim - 1)
        self.copies = mesh.get_group(0) if mesh.ndim == 2 else None
        self.sync = self.all_reduce = self.reshard_after_backward = True
        self.divide: float | None = None
        self.whole: list[Any] | None = None  # recorded, while the module has them
        self.values: tuple[list[Any], list[int]] | None = None  # what it shows, of which versions
        self.again: tuple[list[Any], list[int]] | None = None  # the same, for backward
        self.pending: Any = None
        self.calls = 0  # of the module that are running: it may call itself
        self.unsynced: list[Any] = [None] * len(members)
        self.uncombined: list[Any] = [None] * len(members)  # added up, but not over the copies
        self.after: Any = None  # weak: the group that was used after this one
        self.before: Any = None
        self.given: set[str] = set()  # which of the two the user set

    # ---- putting together ----

    def renew(self) -> None:
        """Takes parameters that were put in place of the parts since: by `to_empty` after the
        model was made without data, by `load_state_dict(assign=True)`.
        """
        if self.whole is not None:
            return
        for m in self.members:
            owner, name = m.places[0]
            now = owner._parameters[name]
            if now is m.sharded:
                continue
            if not isinstance(now, DTensor) or tuple(now._sizes) != m.sizes:
                raise RuntimeError(
                    f"fully_shard: parameter {name!r} was replaced by what is not a part of a "
                    f"distributed tensor of sizes {m.sizes}"
                )
            m.sharded = now
            for owner, name in m.places[1:]:
                owner._parameters[name] = now
            self.values = self.again = None
            self.forget()

    def _begin(self) -> tuple[list[tuple[Any, Any]], list[Any], Any]:
        """What is being filled, as (ranks' rows, sizes); works; the versions of the parts."""
        n = self.across.size()
        made: list[Any] = [None] * len(self.members)
        works = []
        locals_ = []
        for m in self.members:
            local = part_of(m.sharded).detach()
            if self.policy.param_dtype is not None and local.is_floating_point():
                local = local.to(self.policy.param_dtype)
            rows = -(-m.sizes[0] // n)
            if local.shape[0] != rows:
                padded = clew.zeros(rows, *m.sizes[1:], dtype=local.dtype)
                padded[: local.shape[0]] = local
                local = padded
            locals_.append(local)
        for together in _reduce.bundles(locals_):
            own = [locals_[i].reshape(-1) for i in together]
            flat = own[0] if len(own) == 1 else clew.cat(own)
            full = clew.empty(n, flat.numel(), dtype=flat.dtype)
            works.append(c10d.all_gather_into_tensor(full, flat, group=self.across, async_op=True))
            at = 0
            for i, one in zip(together, own):
                made[i] = full[:, at : at + one.numel()], self.members[i].sizes
                at += one.numel()
        return made, works, self._versions()

    def _versions(self) -> list[int]:
        return [part_of(m.sharded)._version for m in self.members]

    def gathered(self) -> tuple[list[Any], list[int]]:
        """Whole tensors, without a record, and the versions of the parts they are made of."""
        with clew.no_grad():
            pending, self.pending = self.pending, None
            if pending is None or pending[2] != self._versions():
                if pending is not None:
                    for work in pending[1]:
                        work.wait()
                pending = self._begin()
            for work in pending[1]:
                work.wait()
            return [_rows(full, sizes) for full, sizes in pending[0]], pending[2]

    def ahead(self, other: Any) -> None:
        """Begins to put another group together, if it is known which is next."""
        group = other() if other is not None else None
        if group is None or group is self or group.pending or group.whole or group.again:
            return
        group.renew()
        with clew.no_grad():
            group.pending = group._begin()

    def unshard(self) -> None:
        """The module's attributes are whole tensors from now on, with a record of their own."""
        self.renew()
        if self.values is None or self.values[1] != self._versions():
            self.values = self.gathered()
        self.again = None
        self.whole = list(_Unshard.apply(self, *(part_of(m.sharded) for m in self.members)))
        for m, full in zip(self.members, self.whole):
            for owner, name in m.places:
                owner._parameters[name] = full

    def forget(self) -> None:
        """Lets go of what is on its way; all processes have sent their part of it."""
        pending, self.pending = self.pending, None
        for work in pending[1] if pending is not None else ():
            work.wait()

    def give_up(self) -> None:
        """Lets go of what was put together ahead of a use that does not come."""
        following = self.after() if self.after is not None else None
        if following is not None and not following.calls:
            following.forget()

    def reshard(self, keep: bool = False) -> None:
        """The module's attributes are the parts from now on.

        Args:
            keep: the whole values, for the next use, as long as the parts do not change.
        """
        if not keep:
            self.values = None
        if self.whole is None or self.calls:
            return
        self.whole = None
        for m in self.members:
            for owner, name in m.places:
                owner._parameters[name] = m.sharded

    def hooks(self) -> Any:
        """A context in which what is saved of whole tensors is not kept."""
        assert self.whole is not None
        known = {t.untyped_storage().data_ptr(): i for i, t in enumerate(self.whole) if t.numel()}
        versions = self._versions()

        def pack(t: Any) -> Any:
            i = known.get(t.untyped_storage().data_ptr()) if t.numel() else None
            if i is None:
                # Not t itself: what an operation made would keep itself alive through its node.
                return t.detach(), t._version
            return i, t.shape, t.stride(), t.storage_offset()

        def unpack(kept: Any) -> Any:
            if len(kept) == 2:
                if kept[0]._version != kept[1]:
                    raise RuntimeError(
                        "fully_shard: a tensor needed for gradient computation has been modified "
                        f"by an inplace operation: {kept[0].dtype}{list(kept[0].shape)} is at "
                        f"version {kept[0]._version}; expected version {kept[1]}"
                    )
                return kept[0]
            i, shape, stride, offset = kept
            if self._versions() != versions:
                raise RuntimeError(
                    "fully_shard: parameters needed for gradient computation have been modified "
                    "by an inplace operation since forward, and their old values were not kept; "
                    "call backward() before the optimizer's step()"
                )
            if self.again is None or self.again[1] != versions:
                self.again = self.gathered()
                self.ahead(self.before)
            return self.again[0][i].as_strided(shape, stride, offset)

        return clew.autograd.graph.saved_tensors_hooks(pack, unpack)

    # ---- gradients ----

    def reduced(self, grads: Any) -> list[Any]:
        """Each parameter's part of the gradients' mean; None where nothing is added up yet."""
        n = self.across.size()
        total = self.divide or n * (self.copies.size() if self.copies is not None else 1)
        with clew.no_grad():
            if not self.sync:
                for i, grad in enumerate(grads):
                    before = self.unsynced[i]
                    self.unsynced[i] = grad.detach() if before is None else grad + before
                return [None] * len(self.members)
            for i, before in enumerate(self.unsynced):
                if before is not None:
                    grads = [*grads[:i], grads[i] + before, *grads[i + 1 :]]
                    self.unsynced[i] = None
            kinds = [self.policy.reduce_dtype or grad.dtype for grad in grads]
            sums = _reduce.cut_sums(self.across, grads, kinds, total)
            made: list[Any] = []
            for i, (m, one) in enumerate(zip(self.members, sums)):
                if self.copies is not None:
                    before = self.uncombined[i]
                    one = one if before is None else one + before
                    self.uncombined[i] = None if self.all_reduce else one.clone()
                    if not self.all_reduce:
                        made.append(None)
                        continue
                    c10d.all_reduce(one, group=self.copies)
                own = part_of(m.sharded)
                made.append(one[: own.numel()].view(own.shape).to(own.dtype))
        return made


def _rows(columns: Any, sizes: tuple[int, ...]) -> Any:
    """A whole tensor of the ranks' rows."""
    n, inner = columns.shape[0], math.prod(sizes[1:])
    rows = columns.shape[1] // inner if inner else -(-sizes[0] // n)
    whole = columns.reshape(n * rows, *sizes[1:])
    return whole[: sizes[0]] if n * rows != sizes[0] else whole


class _Unshard(clew.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, *locals_: Any) -> Any:
        ctx.group = group
        return tuple(t.detach() for t in group.values[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        group = ctx.group
        group.again = None
        group.reshard(keep=not group.reshard_after_backward)
        return None, *group.reduced(grads)


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
        with group.hooks() if reshard and clew.is_grad_enabled() else nullcontext():
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
        module: a module, or a list of them that are called one after the other; is changed.
        mesh: along its last dim parameters are cut; along a first of two they are copied. One of
            all processes if None.
        reshard_after_forward: let go of whole parameters after forward, and put them together again
            in backward; None does, but not for the outermost module.
        shard_placement_fn: must be None; the first dim is cut.
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
    if not isinstance(reshard_after_forward, (bool, type(None))):
        raise NotImplementedError(
            "fully_shard: reshard_after_forward must be a bool or None; to fewer processes is not "
            "supported"
        )
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard: shard_placement_fn must be None")
    where = _whole_mesh(mesh)
    if where.ndim > 2:
        raise ValueError(f"fully_shard: the mesh must have one or two dims; got {where.ndim}")
    ways = [Replicate()] * (where.ndim - 1) + [Shard(0)]
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
        if isinstance(p, DTensor):
            raise NotImplementedError("fully_shard: of parameters that are distributed already")
        made = distribute_tensor(p.detach(), where, ways, src_data_rank=None)
        sharded = nn.Parameter(made, requires_grad=p.requires_grad)
        for owner, name in at:
            owner._parameters[name] = sharded
        members.append(_Member(sharded, at))
    policy = mp_policy or MixedPrecisionPolicy()
    group = _Group(where, members, policy, reshard_after_forward)
    module.__class__ = _class_of(type(module))
    object.__setattr__(module, "_fsdp_group", group)
    return module
