"""DistributedDataParallel: gradients are averaged over processes while backward goes on.

A hook at each parameter notes that its gradient is there. When all of a bucket's are, and those of
the buckets before it, their elements are put side by side and the reduction begins; hooks that run
later let it go on. At the end of backward what is missing is filled in: zeros, or the gradient that
the parameter has. The last bucket also carries a number for each parameter: how many ranks used it.
So a parameter that only some ranks used needs no flag and no search of the graph, and one that
nobody used keeps the gradient that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]

_FIRST_BYTES = 1 << 20


class GradBucket:
    """Gradients that are reduced together, as communication hooks see them.

    Args:
        index: its place in the order.
        flat: the gradients' elements.
        parameters: whose.
        last: whether it is the last one.
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
        """Puts other elements in their place."""
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


class DistributedDataParallel(Module):
    """Calls the module; backward averages the gradients over the processes of a group.

    Args:
        module: the module, with a parameter that requires grad.
        device_ids: None or empty.
        output_device: None.
        dim: the batch's dim; not used.
        broadcast_buffers: send rank 0's buffers to all before each forward pass in training.
        init_sync: send rank 0's parameters and buffers to all at first.
        process_group: a group; the one of all processes if None.
        bucket_cap_mb: how much is reduced together; 4 if None.
        find_unused_parameters: not needed; accepted.
        check_reduction: not needed; accepted.
        gradient_as_bucket_view: accepted; gradients are always views of what was reduced.
        static_graph: not needed; accepted.
        kwargs: further options, which raise.

    Example:
        >>> clew.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = DistributedDataParallel(clew.nn.Linear(2, 1))
        >>> model(clew.ones(1, 2)).sum().backward()
        >>> model.module.weight.grad.tolist()
        [[1.0, 1.0]]
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        from clew.distributed import distributed_c10d as c10d

        if any(v for v in kwargs.values()):
            raise NotImplementedError(f"DistributedDataParallel: no option {sorted(kwargs)}")
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device must be None for a module "
                f"on the CPU; got {device_ids}, {output_device}"
            )
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        parameters = [
            p for n, p in module.named_parameters() if p.requires_grad and n not in ignored
        ]
        if not parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self.process_group = process_group or c10d._get_default_group()
        self.module = module
        self.device_ids = self.output_device = None
        self.device = parameters[0].device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        self._ignored = ignored
        self._reducer: Any = None
        self._divides_by_all, self._join_config = True, None
        cap = 4.0 if bucket_cap_mb is None else bucket_cap_mb
        self._reduced = parameters, int(cap * (1 << 20))
        if self.process_group.size() == 1:
            return
        self._compare(module, ignored)
        if init_sync:
            for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                if name not in ignored:
                    c10d.broadcast(tensor.detach(), group=self.process_group, group_src=0)
        self._reducer = _Reducer(self.process_group, *self._reduced, self)

    def _compare(self, module: Any, ignored: set[str]) -> None:
        from clew.distributed import distributed_c10d as c10d

        mine = [
            (n, tuple(p.shape), str(p.dtype), p.requires_grad)
            for n, p in module.named_parameters()
            if n not in ignored
        ]
        all_: list[Any] = [None] * self.process_group.size()
        c10d.all_gather_object(all_, mine, self.process_group)
        for rank, other in enumerate(all_):
            if other != all_[0]:
                odd = [a for a in (*other, *all_[0]) if (a in other) != (a in all_[0])]
                raise RuntimeError(
                    f"DistributedDataParallel: rank {rank}'s module has other parameters than "
                    f"rank 0's: {odd[:4]}; all ranks must make the same module"
                )

    def __getstate__(self) -> Any:
        raise RuntimeError("DistributedDataParallel: save model.module, which knows no group")

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it gradients stay this process's; the next backward outside adds them all."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Lets processes have unequal numbers of batches: who has finished shadows the others.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of all processes;
                with False by that of those with a batch.
            enable: whether it does anything.
            throw_on_early_termination: raise on all processes when the first has finished.
        """
        from clew.distributed.algorithms.join import Join

        with Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        ):
            yield

    def join_hook(self, **kwargs: Any) -> Any:
        """What shadows this model in a `Join`.

        Args:
            kwargs: `divide_by_initial_world_size`, as of `join`.
        """
        from clew.distributed.algorithms._models import ModelHook

        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return ModelHook(self)

    @property
    def join_device(self) -> Any:
        """The device of its collectives."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group of its collectives."""
        return self.process_group

    def register_comm_hook(self, state: object, hook: Callable[[Any, Any], Any]) -> None:
        """Reduces gradients by a function.

        Args:
            state: its first argument.
            hook: takes the state and a `GradBucket`; gives a Future of the averaged elements.

        Raises:
            TypeError: hook is no function.
            RuntimeError: there is a hook already.
        """
        if not callable(hook):
            raise TypeError(
                "DistributedDataParallel.register_comm_hook: hook must be a function; got "
                f"{type(hook).__name__}"
            )
        if self._reducer is None:
            self._reducer = _Reducer(self.process_group, *self._reduced, self)
        if self._reducer.hook is not None:
            raise RuntimeError(
                "DistributedDataParallel.register_comm_hook: a hook was registered before; a model "
                "has one"
            )
        self._reducer.hook = lambda bucket: hook(state, bucket)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        reducer = self._reducer
        if reducer is None:
            return self.module(*inputs, **kwargs)
        synced = clew.is_grad_enabled() and self.require_backward_grad_sync
        sends = self.broadcast_buffers and self.training and self.require_backward_grad_sync
        root = 0
        config: Any = self._join_config
        if config is not None and config.enable:
            from clew.distributed.algorithms._models import begin_batch

            root = begin_batch(self, synced, sends)
        if sends:
            self._send_buffers(root)
        reducer.synced = synced
        result = self.module(*inputs, **kwargs)
        if synced:
            reducer.expect(result)
        return result

    def _send_buffers(self, root: int) -> None:
        from clew.distributed import distributed_c10d as c10d

        for name, buffer in self.module.named_buffers():
            if name not in self._ignored:
                c10d.broadcast(buffer.detach(), group=self.process_group, group_src=root)


