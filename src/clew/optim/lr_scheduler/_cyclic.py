"""Schedules with cycles: warm restarts, triangles and one cycle."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, Literal

from ..optimizer import Optimizer
from ._base import LRScheduler, _copied, _per_group, _write


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine decay that starts anew after T_0, then T_0 * T_mult, ... epochs.

    Args:
        optimizer: whose parameter groups are scheduled.
        T_0: length of the first period.
        T_mult: factor of the following periods' length.
        eta_min: the smallest rate.
        last_epoch: the number of the last epoch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = clew.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
        >>> for _ in range(2):
        ...     opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        name = "CosineAnnealingWarmRestarts"
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"{name}: T_0 must be a positive integer; got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"{name}: T_mult must be an integer of at least 1; got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"{name}: eta_min must be a number; got {type(eta_min).__name__}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch."""
        self._clew_warn_outside_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (lr - self.eta_min) * wave / 2 for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to any, also between two: `step(epoch + i / batches)`.

        Args:
            epoch: where to go; None for the next.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts.step: epoch must not be negative; got {epoch}"
            )
        elif epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        with self._clew_inside_step():
            values = self.get_lr()
        self._clew_set_rates(values)


def _set_momentum(group: dict[str, Any], use_beta1: bool, value: float) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _uses_beta1(name: str, optimizer: Optimizer) -> bool:
    if "betas" in optimizer.defaults:
        return True
    if "momentum" in optimizer.defaults:
        return False
    raise ValueError(f"{name}: cycle_momentum=True needs an optimizer with momentum or betas")


class CyclicLR(LRScheduler):
    """Rate that goes up and down between two bounds, every batch.

    Args:
        optimizer: whose parameter groups are scheduled.
        base_lr, max_lr: the bounds, one value or one a group.
        step_size_up, step_size_down: length of the two halves; None: both the same.
        mode: "triangular", "triangular2" (amplitude halved each cycle) or "exp_range" (times
            gamma**step).
        gamma: for "exp_range".
        scale_fn: own factor of the amplitude; `mode` is not used then.
        scale_mode: argument of scale_fn: "cycle" number or "iterations".
        cycle_momentum: momentum moves opposite to the rate.
        base_momentum, max_momentum: its bounds.
        last_epoch: the number of the last batch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0, momentum=0.9)
        >>> from clew.optim.lr_scheduler import CyclicLR
        >>> schedule = CyclicLR(opt, base_lr=0.0, max_lr=1.0, step_size_up=2)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._clew_checked(optimizer)
        base_lrs = _per_group("CyclicLR: base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                _write(group, "lr", lr)
        self.max_lrs = _per_group("CyclicLR: max_lr", max_lr, optimizer)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                "CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', or scale_fn "
                f"be given; got {mode!r}"
            )
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1("CyclicLR", optimizer)
            self.base_momentums = _per_group("CyclicLR: base_momentum", base_momentum, optimizer)
            self.max_momentums = _per_group("CyclicLR: max_momentum", max_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(
                    self.max_momentums, self.base_momentums, optimizer.param_groups
                ):
                    _set_momentum(group, self.use_beta1, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the amplitude in cycle `x`, or at iteration `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return self._triangular2_scale_fn(x)
        if self.mode == "exp_range":
            return self._exp_range_scale_fn(self.gamma, x)
        return self._triangular_scale_fn(x)

    # Schedules that PyTorch pickled name these.
    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / 2.0 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def get_lr(self) -> list[Any]:
        """The learning rates for the present batch; sets the momentum too."""
        self._clew_warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            low + (high - low) * height * factor for low, high in zip(self.base_lrs, self.max_lrs)
        ]
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups
            ):
                _set_momentum(group, self.use_beta1, high - (high - low) * height * factor)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule; a function as scale_fn is left out."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave; a function as scale_fn stays as it is."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(LRScheduler):
    """One rise to `max_lr` and one fall far below the start, every batch.

    Args:
        optimizer: whose parameter groups are scheduled.
        max_lr: the peak, one value or one a group.
        total_steps: length of the cycle; or give `epochs` and `steps_per_epoch`.
        epochs, steps_per_epoch: their product is the length.
        pct_start: part of the cycle that rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: momentum moves opposite to the rate.
        base_momentum, max_momentum: its bounds.
        div_factor: the start is max_lr / div_factor.
        final_div_factor: the end is start / final_div_factor.
        three_phase: fall back to the start as fast as risen, then to the end.
        last_epoch: the number of the last batch when resuming.

    Example:
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0, momentum=0.9)
        >>> schedule = clew.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10)
        >>> round(schedule.get_last_lr()[0], 6)
        0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._clew_checked(optimizer)
        if total_steps is not None:
            if not isinstance(total_steps, int) or total_steps <= 0:
                raise ValueError(
                    f"OneCycleLR: total_steps must be a positive integer; got {total_steps}"
                )
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            for key, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"OneCycleLR: {key} must be a positive integer; got {value}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start must be a float in [0, 1]; got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear'; got {anneal_strategy!r}"
            )
        self._anneal_func_type = anneal_strategy
        peak = float(pct_start * self.total_steps) - 1
        end = self.total_steps - 1
        lr, momentum = ("initial_lr", "max_lr", "min_lr"), ("max_momentum", "base_momentum")
        legs = [(peak, lr[0], lr[1], momentum[0], momentum[1])]
        if three_phase:
            legs.append(
                (
                    float(2 * pct_start * self.total_steps) - 2,
                    lr[1],
                    lr[0],
                    momentum[1],
                    momentum[0],
                )
            )
            legs.append((end, lr[0], lr[2], momentum[0], momentum[0]))
        else:
            legs.append((end, lr[1], lr[2], momentum[1], momentum[0]))
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(keys, leg)) for leg in legs]

        max_lrs = _per_group("OneCycleLR: max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for top, group in zip(max_lrs, optimizer.param_groups):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1("OneCycleLR", optimizer)
            highs = _per_group("OneCycleLR: max_momentum", max_momentum, optimizer)
            lows = _per_group("OneCycleLR: base_momentum", base_momentum, optimizer)
            if last_epoch == -1:
                for high, low, group in zip(highs, lows, optimizer.param_groups):
                    _set_momentum(group, self.use_beta1, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _clew_anneal(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        """The learning rates for the present batch; sets the momentum too."""
        self._clew_warn_outside_step()
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(
                f"OneCycleLR: step was called {now} times; the cycle has {self.total_steps} steps"
            )
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if now <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        part = (now - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(
                self._clew_anneal(_copied(group[phase["start_lr"]]), group[phase["end_lr"]], part)
            )
            if self.cycle_momentum:
                value = self._clew_anneal(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], part
                )
                _set_momentum(group, self.use_beta1, value)
        return rates
