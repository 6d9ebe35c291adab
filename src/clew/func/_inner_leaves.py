"""The leaves that transforms make while another one runs its function. When that one ends, nobody
differentiates with respect to them any more: a result that depends on them alone has no history.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

from clew import _C
from clew._base.tasks import of_tasks
from clew._C import Tensor
from clew._tensor.structured import parts_of

__all__ = ["InnerLeaves", "note_inner"]


class _Open(threading.local):
    """The leaves, in the order in which they were made, and how many were there when each of the
    transforms that are open began to run its function.
    """

    def __init__(self) -> None:
        self.leaves: list[weakref.ref[Tensor]] = []
        self.starts: list[int] = []


_open = of_tasks(_Open())


def note_inner(tensors: Iterable[Tensor]) -> None:
    """Notes the leaves among tensors that a transform makes for itself within another one."""
    if _open.starts:
        for t in parts_of(tensors):
            if t.is_leaf:
                # The graph holds the tensor of all samples, not that which stands for one.
                levels = _C._levels(t)
                _open.leaves.append(weakref.ref(_C._show_levels(t, levels) if levels else t))


class InnerLeaves:
    """Around a transform's function: the leaves that transforms within it make."""

    __slots__ = ("_start",)

    def __enter__(self) -> InnerLeaves:
        leaves, starts = _open.leaves, _open.starts
        if starts:  # those of transforms that went before are mostly gone
            while len(leaves) > starts[-1] and leaves[-1]() is None:
                leaves.pop()
        self._start = len(leaves)
        starts.append(self._start)
        return self

    def __exit__(self, *exc: object) -> None:
        _open.starts.pop()
        if not _open.starts:
            _open.leaves.clear()

    def alive(self) -> list[Tensor]:
        """Those that a graph or somebody else still holds."""
        return [t for ref in _open.leaves[self._start :] if (t := ref()) is not None]
