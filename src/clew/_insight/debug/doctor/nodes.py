"""What a recorded value was made by, and what kind of numbers it holds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from clew import Tensor
from clew._insight.debug.doctor.rule import values

# Nodes that only hand values on: look behind them for the operation that made the values.
HANDED_ON = (
    "View Reshape Squeeze Unsqueeze Transpose Permute Slice Select Clone ToDtype Flatten Index "
    "T Expand Alias Contiguous Movedim Narrow Unflatten"
).split()

MANY = 4  # elements that are enough to judge by

DISTANCES = ("_distance", "_mse_loss", "_smooth_l1_loss", "_huber_loss")

LOSSES = (
    "_cross_entropy",
    "_nll_loss",
    "_binary_cross_entropy",
    "_binary_cross_entropy_with_logits",
    *DISTANCES,
)


def behind(node: Any) -> Any:
    """The first node, from this one on, that does more than hand values on."""
    while node is not None and name_of(node) in HANDED_ON:
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def name_of(node: Any) -> str:
    return str(node.name()).removesuffix("0").removesuffix("Backward")


def maker(t: Tensor) -> str:
    """The operation that made the values of t, such as "Softmax"; empty for leaves."""
    node = behind(t.grad_fn)
    return "" if node is None else name_of(node)


def made_of(node: Any, name: str, depth: int = 4) -> bool:
    """Whether an operation of this name is among the last few that made a value."""
    below = [fn for fn, _ in node.next_functions if fn is not None]
    return any(fn.name().startswith(f"{name}Backward") for fn in below) or (
        depth > 0 and any(made_of(fn, name, depth - 1) for fn in below)
    )


def leaves_of(node: Any, without: Collection[int] = ()) -> dict[int, Tensor]:
    """The leaves that a node's value is made of, by their identities.

    Args:
        node: of a graph.
        without: numbers of nodes that are not gone through.
    """
    seen, pending = {node}, [node]
    found: dict[int, Tensor] = {}
    while pending:
        at = pending.pop()
        if without and at._sequence_nr() in without:
            continue
        leaf = getattr(at, "variable", None)
        if leaf is not None:
            found[id(leaf)] = leaf
        below = {fn for fn, _ in at.next_functions if fn is not None} - seen
        seen |= below
        pending += below
    return found


def is_scaled(node: Any, scaler: Any) -> bool:
    """Whether a node is that of a loss times the factor of a GradScaler, and nothing else."""
    if not node.name().startswith("Mul") or len(node.next_functions) != 2:
        return False
    factors = [t for t in node.saved_tensors if t is not None]
    return (
        node.next_functions[0][0] is not None
        and node.next_functions[1][0] is None
        and any(t.numel() == 1 and float(values(t)) == scaler.get_scale() for t in factors)
    )


def class_dim(t: Tensor) -> int:
    return 0 if t.dim() == 1 else 1


def on_simplex(t: Tensor) -> bool:
    """Whether the values are probabilities that add up to one over the classes."""
    if t.dim() == 0 or t.shape[class_dim(t)] < 2 or t.numel() < MANY:
        return False
    v = values(t)
    if not (v.min() >= 0 and v.max() <= 1):
        return False
    tolerance = 0.02 if t.dtype.itemsize < 4 else 1e-3
    return bool(np.abs(v.sum(class_dim(t)) - 1).max() < tolerance)


def span(v: Any) -> str:
    return f"[{v.min():.4g}, {v.max():.4g}]"
