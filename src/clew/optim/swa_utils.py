"""Averages of weights over training: a model of averages, a schedule, statistics of batch norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

import clew
from clew import Tensor
from clew.nn import Module

from .lr_scheduler import LRScheduler
from .lr_scheduler._base import _per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"decay must be in [0, 1]; got {decay}")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function that sets averages to decay * average + (1 - decay) * value, for lists.

    Args:
        decay: in [0, 1].

    Example:
        >>> from clew.optim.swa_utils import get_ema_multi_avg_fn
        >>> average = [clew.zeros(1)]
        >>> get_ema_multi_avg_fn(0.5)(average, [clew.ones(1)], None)
        >>> average
        [tensor([0.5000])]
    """
    _check_decay(decay)

    def update(averages: Iterable[Tensor], values: Iterable[Tensor], _: Any) -> None:
        with clew.no_grad():
            for average, value in zip(averages, values):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value.to(average.dtype), 1 - decay)
                else:
                    average.copy_(average * decay + value * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that updates a list of equal-weight averages.

    Example:
        >>> from clew.optim.swa_utils import get_swa_multi_avg_fn
        >>> average = [clew.zeros(1)]
        >>> get_swa_multi_avg_fn()(average, [clew.ones(1)], 3)
        >>> average
        [tensor([0.2500])]
    """

    def update(averages: Iterable[Tensor], values: Iterable[Tensor], num_averaged: Any) -> None:
        with clew.no_grad():
            weight = 1 / (int(num_averaged) + 1)
            for average, value in zip(averages, values):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value.to(average.dtype), weight)
                else:
                    average.add_(
                        clew.div(value - average, int(num_averaged) + 1, rounding_mode="trunc")
                    )

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """As `get_ema_multi_avg_fn`, for one tensor and returning the new average.

    Args:
        decay: in [0, 1].

    Example:
        >>> from clew.optim.swa_utils import get_ema_avg_fn
        >>> get_ema_avg_fn(0.5)(clew.zeros(1), clew.ones(1), 1)
        tensor([0.5000])
    """
    _check_decay(decay)

    def update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        with clew.no_grad():
            return decay * average + (1 - decay) * value

    return update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """As `get_swa_multi_avg_fn`, for one tensor and returning the new average.

    Example:
        >>> from clew.optim.swa_utils import get_swa_avg_fn
        >>> get_swa_avg_fn()(clew.zeros(1), clew.ones(1), 3)
        tensor([0.2500])
    """

    def update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        with clew.no_grad():
            return average + (value - average) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose weights are the average of the model's weights over time.

    Args:
        model: the model to follow.
        device: where the copy lives; None for the model's.
        avg_fn: new average from (average, value, number averaged so far).
        multi_avg_fn: the same for lists, in place; None for equal weights.
        use_buffers: average buffers too; otherwise they are copied.

    Example:
        >>> from clew.optim.swa_utils import AveragedModel
        >>> model = clew.nn.Linear(1, 1)
        >>> average = AveragedModel(model)
        >>> average.update_parameters(model)
        >>> bool((average.module.weight == model.weight).all())
        True
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", clew.tensor(0, dtype=clew.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _clew_tensors(self, module: Module) -> list[Tensor]:
        tensors: list[Tensor] = list(module.parameters())
        return tensors + list(module.buffers()) if self.use_buffers else tensors

    def update_parameters(self, model: Module) -> None:
        """Takes the present weights of `model` into the average."""
        averages = [t.detach() for t in self._clew_tensors(self.module)]
        values = [t.detach().to(a.device) for t, a in zip(self._clew_tensors(model), averages)]
        with clew.no_grad():
            if self.n_averaged == 0:
                for average, value in zip(averages, values):
                    average.copy_(value)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averages, values, self.n_averaged)
            elif self.avg_fn is not None:
                for average, value in zip(averages, values):
                    average.copy_(self.avg_fn(average, value, self.n_averaged))
            else:
                get_swa_multi_avg_fn()(averages, values, self.n_averaged)
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers()):
                    mine.detach().copy_(theirs.detach())
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, in one pass over the data.

    Args:
        loader: gives batches; of a list or tuple the first item is the model's input.
        model: whose BatchNorm layers are updated.
        device: where the input is moved; None to leave it.

    Example:
        >>> from clew.optim.swa_utils import update_bn
        >>> model = clew.nn.BatchNorm1d(1)
        >>> update_bn([clew.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if hasattr(module, "reset_running_stats") and hasattr(module, "momentum"):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # a plain average over all batches
    with clew.no_grad():
        for batch in loader:
            data = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(data if device is None else data.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the present rate to `swa_lr` within `anneal_epochs` and stays there.

    Args:
        optimizer: whose parameter groups are scheduled.
        swa_lr: the final learning rate, one value or one a group.
        anneal_epochs: how many epochs it takes to get there.
        anneal_strategy: "cos" or "linear".
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> from clew.optim.swa_utils import SWALR
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = SWALR(opt, swa_lr=0.5, anneal_epochs=1)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = _per_group("SWALR: swa_lr", swa_lr, self._clew_checked(optimizer))
        for rate, group in zip(rates, optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: anneal_strategy must be 'cos' or 'linear'; got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: anneal_epochs must be an integer of at least 0; got {anneal_epochs}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _clew_part(self, step: int) -> float:
        """How far the way has been gone, in [0, 1]."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (self._cosine_anneal if self._anneal_strategy == "cos" else self._linear_anneal)(t)

    # Schedules that PyTorch pickled name these.
    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._clew_part(step - 1), self._clew_part(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._clew_rates()):
            goal = group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
