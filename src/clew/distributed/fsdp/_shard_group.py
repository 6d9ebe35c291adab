"""The parameters that a module puts together at once, and the operation that does it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import clew
from clew.autograd._kept import in_budget, kept_by_node
from clew.autograd.function import once_differentiable
from clew.distributed import _collectives
from clew.distributed import distributed_c10d as c10d
from clew.distributed.fsdp import _reduce
from clew.distributed.tensor import DTensor
from clew.distributed.tensor._api import part_of, wrap

if TYPE_CHECKING:
    from clew.distributed.fsdp._fully_shard import MixedPrecisionPolicy


class _Member:
    """One parameter: its part, and where it is an attribute.

    Args:
        sharded: the part, as a distributed tensor.
        places: modules and names.
        dim: along which it is cut.
        outer: as a distributed tensor, what it was before it was cut; None if a plain one.
    """

    def __init__(
        self, sharded: Any, places: list[tuple[Any, str]], dim: int = 0, outer: Any = None
    ) -> None:
        self.sharded, self.places, self.dim = sharded, places, dim
        self.whole_sizes = tuple(sharded._sizes)  # over all processes
        self.outer = None if outer is None else (outer._mesh, outer._placements, outer._sizes)
        here = self.whole_sizes if outer is None else part_of(outer).shape
        self.sizes = (here[dim], *here[:dim], *here[dim + 1 :])  # what is cut, that dim first

    def rows(self, x: Any) -> Any:
        """What is cut, or a part of it, with the dim that is cut first."""
        return x.movedim(self.dim, 0).contiguous() if self.dim else x

    def back(self, rows: Any) -> Any:
        """The same with its dims in their places."""
        return rows.movedim(0, self.dim).contiguous() if self.dim else rows

    def shown(self, whole: Any) -> Any:
        """What the module has while it works."""
        shown: Any = whole.as_subclass(_Whole) if self.outer is None else wrap(whole, *self.outer)
        shown._differentiated = self.sharded
        return shown


class _Whole(clew.Tensor):
    """A parameter that is put together; its gradient is that of the part, over all ranks."""

    __torch_function__ = clew._C._disabled_torch_function_impl

    _differentiated: Any


class _Group:
    """The parameters that are put together when one module is called."""

    def __init__(
        self,
        kind: str,
        mesh: Any,
        members: list[_Member],
        policy: MixedPrecisionPolicy,
        reshard: Any,
    ) -> None:
        self.members, self.policy, self.reshard_after_forward = members, policy, reshard
        self.across = mesh.get_group(mesh.ndim - 1)
        # Modules are often of equal sizes: ranks that call different ones would mix their rows.
        self.told = kind
        if self.across is not None:
            self.across.sharded += 1
            self.told = f"{kind} that was sharded as number {self.across.sharded}"
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
        self.having: Any = None  # of these, how many ranks had a gradient
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
            if not isinstance(now, DTensor) or tuple(now._sizes) != m.whole_sizes:
                raise RuntimeError(
                    f"fully_shard: parameter {name!r} was replaced by what is not a part of a "
                    f"distributed tensor of sizes {m.whole_sizes}"
                )
            m.sharded = now
            for owner, name in m.places[1:]:
                owner._parameters[name] = now
            self.values = self.again = None
            self.forget()

    def _begin(self) -> tuple[list[Any], list[Any], Any]:
        """What is being filled, ranks' rows; works; the versions of the parts."""
        n = self.across.size()
        made: list[Any] = [None] * len(self.members)
        works = []
        locals_ = []
        for m in self.members:
            local = m.rows(part_of(m.sharded).detach())
            if local.is_meta:
                raise RuntimeError(
                    f"fully_shard: parameter {m.places[0][1]!r} is on the meta device, without "
                    'values; call to_empty(device="cpu") and fill the parameters before'
                )
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
            works.append(
                _collectives._gather_all(
                    "all_gather_into_tensor", self.across, [full], flat, self.told
                )
            )
            at = 0
            for i, one in zip(together, own):
                made[i] = full[:, at : at + one.numel()]
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
            wholes = [m.back(_rows(full, m.sizes)) for m, full in zip(self.members, pending[0])]
            return wholes, pending[2]

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
            shown = m.shown(full)
            for owner, name in m.places:
                owner._parameters[name] = shown

    @contextlib.contextmanager
    def whole_again(self) -> Iterator[None]:
        """Whole parameters for the block, where a checkpointed part of the module runs again."""
        if self.whole is not None:
            yield
            return
        ready, versions = self.again, self._versions()
        if ready is not None and ready[1] == versions:
            self.values = ready
        with clew.enable_grad():  # what is saved depends on what needs a gradient
            self.unshard()
        self.ahead(self.before)
        try:
            yield
        finally:
            self.reshard()
            self.again = ready  # for what is saved outside of the checkpointed part

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
        saving = _Saving(self)
        return clew.autograd.graph.saved_tensors_hooks(saving.pack, saving.unpack)

    # ---- gradients ----

    def reduced(self, grads: Any) -> list[Any]:
        """Each parameter's part of the gradients' mean; None where nothing is added up yet, or no
        rank has a gradient.
        """
        n = self.across.size()
        total = self.divide or n * (self.copies.size() if self.copies is not None else 1)
        grads = list(grads)
        with clew.no_grad():
            for i, before in enumerate(self.unsynced):
                grad = grads[i]
                if before is not None:
                    grads[i] = before if grad is None else grad + before
                self.unsynced[i] = None if self.sync or grads[i] is None else grads[i].detach()
            if not self.sync:
                return [None] * len(self.members)
            rows = [
                clew.zeros(m.sizes, dtype=self.policy.param_dtype or m.sharded.dtype)
                if grad is None
                else m.rows(grad)
                for m, grad in zip(self.members, grads)
            ]
            kinds = [self.policy.reduce_dtype or row.dtype for row in rows]
            # Every rank's part of the last is how many ranks have a gradient of each.
            have = clew.tensor([0.0 if grad is None else total for grad in grads], dtype=kinds[0])
            sums = _reduce.cut_sums(
                self.across, [*rows, have.expand(n, -1)], [*kinds, kinds[0]], total, self.told
            )
            have = sums.pop()
            if self.copies is not None:
                have = have if self.having is None else have + self.having
                self.having = None if self.all_reduce else have
                if self.all_reduce:
                    c10d.all_reduce(have, group=self.copies)
            made: list[Any] = []
            for i, (m, one, any_has) in enumerate(zip(self.members, sums, have.tolist())):
                if self.copies is not None:
                    before = self.uncombined[i]
                    one = one if before is None else one + before
                    self.uncombined[i] = None if self.all_reduce else one.clone()
                    if not self.all_reduce:
                        made.append(None)
                        continue
                    if any_has:
                        c10d.all_reduce(one, group=self.copies)
                if not any_has:
                    made.append(None)
                    continue
                own = part_of(m.sharded)
                cut = one[: own.numel()].view(own.shape[m.dim], *m.sizes[1:])
                made.append(m.back(cut).to(own.dtype))
        return made


