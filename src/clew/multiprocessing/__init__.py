"""Python's multiprocessing, for tensors: what is sent to another process is shared with it.

Any queue, pipe, pool or process of Python's own module sends tensors that way once clew is
imported; here are the same names, `spawn`, and the choice of how memory is shared.

- "file_descriptor": every shared storage is a file in memory without a name, which its descriptor
  keeps. Nothing is left behind, whoever is killed. A sender must live until what it sent was
  received, and each shared storage keeps one descriptor open (see `ulimit -n`).
- "file_system": it has a name in the file system of shared memory, opens no descriptor for long,
  and may be received after its sender has ended, as long as the program that started both runs.
  The last user of all processes removes the name; where users were killed, Python's resource
  tracker does so when the whole program has ended.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

from clew._tensor.shared import STRATEGIES as _STRATEGIES
from clew._tensor.shared import get_strategy as _get_strategy
from clew._tensor.shared import set_strategy as _set_strategy

from . import pool as pool
from . import queue as queue
from . import reductions as reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how tensors that are moved to shared memory from now on are reached.

    Args:
        new_strategy: "file_descriptor" or "file_system".

    Example:
        >>> from clew.multiprocessing import set_sharing_strategy
        >>> set_sharing_strategy("file_descriptor")
    """
    _set_strategy(new_strategy)


def get_sharing_strategy() -> str:
    """How tensors that are moved to shared memory are reached.

    Example:
        >>> from clew.multiprocessing import get_sharing_strategy
        >>> get_sharing_strategy()
        'file_descriptor'
    """
    return _get_strategy()


def get_all_sharing_strategies() -> set[str]:
    """The ways there are.

    Example:
        >>> from clew.multiprocessing import get_all_sharing_strategies
        >>> sorted(get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)
