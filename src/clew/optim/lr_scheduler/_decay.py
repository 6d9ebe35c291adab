"""Schedules that are one formula of the epoch."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler

_Lambda = Callable[[int], float]


class _LambdaSchedule(LRScheduler):
    """Keeps one function a group; functions are not saved, callable objects are, by their dict."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: _Lambda | list[_Lambda], last_epoch: int = -1
    ) -> None:
        count = len(self._clew_checked(optimizer).param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != count:
                raise ValueError(
                    f"{type(self).__name__}: lr_lambda must have {count} functions, one a group; "
                    f"got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * count
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule; functions are left out, save them yourself."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave; functions stay as they are."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_LambdaSchedule):
    """Initial rate times a function of the epoch.

    Args:
        optimizer: whose parameter groups are scheduled.
        lr_lambda: a function of the epoch, or a list of one a group.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        return [f(self.last_epoch) * lr for f, lr in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_LambdaSchedule):
    """Present rate times a function of the epoch.

    Args:
        optimizer: whose parameter groups are scheduled.
        lr_lambda: a function of the epoch, or a list of one a group.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self._is_initial:
            return self._clew_rates()
        return [lr * f(self.last_epoch) for lr, f in zip(self._clew_rates(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Rate times `gamma` every `step_size` epochs.

    Args:
        optimizer: whose parameter groups are scheduled.
        step_size: epochs between two changes.
        gamma: the factor.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._clew_rates()
        return [lr * self.gamma for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [lr * factor for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Rate times `gamma` at each milestone.

    Args:
        optimizer: whose parameter groups are scheduled.
        milestones: the epochs of the changes; one given twice counts twice.
        gamma: the factor.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.MultiStepLR(opt, [1, 3], gamma=0.5)
        >>> for _ in range(4):
        ...     opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(milestones, Iterable):
            raise TypeError(f"MultiStepLR: milestones must be a list of epochs; got {milestones!r}")
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._clew_rates()
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [lr * factor for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Rate times `factor` for the first `total_iters` epochs.

    Args:
        optimizer: whose parameter groups are scheduled.
        factor: in [0, 1].
        total_iters: how long the factor holds.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> from clew.optim.lr_scheduler import ConstantLR
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> ConstantLR(opt, factor=0.5).get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError(f"ConstantLR: factor must be in [0, 1]; got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._clew_rates()]
        if self.last_epoch != self.total_iters:
            return self._clew_rates()
        return [lr * (1.0 / self.factor) for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        over = self.last_epoch >= self.total_iters
        return [lr * (self.factor + over * (1 - self.factor)) for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """Rate times a factor that goes linearly from one value to another.

    Args:
        optimizer: whose parameter groups are scheduled.
        start_factor: in (0, 1], the factor of epoch 0.
        end_factor: in [0, 1], the factor from epoch `total_iters` on.
        total_iters: length of the way.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError(f"LinearLR: start_factor must be in (0, 1]; got {start_factor}")
        if not 0 <= end_factor <= 1.0:
            raise ValueError(f"LinearLR: end_factor must be in [0, 1]; got {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._clew_rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._clew_rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [lr * (1.0 + rise / before) for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [lr * (self.start_factor + rise * done / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Rate times `gamma` every epoch.

    Args:
        optimizer: whose parameter groups are scheduled.
        gamma: the factor.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self._is_initial:
            return self._clew_rates()
        return [lr * self.gamma for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Rate times (1 - epoch / total_iters)**power.

    Args:
        optimizer: whose parameter groups are scheduled.
        total_iters: epochs until the rate is 0.
        power: of the polynomial.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.PolynomialLR(opt, total_iters=4)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._clew_rates()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (now / before) ** self.power for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (1.0 - done) ** self.power for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """eta_min + (initial - eta_min) * (1 + cos(pi * epoch / T_max)) / 2.

    Args:
        optimizer: whose parameter groups are scheduled.
        T_max: half a period, in epochs.
        eta_min: the smallest rate.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
        >>> opt.step(); schedule.step()
        >>> round(schedule.get_last_lr()[0], 6)
        0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        if self._is_initial:
            return self._clew_rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        epoch, half, low = self.last_epoch, self.T_max, self.eta_min
        if (epoch - 1 - half) % (2 * half) == 0:
            rise = (1 - math.cos(math.pi / half)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._clew_rates())]
        ratio = (1 + math.cos(math.pi * epoch / half)) / (
            1 + math.cos(math.pi * (epoch - 1) / half)
        )
        return [ratio * (lr - low) + low for lr in self._clew_rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * wave for lr in self.base_lrs]
