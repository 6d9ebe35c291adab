"""The base class of schedules: counting steps, writing learning rates, saving."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clew import Tensor
from clew._base.origins import note_origin
from clew._base.provenance import user_level

from ..optimizer import Optimizer

_EPOCH_WARNING = (
    "The epoch argument of scheduler.step() is deprecated: call step() once an epoch instead."
)


def _copied(value: Any) -> Any:
    """A learning rate that later in-place changes do not reach."""
    return value.clone() if isinstance(value, Tensor) else value


def _write(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets an option of a group; a tensor is filled, so that who holds it sees the change."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def _per_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group, from a list or from one value for all."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(f"{name} must have {count} values, one a group; got {len(value)}")
        return list(value)
    return [value] * count


def _watch_steps(optimizer: Optimizer) -> None:
    """Makes the optimizer note that its `step` was called, for the warning on the call order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = getattr(optimizer.step, "__func__", None)
    replaced = optimizer.step if function is None else None  # by a plain function of somebody's
    reference = weakref.ref(optimizer)  # the wrapper lives in the optimizer itself

    @functools.wraps(function or replaced)  # type: ignore[arg-type]
    def step(*args: Any, **kwargs: Any) -> Any:
        opt = reference()
        opt._opt_called = True  # type: ignore[union-attr]
        if function:
            return function(opt, *args, **kwargs)
        return replaced(*args, **kwargs)  # type: ignore[misc]

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


class LRScheduler:
    """Base class of schedules of the learning rate.

    A subclass defines `get_lr()`, which returns the new learning rate of every group, computed
    from `self.last_epoch`, `self.base_lrs` and the groups' present rates.

    Args:
        optimizer: whose parameter groups are scheduled.
        last_epoch: the number of the last epoch when resuming, -1 to start.

    Example:
        >>> from clew.optim.lr_scheduler import LRScheduler
        >>> class Halving(LRScheduler):
        ...     def get_lr(self):
        ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
        >>> opt = clew.optim.SGD([clew.zeros(1)], lr=1.0)
        >>> schedule = Halving(opt)
        >>> opt.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = self._clew_checked(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copied(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"{type(self).__name__}: parameter group {i} needs 'initial_lr' when "
                        f"resuming; got last_epoch={last_epoch}"
                    )
        self.base_lrs: list[Any] = [_copied(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _clew_checked(self, optimizer: Any) -> Optimizer:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: optimizer must be an Optimizer; "
                f"got {type(optimizer).__name__}"
            )
        note_origin(self)
        return optimizer

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule as a dict, without the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step set, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The learning rates for the present epoch, one a group; only `step` calls this."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr is not defined")

    def _clew_warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "get_lr() is called by step(); use get_last_lr() to ask for the learning rate.",
                UserWarning,
                stacklevel=user_level(),
            )

    def _clew_rates(self) -> list[Any]:
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    @contextmanager
    def _clew_inside_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def step(self, epoch: int | None = None) -> None:
        """Sets the learning rates of the next epoch; call it after `optimizer.step()`.

        Args:
            epoch: deprecated, the epoch to go to.
        """
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "optimizer.step was replaced after the schedule was made; the order of "
                    "optimizer.step() and lr_scheduler.step() cannot be checked.",
                    UserWarning,
                    stacklevel=user_level(),
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call "
                    "optimizer.step() first, or the first value of the schedule is skipped.",
                    UserWarning,
                    stacklevel=user_level(),
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH_WARNING, UserWarning, stacklevel=user_level())
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._clew_inside_step():
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed_form()
        self._clew_set_rates(values)

    def _clew_set_rates(self, values: list[Any]) -> None:
        groups = self.optimizer.param_groups
        if len(values) != len(groups):
            raise ValueError(
                f"{type(self).__name__}: there must be one rate a parameter group; got "
                f"{len(values)} for {len(groups)} groups; make the schedule after the optimizer's "
                "add_param_group"
            )
        for group, value in zip(groups, values):
            _write(group, "lr", value)
        self._last_lr: list[Any] = self._clew_rates()
