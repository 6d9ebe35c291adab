"""What the regions of one line took, for each training that runs them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew import Tensor, is_grad_enabled
from clew._program.enough import Enough
from clew.nn import Module
from clew.nn.modules.module import register_module_forward_pre_hook

__all__ = ["Line", "Trainings", "watch"]

_STRANGERS = 3  # so many new trainings in a row, none of them seen twice, are no trainings


@dataclass
class Line:
    """What the regions of one line of a program were like."""

    full_peak: int = 0  # without a limit
    reached: bool | None = None  # whether one needed its limit; None: not known
    peak: int = 0  # about that of the last ones
    given: int = 0  # about the most bytes that the last ones gave up
    steady: int = 0  # how many in a row gave up about as many; -1: one was refused
    first: int = 0  # the most bytes that the first few calls of these made

    def ended(self, given: int, first: int, small: bool, refused: bool) -> None:
        """A region gave up so many bytes; `small`: its calls hardly cost more than their notes."""
        if refused:
            self.steady = -1
        elif self.steady >= 0:
            alike = self.given * 4 <= given * 5 <= self.given * 25 // 4
            self.steady = self.steady + 1 if small and given and alike else 0
        self.first = max(first, self.first if self.steady > 0 else 0)
        self.given = max(given, self.given * 63 // 64 if self.steady > 0 else 0)

    def enough(self, limit: int) -> int:
        """Once so many bytes can go, the next region need not note more calls; 0: it must."""
        return self.given + self.given // 8 + limit // 16 if self.steady >= 3 else 0


@dataclass
class Trainings:
    """The regions of one line whose limit is a fraction: of what each training takes.

    A training is known by the first parameter that wants a gradient, of the first module that is
    called.

    Attributes:
        apart: of regions that call no module that is trained.
        by_parameter: of a training, with its parameter.
        strangers: how many new ones came in a row.
        shared: of all of them where each runs once, as what the last one took says.
        wide: a region was refused before its training was known, by the limit of another one.
    """

    apart: tuple[Line, Enough] = field(default_factory=lambda: (Line(), Enough()))
    by_parameter: dict[int, tuple[weakref.ref[Tensor], Line, Enough]] = field(default_factory=dict)
    strangers: int = 0
    shared: tuple[Line, Enough] = field(default_factory=lambda: (Line(), Enough()))
    wide: bool = False

    def of(self, parameter: Tensor) -> tuple[Line, Enough]:
        """The training with this parameter."""
        known = self.by_parameter.get(id(parameter))
        if known is not None and known[0]() is parameter:
            self.strangers = 0
            return known[1:]
        self.by_parameter = {k: v for k, v in self.by_parameter.items() if v[0]() is not None}
        new = Line(), Enough()
        self.by_parameter[id(parameter)] = (weakref.ref(parameter), *new)
        self.strangers += 1
        return self.shared if self.strangers > _STRANGERS else new

    def ended(self, measured: int | None, refused: bool, unknown: bool) -> None:
        """A region ended.

        Args:
            measured: the peak of one without a limit that went through.
            refused: there was no room.
            unknown: no training had shown by then.
        """
        if measured is not None and not unknown:
            self.shared[0].full_peak = measured
        if refused:
            self.wide |= unknown
            self.strangers = 0  # the next new one is measured

    def at_first(self, fraction: float) -> int | None:
        """The limit until the training is known: the largest of any that may come."""
        there = [v[1] for v in self.by_parameter.values() if v[0]() is not None]
        if any(line.full_peak == 0 for line in there) or (there and self.wide):
            return None
        last = self.shared if self.strangers > _STRANGERS else self.apart
        peak = max([line.full_peak for line in there] or [last[0].full_peak])
        return max(int(fraction * peak), 1) if peak else None


def watch(found: Callable[[Tensor], None]) -> Any:
    """Calls found(parameter) at this thread's first call of a module that is trained.

    Returns:
        a handle; its remove() ends that.
    """
    thread = threading.get_ident()

    def look(module: Module, args: Any) -> None:
        if threading.get_ident() != thread or not is_grad_enabled():
            return
        first = next((p for p in module.parameters() if p.requires_grad), None)
        if first is not None:
            handle.remove()
            found(first)

    handle = register_module_forward_pre_hook(look)
    return handle
