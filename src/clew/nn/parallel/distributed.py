"""DistributedDataParallel in a group of one process: gradients are the module's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Calls the module; in a group of one process there are no gradients to add.

    Args:
        module: the module, with a parameter that requires grad.
        device_ids: None or empty.
        output_device: None.
        dim: the batch's dim; not used.
        broadcast_buffers: accepted; there is nobody to send buffers to.
        init_sync: accepted.
        process_group: a group; the one of all processes if None.
        kwargs: options of how gradients are added; accepted.
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
        **kwargs: Any,
    ) -> None:
        super().__init__()
        from clew.distributed import distributed_c10d

        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel: device_ids and output_device must be None for a module "
                f"on the CPU; got {device_ids}, {output_device}"
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self.process_group = process_group or distributed_c10d._get_default_group()
        self.module = module
        self.device_ids = self.output_device = None
        self.device = next(module.parameters()).device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it gradients are not added over processes: nothing changes."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Lets processes have unequal numbers of batches: nothing changes."""
        yield

    def register_comm_hook(self, state: object, hook: Any) -> None:
        """Accepted: gradients are not sent."""

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
