"""Branches and loops as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.utils import _pytree


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """One of two functions' results.

    Args:
        pred: a bool, or a tensor with one.
        true_fn: called where it is true.
        false_fn: called where it is not.
        operands: their arguments.
    """
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Applies a function to values as long as a condition on them holds.

    Args:
        cond_fn: the condition.
        body_fn: gives the next values.
        carried_inputs: the first values.
    """
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        values = tuple(body_fn(*values))
    return values


def _rows(tree: Any, dim: int) -> list[Any]:
    leaves, spec = _pytree.tree_flatten(tree)
    columns = [leaf.unbind(dim) for leaf in leaves]
    return [spec.unflatten(row) for row in zip(*columns)]


def _stacked(rows: list[Any], dim: int = 0) -> Any:
    spec = _pytree.tree_structure(rows[0])
    columns = zip(*(_pytree.tree_leaves(row) for row in rows))
    return spec.unflatten([clew.stack(list(column), dim) for column in columns])


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """A function of each row, stacked."""
    return _stacked([f(row, *args) for row in _rows(xs, 0)])


def scan(
    combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> Any:
    """Carries values along the rows: gives the last ones, and what came out at each row.

    Args:
        combine_fn: (carried, row) to (carried, out).
        init: the first carried values.
        xs: the rows.
        dim: the dim that they lie along.
        reverse: from the last row to the first.
    """
    rows = _rows(xs, dim)
    outs = []
    for row in reversed(rows) if reverse else rows:
        init, out = combine_fn(init, row)
        outs.append(out)
    return init, _stacked(outs[::-1] if reverse else outs)