class _Saving:
    """What operations on a group's whole tensors save.

    Args:
        group: the group, which has them now.
    """

    def __init__(self, group: _Group) -> None:
        assert group.whole is not None
        self.group, self.versions = group, group._versions()
        self.known = {t._storage_key(): i for i, t in enumerate(group.whole) if t.numel()}
        self.in_budget = in_budget()

    def pack(self, t: Any) -> Any:
        """A whole parameter's number and layout; anything else itself."""
        i = self.known.get(t._storage_key()) if t.numel() else None
        if i is not None:
            return i, t.shape, t.stride(), t.storage_offset()
        # Not t itself: what an operation made would keep itself alive through its node.
        own = t.detach()
        if self.in_budget:
            return kept_by_node(own)
        return own, t._version

    def unpack(self, kept: Any) -> Any:
        """The same, of parameters that are put together again."""
        if callable(kept):
            return kept()
        if len(kept) == 2:
            if kept[0]._version != kept[1]:
                raise RuntimeError(
                    "fully_shard: a tensor needed for gradient computation has been modified "
                    f"by an inplace operation: {kept[0].dtype}{list(kept[0].shape)} is at "
                    f"version {kept[0]._version}; expected version {kept[1]}"
                )
            return kept[0]
        i, shape, stride, offset = kept
        group, versions = self.group, self.versions
        if group._versions() != versions:
            raise RuntimeError(
                "fully_shard: parameters needed for gradient computation have been modified "
                "by an inplace operation since forward, and their old values were not kept; "
                "call backward() before the optimizer's step()"
            )
        if group.again is None or group.again[1] != versions:
            group.again = group.gathered()
            group.ahead(group.before)
        return group.again[0][i].as_strided(shape, stride, offset)


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
        ctx.set_materialize_grads(False)
        return tuple(t.detach() for t in group.values[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        group = ctx.group
        group.again = None
        group.reshard(keep=not group.reshard_after_backward)
        return None, *group.reduced(grads)
