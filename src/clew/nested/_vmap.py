"""vmap over the rows of ragged and nested tensors: once for each size that rows have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import clew
from clew._C import Tensor
from clew.nested._strided import NestedRows, is_nested_rows, of_rows
from clew.nested._tensor import NestedTensor, Rows, is_ragged, ragged
from clew.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["by_length"]


def by_length(
    run: Callable[[list[Any], int], Any],
    leaves: list[Any],
    dims: list[Any],
    out_dims_of: Callable[[Any], list[Any]],
    randomness: str,
) -> Any:
    """What a vmapped function makes of arguments of which some are ragged or nested.

    Args:
        run: the vmapped function, of dense arguments and the number of samples.
        leaves: the arguments.
        dims: the mapped dim of each, or None.
        out_dims_of: the mapped dim of each result, of their structure.
        randomness: as for vmap.

    Returns:
        the results: ragged where one size differs from row to row, nested where several do,
        otherwise dense.
    """
    mapped = [x for x, d in zip(leaves, dims) if d is not None and _has_rows(x)]
    if any(d and _has_rows(x) for x, d in zip(leaves, dims)):
        raise ValueError("vmap: a ragged tensor is mapped over its rows: its in_dim must be 0")
    lengths = list(zip(*(x._rows.counts if is_ragged(x) else x._shapes for x in mapped)))
    groups: dict[Any, list[int]] = {} if lengths else {(0,) * len(mapped): []}
    for row, key in enumerate(lengths):
        groups.setdefault(key, []).append(row)
    if randomness == "same" and len(groups) > 1:
        raise RuntimeError(
            "vmap: randomness='same' is not offered for rows of different lengths, whose draws "
            "cannot be the same; draw outside and pass the numbers with in_dim None"
        )
    results = []
    for rows in groups.values():
        at = np.asarray(rows, np.int64)
        results.append(run([_picked(x, d, at) for x, d in zip(leaves, dims)], len(rows)))
    if len(results) == 1:
        return results[0]
    _, spec = tree_flatten(results[0])
    columns = zip(*(tree_flatten(r)[0] for r in results))
    order = np.concatenate([np.asarray(rows, np.int64) for rows in groups.values()])
    joined = [_joined(list(c), d, np.argsort(order)) for c, d in zip(columns, out_dims_of(spec))]
    return tree_unflatten(joined, spec)


def _has_rows(x: Any) -> bool:
    return is_ragged(x) or is_nested_rows(x)


def _picked(x: Any, dim: Any, rows: np.ndarray) -> Any:
    """Some samples of an argument; of a ragged one, rows of one length; of a nested one, of one
    shape.
    """
    if dim is None:
        return x
    if is_nested_rows(x):
        given = x.row_values()
        return clew.stack([given[i] for i in rows])
    if not is_ragged(x):
        return x.index_select(dim, clew.from_numpy(rows))
    return _batch(x, rows)


def _batch(x: NestedTensor, rows: np.ndarray) -> Tensor:
    """Rows of one length as a dense tensor."""
    starts = np.asarray(x._rows.starts, np.int64)[rows]
    length = x._rows.counts[rows[0]] if len(rows) else 0
    places = (starts[:, None] + np.arange(length)).reshape(-1)
    dim = x._at - 1
    found = x._elements.index_select(dim, clew.from_numpy(places))
    return found.unflatten(dim, (len(rows), length)).movedim(dim, 0)


def _joined(parts: list[Any], dim: Any, order: np.ndarray) -> Any:
    """The results of all groups, samples in their order before."""
    if dim is None:
        raise RuntimeError(
            "vmap: out_dims=None is not offered for rows of different lengths: each length has a "
            "result of its own"
        )
    if not all(isinstance(p, Tensor) for p in parts):
        return parts[0]  # None, the only other result that is not mapped
    parts = [p.movedim(dim, 0) for p in parts]
    shapes = [tuple(p.shape[1:]) for p in parts]
    if len(set(shapes)) == 1:
        found = clew.cat(parts).index_select(0, clew.from_numpy(order))
        return found.movedim(0, dim)
    same_dims = len({len(s) for s in shapes}) == 1
    differ = [d for d in range(len(shapes[0])) if same_dims and len({s[d] for s in shapes}) > 1]
    if not differ or dim % (len(shapes[0]) + 1):
        raise RuntimeError(
            "vmap: results for rows of different lengths may differ in sizes only, with out_dims "
            f"0; got shapes {[list(s) for s in shapes[:4]]} and out_dim {dim}; "
            "return one that does not depend on the length, or work on the rows of .unbind()"
        )
    at = differ[0]
    rows = [row for p in parts for row in p.unbind(0)]
    rows = [rows[i] for i in order]
    if len(differ) > 1:
        return of_rows(rows)
    return ragged(Rows.of_counts([r.shape[at] for r in rows]), clew.cat(rows, at), at + 1)


NestedTensor._mapped_by_length = staticmethod(by_length)
NestedRows._mapped_by_length = staticmethod(by_length)
