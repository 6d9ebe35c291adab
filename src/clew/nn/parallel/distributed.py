"""DistributedDataParallel: a module whose gradients are averages over processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import clew
from clew._base.provenance import user_level

from ..modules.module import Module
from ._reducer import GradBucket, Reducer

__all__ = ["DistributedDataParallel", "GradBucket"]


def _trained(module: Any, ignored: set[str]) -> list[Any]:
    """The parameters whose gradients are reduced."""
    found = [p for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
    if not found:
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameters "
            "that require a gradient."
        )
    return found


def _refuse(**options: Any) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise NotImplementedError(f"DistributedDataParallel: no option {given}")


def _group_of(mesh: Any, group: Any) -> Any:
    if group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
    return mesh.get_group(0)


def _what_is_sent(older: bool | None, chosen: bool | None) -> tuple[bool, bool]:
    """Whether buffers are sent before a forward pass, and whether at first."""
    if older is not None:
        warnings.warn(
            "DistributedDataParallel: broadcast_buffers is deprecated; use forward_sync_buffers"
            + (
                ", which was given too and decides"
                if chosen is not None
                else ", which sends buffers at first whatever it is; with broadcast_buffers=False "
                "each rank begins with its own"
            ),
            FutureWarning,
            stacklevel=user_level(),
        )
    if chosen is not None:
        return chosen, True
    sends = older is None or older
    return sends, sends


class DistributedDataParallel(Module):
    """Calls the module; backward averages the gradients over the processes of a group.

    Args:
        module: the module, with a parameter that requires grad.
        device_ids: None or empty.
        output_device: None.
        dim: the batch's dim; not used.
        broadcast_buffers: the older name of `forward_sync_buffers`; with False the buffers are not
            sent at first either.
        init_sync: send rank 0's parameters and buffers to all at first.
        process_group: a group; the one of all processes if None.
        bucket_cap_mb: how much is reduced together; 4 if None.
        find_unused_parameters: not needed; accepted.
        check_reduction: not needed; accepted.
        gradient_as_bucket_view: accepted; a gradient that was None is always a view of what was
            reduced, and one that was there before is written in place.
        static_graph: not needed; accepted.
        delay_all_reduce_named_params: None.
        param_to_hook_all_reduce: None.
        mixed_precision: None; autocast around forward does it.
        device_mesh: a mesh of one dim, instead of a group.
        skip_all_reduce_unused_params: False.
        bucket_cap_mb_list: None.
        batched_grad_copy: not needed; accepted.
        forward_sync_buffers: send rank 0's buffers to all before a forward pass, in evaluation too,
            unless the pass before it was one without gradients or within `no_sync`; True if None.

    Example:
        >>> from clew.nn.parallel import DistributedDataParallel
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
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        from clew.distributed import distributed_c10d as c10d

        _refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            param_to_hook_all_reduce=param_to_hook_all_reduce,
            mixed_precision=mixed_precision,
            skip_all_reduce_unused_params=skip_all_reduce_unused_params,
            bucket_cap_mb_list=bucket_cap_mb_list,
        )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device must be None for a module "
                f"on the CPU; got {device_ids}, {output_device}"
            )
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        parameters = _trained(module, ignored)
        if device_mesh is not None:
            process_group = _group_of(device_mesh, process_group)
            self.device_mesh = device_mesh
        self.process_group = process_group or c10d._get_default_group()
        self.module = module
        self.device_ids = self.output_device = None
        self.device, self.device_type = parameters[0].device, parameters[0].device.type
        self.dim = dim
        self.forward_sync_buffers, sends_first = _what_is_sent(
            broadcast_buffers, forward_sync_buffers
        )
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._ignored = ignored
        self._reducer: Any = None
        self._divides_by_all, self._join_config = True, None
        self._cap = int((4.0 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        if self.process_group.size() == 1:
            return
        self._compare(module, ignored)
        if init_sync:
            buffers = module.named_buffers() if sends_first else ()
            for name, tensor in [*module.named_parameters(), *buffers]:
                if name not in ignored:
                    c10d.broadcast(tensor.detach(), group=self.process_group, group_src=0)
        self._reducer = self._make_reducer()

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _make_reducer(self) -> Reducer:
        parameters = _trained(self.module, self._ignored)
        sparse = {
            id(m.weight)
            for m in self.module.modules()
            if getattr(m, "sparse", False) is True and hasattr(m, "weight")
        }
        return Reducer(self.process_group, parameters, self._cap, sparse, self)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, names: Any) -> None:
        """Names what is neither sent nor reduced; before the module is wrapped.

        Args:
            module: the module.
            names: of its parameters and buffers.
        """
        module._ddp_params_and_buffers_to_ignore = list(names)

    def _set_static_graph(self) -> None:
        """Says that all passes use the same parameters, which need not be known here."""
        self.static_graph = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch records of the module, as far as it is known here."""
        from clew.distributed import distributed_c10d as c10d

        parameters = _trained(self.module, self._ignored)
        return {
            "backend_name": c10d.get_backend(self.process_group),
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "bucket_cap_bytes": self._cap,
            "num_parameter_tensors": len(parameters),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in parameters),
            "broadcast_buffers": int(self.forward_sync_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
        }

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
        """What copies and files have of it: all but the group, which must be that of all."""
        from clew.distributed import distributed_c10d as c10d

        if self.process_group is not c10d._get_default_group():
            raise RuntimeError(
                "DistributedDataParallel: only a model of the group of all processes can be copied "
                "or saved; of others take model.module"
            )
        if self._reducer is not None and self._reducer.hook is not None:
            raise RuntimeError(
                "DistributedDataParallel: a model with a communication hook cannot be copied or "
                "saved; take model.module"
            )
        return {**self.__dict__, "process_group": None, "_reducer": None}

    def __setstate__(self, state: Any) -> None:
        """All processes do this together, as they make the model together."""
        from clew.distributed import distributed_c10d as c10d

        super().__setstate__(state)
        self.process_group = c10d._get_default_group()
        if self.process_group.size() > 1:
            self._reducer = self._make_reducer()

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
            self._reducer = self._make_reducer()
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
        reducer.forget()
        synced = clew.is_grad_enabled() and self.require_backward_grad_sync
        sends = self.forward_sync_buffers and self.require_forward_param_sync
        root = 0
        config: Any = self._join_config
        if config is not None and config.enable:
            from clew.distributed.algorithms._models import begin_batch

            root = begin_batch(self, synced, sends)
        if sends:
            self._send_buffers(root)
        result = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = synced
        if synced:
            reducer.expect(result)
        return result

    def _send_buffers(self, root: int) -> None:
        """Rank `root`'s buffers become everybody's: one message for each dtype."""
        from clew.distributed import _arrays
        from clew.distributed import distributed_c10d as c10d

        kinds: dict[Any, list[Any]] = {}
        for name, buffer in self.module.named_buffers():
            if name not in self._ignored:
                kinds.setdefault(buffer.dtype, []).append(buffer.detach())
        here = self.process_group.rank() == root
        for buffers in kinds.values():
            flat = clew.cat([b.reshape(-1) for b in buffers])
            c10d.broadcast(flat, group=self.process_group, group_src=root)
            if here:
                continue
            # Bytes, not copy_: to backward a buffer that it saved has not changed.
            got, at = _arrays.reading(flat), 0
            for b in buffers:
                array, finish = _arrays.writing(b)
                array[...] = got[at : at + b.numel()]
                at += b.numel()
                if finish is not None:
                    finish()
