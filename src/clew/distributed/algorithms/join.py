"""Processes with unequal numbers of batches: who has finished shadows what the others do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import clew
from clew.distributed import distributed_c10d as c10d

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does for one object after its last batch.

    Example:
        >>> from clew.distributed.algorithms import JoinHook
        >>> class Counts(JoinHook):
        ...     batches = 0
        ...     def main_hook(self):
        ...         self.batches += 1
        >>> hook = Counts()
        >>> hook.main_hook()
        >>> hook.batches
        1
    """

    def main_hook(self) -> None:
        """Shadows the collectives of one batch of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Runs when all processes have finished.

        Args:
            is_last_joiner: whether this process finished last; several may.
        """


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """An object whose collectives can be shadowed, such as DistributedDataParallel.

    It calls `Join.notify_join_context(self)` before the collectives of each batch.

    Example:
        >>> from clew.distributed.algorithms import Joinable
        >>> from clew.nn.parallel import DistributedDataParallel
        >>> issubclass(DistributedDataParallel, Joinable)
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        # Told by its methods, so that DistributedDataParallel need not import this file.
        wanted = ("join_hook", "join_device", "join_process_group")
        joins = cls is Joinable and all(hasattr(other, name) for name in wanted)
        return True if joins else NotImplemented

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook that shadows it.

        Args:
            kwargs: what was given to `Join`.
        """

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of its collectives."""


class Join:
    """A context in which processes may have unequal numbers of batches.

    Args:
        joinables: objects whose collectives are shadowed, in the order in which they are used.
        enable: whether it does anything.
        throw_on_early_termination: raise on all processes when the first has finished.
        kwargs: for the objects' `join_hook`.

    Example:
        >>> from clew.distributed.algorithms import Join
        >>> from clew.nn.parallel import DistributedDataParallel
        >>> clew.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = DistributedDataParallel(clew.nn.Linear(2, 1))
        >>> with Join([model]):
        ...     for x in clew.ones(3, 1, 2):
        ...         model(x).sum().backward()
        >>> clew.distributed.destroy_process_group()
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("Join: at least one object must be given")
        groups = {id(j.join_process_group) for j in joinables}
        if len(groups) > 1:
            raise ValueError("Join: the objects use several process groups; they must share one")
        self._joinables = list(joinables)
        self._enable, self._throw = enable, throw_on_early_termination
        self._group = joinables[0].join_process_group
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        for i, j in enumerate(self._joinables):
            j._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> Join:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            if not self._enable or kind is not None:
                return
            last = True
            while True:
                left = clew.zeros(1)
                c10d.all_reduce(left, group=self._group)
                if not left.item():
                    break
                if self._throw:
                    _tell_of_end(self._group, True)
                last = False
                for hook in self._hooks:
                    hook.main_hook()
            for hook in self._hooks:
                hook.post_hook(last)
        finally:
            for j in self._joinables:
                j._join_config = _JoinConfig.construct_disabled_join_config()

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Says that this process has another batch; called before a batch's collectives.

        Args:
            joinable: who calls; of several objects only the first one's calls count.
        """
        config = getattr(joinable, "_join_config", None)
        if config is None or not config.enable or not config.is_first_joinable:
            return
        group = joinable.join_process_group
        c10d.all_reduce(clew.ones(1), group=group)
        if config.throw_on_early_termination:
            _tell_of_end(group, False)


def _tell_of_end(group: Any, ended: bool) -> None:
    told = clew.ones(1) if ended else clew.zeros(1)
    c10d.all_reduce(told, group=group)
    if told.item():
        raise RuntimeError(
            "Join: a process has run out of batches, and throw_on_early_termination is set, so all "
            "processes end"
        )


def last_joiner(group: Any, is_last: bool) -> int:
    """The place in the group of a process that finished last, the same on all.

    Args:
        group: the group.
        is_last: whether this one did.
    """
    told = clew.zeros(group.size())
    told[group.rank()] = float(is_last)
    c10d.all_reduce(told, group=group)
    return int(told.nonzero()[0])
