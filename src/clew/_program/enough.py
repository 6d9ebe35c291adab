"""How large a memory budget must be, by what is known when a call is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew import _C, Tensor

__all__ = ["Enough", "advice", "open_lines"]

# Bytes of state to those of a parameter, after the first step.
_STATES = {
    "Adadelta": 2.0, "Adam": 2.0, "AdamW": 2.0, "Adamax": 2.0, "NAdam": 2.0, "RAdam": 2.0,
    "Rprop": 2.0, "ASGD": 1.0, "RMSprop": 1.0, "SGD": 0.0, "Adam8bit": 0.5, "AdamW8bit": 0.5,
    "Muon": 1.0, "Adafactor": 0.0,
}  # fmt: skip


class Enough:
    """What the regions of one line needed."""

    def __init__(self) -> None:
        self.sufficed: int | None = None  # the least bytes that were enough for a whole region
        self.left_garbage = False  # a refused region may have: its error holds what ran

    def ended(self, limit: int | None, peak: int, given_up: int) -> None:
        """A region went through."""
        enough = limit if limit is not None and given_up else peak
        self.sufficed = enough if self.sufficed is None else min(enough, self.sufficed)

    def refused(self, limit: int) -> None:
        """A region with this limit did not; what less sufficed for is over."""
        self.left_garbage = True
        if self.sufficed is not None and self.sufficed <= limit:
            self.sufficed = None


open_lines: list[Enough] = []  # of the regions that are open


def _bytes(t: Tensor) -> int:
    return t.numel() * t.element_size()


def _state_to_come(optimizer: Any) -> int | None:
    """Bytes of state that the optimizer will make for its parameters; None: only its first step
    will tell.
    """
    here = stepped = 0
    for p, state in optimizer.state.items():
        found = [t for t in state.values() if isinstance(t, Tensor) and t.numel() > 1]
        here += sum(map(_bytes, found))
        stepped += _bytes(p) if found else 0
    name = next((c.__name__ for c in type(optimizer).__mro__ if c.__name__ in _STATES), "")
    if not name and not optimizer.state:
        return None
    whole = 0.0
    for group in optimizer.param_groups:
        ratio = _STATES[name] if name else here / stepped if stepped else 0.0
        if name in ("Adam", "AdamW"):
            ratio += bool(group.get("amsgrad"))
        elif name in ("SGD", "RMSprop"):
            ratio += bool(group.get("momentum")) + bool(group.get("centered"))
        whole += ratio * sum(_bytes(p) for p in group["params"] if p.requires_grad)
    return max(int(whole) - here, 0)


def advice(optimizers: Iterable[Any], alive: Iterable[Tensor]) -> str:
    """The figure that a refusal names: what is live, with what the step is known to make still.

    Args:
        optimizers: all there are.
        alive: all tensors.
    """
    from clew.nn import Parameter

    needed, more, in_backward, limit, widest, offloads, recomputed, late = _C._budget_refusal()
    if late:
        for line in open_lines:
            line.refused(limit)
        return (
            "\n  steps before this one needed less, so only its first calls were noted "
            "and can be made again; from now on all are: run the step again"
        )
    optimizers = [o for o in optimizers if not hasattr(o, "_stored")]  # their state is in a file
    params = {id(p): p for o in optimizers for g in o.param_groups for p in g["params"]}
    params |= {id(t): t for t in alive if isinstance(t, Parameter)}
    without = [_bytes(p) for p in params.values() if p.requires_grad and p.grad is None]
    gradients = sum(without)
    states = {o: _state_to_come(o) for o in optimizers}
    state = sum(n or 0 for n in states.values())
    unknown = sorted({type(o).__name__ for o, n in states.items() if n is None})
    # A call's gradient rule has what the call read and made, and the gradients of both.
    working = widest // 4 if in_backward else max(widest, 2 * more)
    if more in {_bytes(p) for p in params.values()}:  # a gradient or a moment was asked for
        working = widest // 4
        if in_backward:
            gradients -= more if more in without else 0
        else:
            state = max(state - more, 0)
    figure = needed + gradients + state + working
    sufficed = next((e.sufficed for e in reversed(open_lines) if e.sufficed), None)
    for line in open_lines:
        line.refused(limit)
    to_come = [f"{n} {what}" for n, what in (
        (gradients, "of gradients"), (state, "of the optimizer's state")) if n]  # fmt: skip
    text = "\n  a budget of "
    if sufficed is not None and needed <= sufficed <= figure and sufficed > limit:
        text += f"{sufficed} bytes was enough in an earlier step"
    else:
        least = "" if recomputed else " (less can never do)"
        text += (
            f"about {figure} bytes should be enough by what is known now: {needed} here{least}, "
            f"{' and '.join(to_come) or 'nothing that stays'} to come, and some "
            f"{working} to compute gradients with; what comes later in the step may need more"
        )
        if unknown:
            text += f" (how much state {' and '.join(unknown)} has shows at its first step)"
        if sufficed is not None and sufficed > figure:
            text += f" ({sufficed} was enough in an earlier step)"
    text += ". Raise it, use a smaller batch, or hold fewer tensors in variables"
    return text + ("" if offloads else ", or give offload= a directory")
