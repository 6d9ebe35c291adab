"""Schedules made of schedules, and the one that follows a measured quantity."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal

from clew._base.origins import note_origin
from clew._base.provenance import user_level

from ..optimizer import Optimizer
from ._base import _EPOCH_WARNING, LRScheduler, _write


def _same_optimizer(name: str, schedulers: Sequence[Any], optimizer: Optimizer | None) -> Optimizer:
    if len(schedulers) < 1:
        raise ValueError(f"{name}: needs at least one scheduler; got none")
    if optimizer is None:
        optimizer = getattr(schedulers[0], "optimizer", None)
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(
                f"{name}: schedulers[{i}] must have an optimizer; got {type(scheduler).__name__}"
            )
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name}: schedulers[{i}] must not be ReduceLROnPlateau, whose step needs a metric"
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"{name}: schedulers[{i}] has another optimizer than the first")
    assert optimizer is not None
    return optimizer


class _Composed(LRScheduler):
    """What SequentialLR and ChainedScheduler share: saving the schedules inside."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """The state of this schedule and of those inside."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(saved)


class SequentialLR(_Composed):
    """One schedule after another.

    Args:
        optimizer: whose parameter groups are scheduled.
        schedulers: the schedules, made with the same optimizer.
        milestones: the epochs at which the second, third, ... begin.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> from clew.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> first, second = ConstantLR(opt, 0.5, total_iters=9), ExponentialLR(opt, 0.1)
        >>> schedule = SequentialLR(opt, [first, second], milestones=[2])
        >>> for _ in range(2):
        ...     opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        note_origin(self)
        _same_optimizer("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR: milestones must be one fewer than schedulers; "
                f"got {len(milestones)} and {len(schedulers)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule took its first step when it was made: only the first one's shall count.
        for group in optimizer.param_groups:
            _write(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            _step_back(scheduler)
        # For a composed schedule this is an ordinary step of what it holds, as PyTorch has it.
        first = schedulers[bisect_right(milestones, 0)]  # a milestone of 0 passes over a schedule
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            _begin(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _step_back(scheduler: Any) -> None:
    if isinstance(scheduler, _Composed):
        for inner in scheduler._schedulers:
            _step_back(inner)
    else:
        scheduler.last_epoch -= 1


def _begin(scheduler: Any) -> None:
    """The switch to the next schedule, which starts at its epoch 0."""
    if isinstance(scheduler, _Composed):
        scheduler.step()
    elif type(scheduler).step is LRScheduler.step:
        scheduler._update_lr(0)
    else:
        scheduler.step(0)


class ChainedScheduler(_Composed):
    """Several schedules at once, each changing what the one before left.

    Args:
        schedulers: the schedules, made with the same optimizer.
        optimizer: that optimizer; None for the first schedule's.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> from clew.optim.lr_scheduler import ChainedScheduler, ExponentialLR
        >>> schedule = ChainedScheduler([ExponentialLR(opt, 0.5), ExponentialLR(opt, 0.5)])
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        note_origin(self)
        self.optimizer = _same_optimizer("ChainedScheduler", schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = self._clew_rates()

    def step(self) -> None:  # type: ignore[override]
        """Steps every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._clew_rates()


class ReduceLROnPlateau(LRScheduler):
    """Rate times `factor` once a quantity has stopped getting better.

    Args:
        optimizer: whose parameter groups are scheduled.
        mode: "min" if smaller is better, "max" if larger is.
        factor: under 1.
        patience: epochs without improvement that are accepted.
        threshold: the least improvement that counts.
        threshold_mode: "rel" to the best so far, or "abs".
        cooldown: epochs after a change in which nothing is counted.
        min_lr: lower bound of the rate, one value or one a group.
        eps: smaller changes of the rate are not made.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
        >>> for loss in [3.0, 3.0, 3.0]:
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be under 1; got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode must be 'min' or 'max'; got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: threshold_mode must be 'rel' or 'abs'; got {threshold_mode!r}"
            )
        self.optimizer = self._clew_checked(optimizer)
        self.factor = factor
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(
                    f"ReduceLROnPlateau: min_lr must have {count} values, one a group; "
                    f"got {len(min_lr)}"
                )
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.last_epoch = 0
        self._last_lr = self._clew_rates()
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted at present."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bar = best * (1.0 + sign * self.threshold)
        else:
            bar = best + sign * self.threshold
        return value < bar if self.mode == "min" else value > bar

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Looks at the quantity of this epoch and reduces the rates if it is time to.

        Args:
            metrics: the quantity, a number or a tensor with one element.
            epoch: deprecated, the number of this epoch.
        """
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=user_level())
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._clew_rates()

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "ReduceLROnPlateau: min_lr must have a value for every parameter group; got "
                    f"{len(self.min_lrs)} for {len(groups)} groups; set scheduler.min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _write(group, "lr", new)

    def get_lr(self) -> list[Any]:
        """The present learning rates."""
        return self._clew_rates()