class _Bucket:
    def __init__(self, places: list[int], parameters: list[Any]) -> None:
        self.places, self.parameters = places, parameters
        self.missing = len(places)
        self.work: Any = None
        self.flat: Any = None


class _Reducer:
    """Reduces gradients of one module; see the top of this file."""

    def __init__(self, group: Any, parameters: list[Any], cap: int, owner: Any) -> None:
        from clew.autograd import _ends

        self.group, self.parameters, self.hook = group, parameters, None
        self.owner = owner
        self.synced = True
        self.divisor = group.size()
        self.begun = False
        self.ready = [False] * len(parameters)
        self.shadowing = False  # this process has no batch, and adds zeros to the others' sums
        self.left_over: set[int] = set()  # gathered within no_sync, not reduced yet
        self.buckets = self._divide(cap)
        self.of = {i: b for b in self.buckets for i in b.places}
        self.next = 0
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
        """Backward through any of these tensors ends with a reduction."""
        if isinstance(result, clew.Tensor):
            if result.requires_grad:
                result.register_hook(self._begin_hook)
        elif isinstance(result, dict):
            for one in result.values():
                self.expect(one)
        elif isinstance(result, (tuple, list)):
            for one in result:
                self.expect(one)
        elif hasattr(result, "__dataclass_fields__"):
            for name in result.__dataclass_fields__:
                self.expect(getattr(result, name))

    def _begin_hook(self, grad: Any) -> None:
        self.begin()

    def begin(self) -> None:
        """A backward has come to this module."""
        from clew.autograd import _ends

        if not self.begun and self.synced:
            self.begun = True
            _ends.at_end(self.end)

    def _note(self, i: int) -> Callable[[Any], None]:
        def note(parameter: Any) -> None:
            if not self.synced:
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

    def _start(self, bucket: _Bucket) -> None:
        from clew.distributed import distributed_c10d as c10d

        parts = []
        for p in bucket.parameters:
            grad = None if self.shadowing else p.grad
            dense = clew.zeros(p.numel(), dtype=p.dtype) if grad is None else grad.detach()
            parts.append(dense.reshape(-1))
        last = bucket is self.buckets[-1]
        with clew.no_grad():
            count = sum(x.numel() for x in parts)
            if last and self.hook is None:
                used = [float(r or i in self.left_over) for i, r in enumerate(self.ready)]
                parts.append(clew.tensor(used, dtype=parts[0].dtype))
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
                told = [float(r or i in self.left_over) for i, r in enumerate(self.ready)]
                used = clew.tensor(told)
                c10d.all_reduce(used, group=self.group)
            for bucket in self.buckets:
                got = bucket.work.wait()
                if self.hook is not None:
                    bucket.flat = got[0] if isinstance(got, (list, tuple)) else got
            if used is None:
                used = self.buckets[-1].flat[-len(self.parameters) :]
            some_used_none = used.tolist()
            for bucket in self.buckets:
                for i, p, grad in zip(
                    bucket.places, bucket.parameters, _views(bucket.flat, bucket.parameters)
                ):
                    if some_used_none[i]:
                        p.grad = grad
        finally:
            for bucket in self.buckets:
                bucket.missing, bucket.work, bucket.flat = len(bucket.places), None, None
            self.ready = [False] * len(self.parameters)
            self.left_over.clear()
            self.begun, self.next = False, 0
