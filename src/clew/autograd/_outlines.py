"""Functions of distributed tensors: the graph knows this process's parts of them, and what the
program wrote for backward gets the distributed tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew._C import Tensor
from clew.autograd.grad_mode import enable_grad


def _outline(t: Any) -> Any:
    return t._outline() if hasattr(type(t), "_outline") else None


class Outlines:
    """How the tensors of one call lie, without their elements.

    Args:
        args: forward's arguments.
        outputs: its results.
        saved: what it keeps for backward.
    """

    def __init__(self, args: Iterable[Any], outputs: Iterable[Any], saved: Iterable[Any]) -> None:
        self._args, self._outputs, self._saved = (
            tuple(map(_outline, given)) for given in (args, outputs, saved)
        )

    def gradients(self, parts: Iterable[Any]) -> tuple[Any, ...]:
        """The outputs' gradients, of which these are this process's parts."""
        return tuple(
            g if o is None or g is None else o._as_gradient(g) for o, g in zip(self._outputs, parts)
        )

    def parts(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """This process's parts of the arguments' gradients."""
        if len(gradients) != len(self._args):  # the engine says so
            return gradients
        return tuple(g if o is None else o._gradient_part(g) for o, g in zip(self._args, gradients))

    def saved(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """The kept tensors, of which hooks for saved tensors gave parts."""
        with enable_grad():  # a kept tensor has its history wherever it is asked for
            return tuple(
                t if o is None or type(t) is not Tensor else o._with_part(t)
                for o, t in zip(self._saved, tensors)
            )


def outlines_of(*tensors: tuple[Any, ...]) -> Outlines | None:
    """The outlines of a call's arguments, outputs and kept tensors; None where all are plain."""
    for given in tensors:
        for t in given:
            if type(t) is not Tensor and hasattr(type(t), "_outline"):
                return Outlines(*tensors)
    return None
