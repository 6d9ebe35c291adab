"""One stage of a pipeline: what it computes, receives and sends.

Before the tensors of a part goes a message of one fixed size that says how many come, and their
shapes and dtypes. So nobody needs to know shapes beforehand, and parts may differ in size.
"""

from __future__ import annotations

from typing import Any

import clew
from clew import nn
from clew.distributed import distributed_c10d as c10d
from clew.distributed.fsdp import FSDPModule
from clew.nn.parallel import DistributedDataParallel

__all__ = ["PipelineStage"]

_DTYPES = [
    clew.float32, clew.float64, clew.float16, clew.bfloat16, clew.int64, clew.int32, clew.int16,
    clew.int8, clew.uint8, clew.bool, clew.complex64, clew.complex128,
]  # fmt: skip
_TOLD = 128  # numbers in the message before the tensors
_FORWARD, _BACKWARD = 29001, 29002  # the messages' tags


class PipelineStage:
    """A part of a model on one process: what it gives goes to the next stage.

    Args:
        submodule: the part. A first stage is called with the schedule's inputs, others with what
            the stage before gives.
        stage_index: which stage it is, from 0: that of the process with this rank in the group.
        num_stages: how many there are; as many as the group has processes.
        device: not used: everything is on the CPU.
        input_args, output_args, output_grads, input_grads: not needed: each stage tells the next
            one the shapes.
        group: the stages' processes; all if None.
        dw_builder, get_mesh: must be None.

    Raises:
        ValueError: if the numbers do not fit the group.

    Example:
        >>> import clew.distributed as dist
        >>> from clew.distributed.pipelining import PipelineStage
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> stage = PipelineStage(clew.nn.Linear(2, 1), 0, 1, clew.device("cpu"))
        >>> stage.is_first, stage.is_last
        (True, True)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedError("PipelineStage: dw_builder and get_mesh must be None")
        if not isinstance(submodule, nn.Module):
            raise TypeError(f"PipelineStage: expected a Module; got {type(submodule).__name__}")
        if isinstance(submodule, DistributedDataParallel):
            raise NotImplementedError(
                "PipelineStage: of a DistributedDataParallel, which would reduce after each part; "
                "use fully_shard"
            )
        self.group = group or c10d._get_default_group()
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if num_stages != self.group_size or stage_index != self.group_rank:
            raise ValueError(
                f"PipelineStage: stage {stage_index} of {num_stages} on rank {self.group_rank} of "
                f"a group of {self.group_size}: each process has the stage of its rank"
            )
        self.submod, self.device = submodule, device
        self.stage_index, self.num_stages = stage_index, num_stages
        self._sent: list[Any] = []
        self._given: dict[int, list[Any]] = {}
        self._made: dict[int, Any] = {}

    @property
    def is_first(self) -> bool:
        """Whether it gets the schedule's inputs."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it gives the pipeline's outputs."""
        return self.stage_index == self.num_stages - 1

    def _send(self, tensors: list[Any], to: int, tag: int, trains: bool) -> None:
        told = [int(trains), len(tensors)]
        for t in tensors:
            told += [_DTYPES.index(t.dtype), t.ndim, *t.shape]
        if len(told) > _TOLD:
            raise ValueError(f"PipelineStage: {len(tensors)} tensors are too many to tell of")
        told += [0] * (_TOLD - len(told))
        for t in [clew.tensor(told), *(t.detach().contiguous() for t in tensors)]:
            self._sent.append(c10d.isend(t, group=self.group, group_dst=to, tag=tag))

    def _receive(self, of: int, tag: int, trains: bool) -> list[Any]:
        told = clew.zeros(_TOLD, dtype=clew.int64)
        c10d.recv(told, group=self.group, group_src=of, tag=tag)
        theirs, count, *rest = told.tolist()
        if bool(theirs) != trains:
            raise RuntimeError(
                f"PipelineStage: stage {self.stage_index} {'has' if trains else 'lacks'} a "
                f"backward, and stage {of} differs; give all stages' schedules loss_fn, or none"
            )
        made = []
        for _ in range(count):
            kind, ndim, *rest = rest
            made.append(clew.empty(*rest[:ndim], dtype=_DTYPES[kind]))
            rest = rest[ndim:]
            c10d.recv(made[-1], group=self.group, group_src=of, tag=tag)
        return made

    def _forward(self, i: int, args: Any, kwargs: Any, trains: bool) -> Any:
        """Part i; its output."""
        if not self.is_first:
            args = self._receive(self.stage_index - 1, _FORWARD, trains)
            for t in args:
                t.requires_grad_(trains and t.is_floating_point())
        made = self.submod(*args, **kwargs)
        outputs = list(made) if isinstance(made, (tuple, list)) else [made]
        if not self.is_last:
            if not all(isinstance(t, clew.Tensor) for t in outputs):
                raise TypeError(
                    f"PipelineStage: stage {self.stage_index} must give a tensor or a tuple of "
                    f"tensors; got {type(made).__name__}"
                )
            self._send(outputs, self.stage_index + 1, _FORWARD, trains)
        if trains:
            self._given[i] = [] if self.is_first else list(args)
            self._made[i] = outputs
        return made

    def _backward(self, i: int, loss: Any, last: bool) -> None:
        """The gradients of part i."""
        given, made = self._given.pop(i), self._made.pop(i)
        if isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(last)
        if self.is_last:
            if loss.requires_grad:
                loss.backward()
        else:
            grads = iter(self._receive(self.stage_index + 1, _BACKWARD, True))
            floating = [(t, next(grads)) for t in made if t.is_floating_point()]
            ends = [(t, g) for t, g in floating if t.requires_grad]
            if ends:
                clew.autograd.backward([t for t, _ in ends], [g for _, g in ends])
        if not self.is_first:
            found = [
                clew.zeros_like(t) if t.grad is None else t.grad
                for t in given
                if t.is_floating_point()
            ]
            self._send(found, self.stage_index - 1, _BACKWARD, True)

    def _end(self) -> None:
        """Waits until everything sent has arrived."""
        sent, self._sent = self._sent, []
        for work in sent:
            work.wait()

    def _clear(self) -> None:
        self._given.clear()
        self._made.clear()

    def scale_grads(self, grad_scale_factor: float) -> None:
        """Divides the parameters' gradients.

        Args:
            grad_scale_factor: by this; the number of parts where the loss is a mean.
        """
        for p in self.submod.parameters():
            if p.grad is not None:
                p.grad.div_(grad_scale_factor)
