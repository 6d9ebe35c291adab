"""In which order a stage runs the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew

__all__ = ["Schedule1F1B", "ScheduleGPipe"]


def _cut(x: Any, count: int) -> list[Any]:
    """The parts of a tensor along its first dim; anything else goes to all parts."""
    if not isinstance(x, clew.Tensor):
        return [x] * count
    if x.ndim == 0 or x.shape[0] < count:
        raise ValueError(f"pipelining: {tuple(x.shape)} cannot be cut into {count} parts")
    return list(x.tensor_split(count))


def _join(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, clew.Tensor):
        return clew.cat(parts)
    if isinstance(first, (tuple, list)):
        return type(first)(_join([p[i] for p in parts]) for i in range(len(first)))
    if isinstance(first, dict):
        return {k: _join([p[k] for p in parts]) for k in first}
    return first


def _free(x: Any) -> Any:
    """An output without its history, which backward uses up."""
    if isinstance(x, clew.Tensor):
        return x.detach()
    if isinstance(x, (tuple, list)):
        return type(x)(_free(value) for value in x)
    return {k: _free(value) for k, value in x.items()} if isinstance(x, dict) else x


class _Schedule:
    def __init__(
        self,
        stage: Any,
        n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        name = type(self).__name__
        specs = (args_chunk_spec, kwargs_chunk_spec, output_merge_spec)
        if any(spec is not None for spec in specs):
            raise NotImplementedError(f"{name}: chunk and merge specs must be None; dim 0 is cut")
        if n_microbatches < 1:
            raise ValueError(f"{name}: n_microbatches must be at least 1; got {n_microbatches}")
        self._stage, self._n_microbatches, self._loss_fn = stage, n_microbatches, loss_fn
        self.scale_grads = scale_grads

    def _order(self) -> list[tuple[bool, int]]:
        """(whether forward, which part), one after the other."""
        raise NotImplementedError

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a batch: forward, and backward where there is a loss_fn.

        Args:
            args: the first stage's inputs, whole; tensors are cut along the first dim.
            target: the last stage's second argument of loss_fn, whole.
            losses: a list; the last stage puts each part's loss there.
            return_outputs: give the outputs at the last stage.
            loss_kwargs: named arguments of loss_fn.
            kwargs: named arguments of this stage's module.

        Returns:
            The outputs of the whole batch at the last stage, None at others.

        Raises:
            RuntimeError: with a loss_fn under `no_grad`.
        """
        trains = self._loss_fn is not None
        if trains and not clew.is_grad_enabled():
            raise RuntimeError("pipelining: step() needs gradients for its backward; use eval()")
        return self._run(trains, args, kwargs, target, losses, return_outputs, loss_kwargs or {})

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a batch without backward; all stages call it.

        Args:
            args, target, losses, loss_kwargs, kwargs: as of `step`.
        """
        with clew.no_grad():
            return self._run(False, args, kwargs, target, losses, True, loss_kwargs or {})

    def _run(
        self, trains: bool, args: Any, kwargs: Any, target: Any, losses: Any, give: bool, named: Any
    ) -> Any:
        stage, count = self._stage, self._n_microbatches
        asks = stage.is_last and self._loss_fn is not None and (trains or target is not None)
        cut_args = [_cut(x, count) for x in args] if stage.is_first else []
        cut_kwargs = {k: _cut(x, count) for k, x in kwargs.items()}
        if asks and target is None:
            raise ValueError("pipelining: the last stage needs a target for its loss_fn")
        targets = _cut(target, count) if asks else []
        outputs: list[Any] = []
        found: list[Any] = []
        stage._clear()
        backwards = 0
        for forward, i in self._order():
            if forward:
                own = {k: x[i] for k, x in cut_kwargs.items()}
                made = stage._forward(i, [x[i] for x in cut_args], own, trains)
                if stage.is_last and give:
                    outputs.append(_free(made) if trains else made)
                if asks and self._loss_fn is not None:
                    found.append(self._loss_fn(made, targets[i], **named))
            elif trains:
                backwards += 1
                stage._backward(i, found[i] if stage.is_last else None, backwards == count)
        stage._end()
        if trains and self.scale_grads:
            stage.scale_grads(count)
        if losses is not None and asks:
            losses[:] = found
        return _join(outputs) if stage.is_last and give else None


class ScheduleGPipe(_Schedule):
    """All parts forward, then all backward.

    Args:
        stage: this process's `PipelineStage`.
        n_microbatches: into how many parts a batch is cut.
        loss_fn: takes the last stage's output and the target of a part. All stages must give it:
            without one there is no backward.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: must be None: dim 0 is cut.
        scale_grads: divide gradients by the number of parts, for a loss that is a mean.

    Example:
        >>> import clew.distributed as dist
        >>> from clew.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> stage = PipelineStage(clew.nn.Identity(), 0, 1, clew.device("cpu"))
        >>> ScheduleGPipe(stage, n_microbatches=2).step(clew.arange(4.0))
        tensor([0., 1., 2., 3.])
        >>> dist.destroy_process_group()
    """

    def _order(self) -> list[tuple[bool, int]]:
        parts = range(self._n_microbatches)
        return [(True, i) for i in parts] + [(False, i) for i in parts]


class Schedule1F1B(_Schedule):
    """A few parts forward, then a backward and a forward in turn: fewer are kept at a time.

    Args:
        stage: this process's `PipelineStage`.
        n_microbatches: into how many parts a batch is cut.
        loss_fn: takes the last stage's output and the target of a part. All stages must give it:
            without one there is no backward.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: must be None: dim 0 is cut.
        scale_grads: divide gradients by the number of parts, for a loss that is a mean.

    Example:
        >>> import clew.distributed as dist
        >>> from clew.distributed.pipelining import PipelineStage, Schedule1F1B
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> stage = PipelineStage(clew.nn.Identity(), 0, 1, clew.device("cpu"))
        >>> Schedule1F1B(stage, n_microbatches=2).eval(clew.arange(4.0))
        tensor([0., 1., 2., 3.])
        >>> dist.destroy_process_group()
    """

    def _order(self) -> list[tuple[bool, int]]:
        count = self._n_microbatches
        first = min(count, self._stage.num_stages - self._stage.stage_index)
        order = [(True, i) for i in range(first)]
        for i in range(count):
            order.append((False, i))
            if first + i < count:
                order.append((True, first + i))
        return order
