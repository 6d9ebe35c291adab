"""When parameters are averaged over processes (Lin et al., Don't Use Large Mini-Batches, 2018)."""

from __future__ import annotations

from typing import Any

from clew._torch.absent import _SHARDED, absent
from clew._torch.distributed.algorithms.model_averaging import utils


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return absent("distributed.algorithms.model_averaging.averagers", name, _SHARDED)


class ModelAverager:
    """Averages parameters at some of the steps; subclasses say at which.

    Args:
        process_group: the group; the one of all processes if None.
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = process_group
        self.step = 0

    def average_parameters(self, params: Any) -> None:
        """Called after each step.

        Args:
            params: parameters, or an optimizer's groups of them.
        """
        raise NotImplementedError("ModelAverager: subclasses define average_parameters")


class PeriodicModelAverager(ModelAverager):
    """Averages parameters at every so many steps.

    Args:
        period: how many steps.
        warmup_steps: before them nothing is averaged.
        process_group: the group; the one of all processes if None.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError(
                f"PeriodicModelAverager: warmup_steps must be >= 0; got {warmup_steps}"
            )
        if period < 1:
            raise ValueError(f"PeriodicModelAverager: period must be >= 1; got {period}")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Any) -> None:
        """Averages, if it is time, and counts the step.

        Args:
            params: parameters, or an optimizer's groups of them.
        """
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
