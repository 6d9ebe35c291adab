"""How DistributedDataParallel averages gradients while backward goes on.

A hook at each parameter notes that its gradient is there. When all of a bucket's are, and those of
the buckets before it, their elements are put side by side and the reduction begins; hooks that run
later let it go on. At the end of backward what is missing is filled in: zeros, or the gradient that
the parameter has. The last bucket also carries a number for each parameter: how many ranks used it.
So a parameter that only some ranks used needs no flag and no search of the graph, and one that
nobody used keeps the gradient that it had. A few ranks of one machine put the elements side by side
in memory that they share, and each sums what all have put there, in the order of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.autograd._backward import chosen

_FIRST_BYTES = 1 << 20


class GradBucket:
    """Gradients that are reduced together, as communication hooks see them.

    Args:
        index: its place in the order.
        flat: the gradients' elements, side by side.
        parameters: whose gradients they are.
        last: whether it is the last bucket of a backward.

    Example:
        >>> from clew.nn.parallel.distributed import GradBucket
        >>> bucket = GradBucket(0, clew.arange(3.0), [clew.zeros(2), clew.zeros(1)], last=True)
        >>> bucket.gradients()
        [tensor([0., 1.]), tensor([2.])]
    """

    def __init__(self, index: int, flat: Any, parameters: list[Any], last: bool) -> None:
        self._index, self._flat, self._parameters, self._last = index, flat, parameters, last

    def index(self) -> int:
        """Its place in the order."""
        return self._index

    def buffer(self) -> Any:
        """The gradients' elements, side by side."""
        return self._flat

    def set_buffer(self, tensor: Any) -> None:
        """Puts other elements in the place of the gradients'.

        Args:
            tensor: as many elements, side by side.
        """
        self._flat = tensor

    def parameters(self) -> list[Any]:
        """The parameters."""
        return self._parameters

    def gradients(self) -> list[Any]:
        """The gradients, as views of the elements."""
        return _views(self._flat, self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last one of this backward."""
        return self._last


def _views(flat: Any, parameters: list[Any]) -> list[Any]:
    made, at = [], 0
    for p in parameters:
        made.append(flat[at : at + p.numel()].view(p.shape))
        at += p.numel()
    return made


def _dense(grad: Any) -> Any:
    plain = grad.detach()
    return plain.to_dense() if plain.is_sparse else plain


class _Bucket:
    def __init__(self, places: list[int], parameters: list[Any]) -> None:
        self.places, self.parameters = places, parameters
        self.dtype, self.count = parameters[0].dtype, sum(p.numel() for p in parameters)
        self.what = f"({self.count} of {self.dtype.name}, SUM)"  # for the comparison over ranks
        self.slots: list[Any] = []  # every rank's elements, where ranks share memory
        self.places_in_mine: list[Any] = []
        self.reset()

    def reset(self) -> None:
        self.missing = len(self.places)
        self.work: Any = None
        self.flat: Any = None

    def share(self, slots: Any, at: int, extra: int) -> int:
        """Takes its place in the slots; gives the place after it."""
        total = self.count + extra
        end = at + total * self.dtype.itemsize
        self.slots = [one[at:end].view(self.dtype) for one in slots.all]
        mine = slots.mine[at:end].view(self.dtype)
        self.places_in_mine = [*_views(mine, self.parameters), mine[self.count :]]
        return end

    def sum(self) -> None:
        """Adds up what the ranks have put in their slots."""
        flat = self.slots[0] + self.slots[1]
        for one in self.slots[2:]:
            flat.add_(one)
        self.flat = flat


class Reducer:
    """Reduces gradients of one module.

    Args:
        group: over which ranks.
        parameters: whose gradients.
        cap: most bytes of a bucket.
        sparse: ids of parameters whose gradients are sparse; they are reduced as dense ones.
        owner: the module.
    """

    def __init__(
        self, group: Any, parameters: list[Any], cap: int, sparse: set[int], owner: Any
    ) -> None:
        from clew.autograd import _ends

        self.group, self.parameters, self.hook = group, parameters, None
        self.owner, self.sparse = owner, sparse
        self.armed = False  # there was a pass to reduce, and no backward yet
        self.divisor = group.size()
        self.begun = False
        self.held: list[Any] = []  # the gradients that were there before this backward
        self.ready = [False] * len(parameters)
        self.shadowing = False  # this process has no batch, and adds zeros to the others' sums
        self.left_over: set[int] = set()  # gathered without a reduction, which is to come
        self.buckets = self._divide(cap)
        self.of = {i: b for b in self.buckets for i in b.places}
        self.next = 0
        self.slots: Any = None  # False where the ranks do not share memory
        for i, p in enumerate(parameters):
            p.register_post_accumulate_grad_hook(self._note(i))
        _ends.watch()

    def _divide(self, cap: int) -> list[_Bucket]:
        """Buckets of one dtype, from the last parameter on; a small one first."""
        lists: list[list[int]] = []
        open_: dict[Any, tuple[list[int], int]] = {}
        limit = min(cap, _FIRST_BYTES)
        for i in reversed(range(len(self.parameters))):
            p = self.parameters[i]
            places, size = open_.get(p.dtype, ([], 0))
            if not places:
                lists.append(places)
            places.append(i)
            size += p.numel() * p.element_size()
            if size >= limit:
                limit = cap
                open_.pop(p.dtype, None)
            else:
                open_[p.dtype] = (places, size)
        return [_Bucket(places, [self.parameters[i] for i in places]) for places in lists]

    def expect(self, result: Any) -> None:
        """The next backward ends with a reduction, and any one through these tensors."""
        self.armed = True
        self._look(result)

    def _look(self, result: Any) -> None:
        if isinstance(result, clew.Tensor):
            if result.requires_grad:
                result.register_hook(self._begin_hook)
        elif isinstance(result, dict):
            for one in result.values():
                self._look(one)
        elif isinstance(result, (tuple, list)):
            for one in result:
                self._look(one)
        elif hasattr(result, "__dataclass_fields__"):
            for name in result.__dataclass_fields__:
                self._look(getattr(result, name))

    def _begin_hook(self, grad: Any) -> None:
        if not chosen.depth or chosen.filling:  # autograd.grad() fills no .grad
            self.begin()

    def begin(self) -> None:
        """A backward has come to this module."""
        from clew.autograd import _ends

        if not self.begun:
            self.begun = True
            self.held = [p.grad for p in self.parameters]
            _ends.at_end(self.end)

    def _note(self, i: int) -> Callable[[Any], None]:
        def note(parameter: Any) -> None:
            if not self.armed and not self.begun:
                self.left_over.add(i)
                return
            self.begin()
            if self.ready[i]:
                return
            self.ready[i] = True
            bucket = self.of[i]
            bucket.missing -= 1
            if bucket.missing == 0:
                self._start_ready()
            elif self.next:
                work = self.buckets[self.next - 1].work
                if work is not None:  # asking lets the transfer go on
                    work.is_completed() if self.hook is None else work.done()

        return note

    def _start_ready(self) -> None:
        while self.next < len(self.buckets) and self.buckets[self.next].missing == 0:
            # The last one waits: it says who used what.
            if self.next == len(self.buckets) - 1:
                return
            self._start(self.buckets[self.next])
            self.next += 1

    def _used(self) -> list[float]:
        """1 for each parameter that this rank used."""
        kept = {i for i in self.left_over if self.parameters[i].grad is not None}
        return [float(r or i in kept) for i, r in enumerate(self.ready)]

    def _share(self) -> Any:
        """Slots in which the ranks put their gradients; False where they share no memory."""
        if self.slots is None:
            from clew.distributed import _near

            self.slots = False
            ways = {b.dtype for b in self.buckets}
            if ways <= {clew.float32, clew.float64}:
                # From place to place of 8 bytes, whatever the dtype.
                sizes = [b.count * b.dtype.itemsize + 8 for b in self.buckets]
                room = sum(sizes) + 8 * len(self.parameters)
                self.slots = _near.make(self.group, room) or False
            at = 0
            for bucket in self.buckets if self.slots else ():
                extra = len(self.parameters) if bucket is self.buckets[-1] else 0
                at = -(-bucket.share(self.slots, at, extra) // 8) * 8
        return self.slots

    def _put(self, bucket: _Bucket) -> None:
        """Begins the reduction of a bucket in memory that the ranks share."""
        from clew.distributed._work import Work

        slots = self.slots
        slots.free()
        last = bucket is self.buckets[-1]
        with clew.no_grad():
            *places, told = bucket.places_in_mine
            for p, place in zip(bucket.parameters, places):
                grad = None if self.shadowing else p.grad
                if grad is None:
                    place.zero_()
                else:
                    clew.div(_dense(grad), self.divisor, out=place)
            if last:
                told.copy_(clew.tensor(self._used(), dtype=bucket.dtype))
        self.group.check("all_reduce of gradients", bucket.what)
        bucket.work = Work(self.group, "all_reduce", [slots.written()], bucket.sum)

    def _start(self, bucket: _Bucket) -> None:
        from clew.distributed import distributed_c10d as c10d

        if self.hook is None and self._share():
            self._put(bucket)
            return
        parts = []
        for p in bucket.parameters:
            grad = None if self.shadowing else p.grad
            dense = clew.zeros(p.numel(), dtype=p.dtype) if grad is None else _dense(grad)
            parts.append(dense.reshape(-1))
        last = bucket is self.buckets[-1]
        with clew.no_grad():
            count = sum(x.numel() for x in parts)
            if last and self.hook is None:
                parts.append(clew.tensor(self._used(), dtype=parts[0].dtype))
            flat = clew.cat(parts)
            if self.hook is not None:
                made = GradBucket(self.buckets.index(bucket), flat, bucket.parameters, last)
                bucket.work, bucket.flat = self.hook(made), None
                return
            flat[:count].div_(self.divisor)
        bucket.flat = flat
        bucket.work = c10d.all_reduce(flat, group=self.group, async_op=True)

    def shadow(self) -> None:
        """Takes part in the reductions of a backward that only others run."""
        self.shadowing = True
        try:
            self.end()
        finally:
            self.shadowing = False

    def end(self) -> None:
        """Backward is over: reduces the rest, and sets the gradients."""
        from clew.distributed import distributed_c10d as c10d

        used: Any = None
        try:
            while self.next < len(self.buckets):
                self._start(self.buckets[self.next])
                self.next += 1
            if self.hook is not None:
                used = clew.tensor(self._used())
                c10d.all_reduce(used, group=self.group)
            for bucket in self.buckets:
                got = bucket.work.wait()
                if self.hook is not None:
                    bucket.flat = got[0] if isinstance(got, (list, tuple)) else got
            if self.hook is None and self.slots:
                self.slots.read()
            if used is None:
                used = self.buckets[-1].flat[-len(self.parameters) :]
            some_used_none = used.tolist()
            held = self.held or [None] * len(self.parameters)
            written: list[Any] = []
            news: list[Any] = []
            for bucket in self.buckets:
                for i, p, grad in zip(
                    bucket.places, bucket.parameters, _views(bucket.flat, bucket.parameters)
                ):
                    if not some_used_none[i]:
                        continue
                    before = held[i]
                    if id(p) in self.sparse:
                        p.grad = grad.to_sparse(1)
                    elif before is None or before.requires_grad or before is not p.grad:
                        p.grad = grad
                    else:  # the program may hold it, or the memory behind it
                        written.append(before)
                        news.append(grad)
            if written:
                clew._foreach_copy_(written, news)
        finally:
            self._reset()

    def _reset(self) -> None:
        for bucket in self.buckets:
            bucket.reset()
        self.ready = [False] * len(self.parameters)
        self.left_over.clear()
        self.held = []
        self.begun, self.armed, self.next = False, False, 0

    def forget(self) -> None:
        """Drops what a backward has sent that raised before its end."""
        from clew.autograd import _ends

        if not self.begun or _ends.running():
            return
        try:
            for bucket in self.buckets[: self.next]:
                bucket.work.wait()
            if self.next and self.hook is None and self.slots:
                self.slots.read()
        finally:
            self._reset()
