"""Parameters averaged within small groups often, within larger ones seldom."""

from __future__ import annotations

import warnings
from typing import Any

from clew import distributed as dist
from clew._base.provenance import user_level
from clew._torch.distributed.algorithms.model_averaging import averagers, utils


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters over groups of several sizes, each at its own period.

    Args:
        period_group_size_dict: the size of a group by its period in steps, both rising; the last
            size is that of process_group.
        warmup_steps: before them nothing is averaged.
        process_group: the group; the one of all processes if None.
    """

    def __init__(
        self, period_group_size_dict: Any = None, warmup_steps: int = 0, process_group: Any = None
    ) -> None:
        super().__init__(process_group)
        name = "HierarchicalModelAverager"
        sizes = dict(period_group_size_dict or {})
        if not sizes:
            raise ValueError(f"{name}: period_group_size_dict must not be empty")
        self._periods = list(sizes)
        if self._periods[0] <= 0:
            raise ValueError(f"{name}: periods must be positive; got {self._periods[0]}")
        if warmup_steps < 0:
            raise ValueError(f"{name}: warmup_steps must be >= 0; got {warmup_steps}")
        whole = dist.get_world_size(self.process_group)
        if sizes[self._periods[-1]] != whole:
            raise ValueError(
                f"{name}: the last size must be that of the process group, {whole}; got "
                f"{sizes[self._periods[-1]]}"
            )
        if self._periods[-1] == 1:
            warnings.warn(
                f"{name}: a longest period of 1 sends as much as DistributedDataParallel does; use "
                "that instead",
                stacklevel=user_level(),
            )
        self.warmup_steps = warmup_steps
        self.period_process_group_dict: dict[int, Any] = {}
        for period, size in sizes.items():
            group = self.process_group
            if size != whole:
                group, _ = dist.new_subgroups(size, group=self.process_group)
            self.period_process_group_dict[period] = group

    def _find_process_group(self) -> tuple[bool, Any]:
        """Whether it is time, and for which group: that of the longest period that ends now."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return True, self.period_process_group_dict[period]
        return False, None

    def average_parameters(self, params: Any) -> None:
        """Averages, if it is time, and counts the step.

        Args:
            params: parameters, or an optimizer's groups of them.
        """
        if self.step >= self.warmup_steps:
            due, group = self._find_process_group()
            if due:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
