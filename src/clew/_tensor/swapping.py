"""Two tensors that change places."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from clew.autograd.grad_mode import no_grad


def swap_tensors(t1: Any, t2: Any) -> None:
    """Gives each of two tensors the other's data, gradient, class and attributes.

    Args:
        t1: a leaf that no weak reference points to.
        t2: another.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"swap_tensors: {name} has a weak reference to it")
        if t.grad_fn is not None:
            raise RuntimeError(f"swap_tensors: {name} is the result of an operation, not a leaf")
    slots = [set(copyreg._slotnames(type(t))) for t in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("swap_tensors: t1 and t2 have different slots")
    first = (t1.data, t1.grad, t1.requires_grad, t1.__dict__, type(t1))
    second = (t2.data, t2.grad, t2.requires_grad, t2.__dict__, type(t2))
    with no_grad():
        t1.grad = t2.grad = None  # of a shape that the new data may not have
        for t in (t1, t2):
            t.requires_grad_(False)
        for t, (data, grad, wants, attributes, kind) in ((t1, second), (t2, first)):
            t.data = data
            t.__class__ = kind
            t.__dict__ = attributes
            t.requires_grad_(wants)
            t.grad = grad
