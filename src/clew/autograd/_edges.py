"""Gradient edges, and tensors that stand for them where the engine takes tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew import _C
from clew._C import Node, Tensor

__all__ = ["GradientEdge", "tensors_of"]


class GradientEdge(NamedTuple):
    """Where a tensor's gradient is sent: a node and one of its outputs. `autograd.grad` and
    `backward` take it in place of the tensor, whose elements then need not be kept.

    >>> x = clew.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> edge = clew.autograd.graph.GradientEdge(y.grad_fn, y.output_nr)
    >>> clew.autograd.grad(y.sum(), edge)
    (tensor([1., 1.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def tensors_of(x: Any) -> tuple[Any, ...]:
    """One tensor, edge or None, or several, as a tuple in which tensors stand for edges."""
    if isinstance(x, (Tensor, GradientEdge)) or x is None:
        x = (x,)
    return tuple(_tensor_of(e) if isinstance(e, GradientEdge) else e for e in x)


def _tensor_of(edge: GradientEdge) -> Tensor:
    leaf = getattr(edge.node, "variable", None)
    if leaf is not None:
        return leaf
    return _C._tensor_of_edge(edge.node, edge.output_nr)
