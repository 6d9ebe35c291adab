"""All prefixes of rows combined by an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew.utils import _pytree


def associative_scan(
    combine_fn: Callable[..., Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """Row i of the result combines rows 0 to i: in about twice log2(n) calls on many rows each.

    Args:
        combine_fn: takes two values like xs; associative, and works on rows side by side.
        xs: a tensor or a container of such.
        dim: the dim that rows lie along.
        reverse: combine from the last row on.
        combine_mode: "pointwise" or "generic"; for "generic" the function is given single rows.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"associative_scan: combine_mode is {combine_mode!r}")
    leaves, spec = _pytree.tree_flatten(xs)
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    side_by_side = combine_mode == "pointwise"

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        if side_by_side:
            return _pytree.tree_leaves(combine_fn(spec.unflatten(a), spec.unflatten(b)))
        return clew.vmap(
            lambda x, y: _pytree.tree_leaves(combine_fn(spec.unflatten(x), spec.unflatten(y)))
        )(a, b)

    def prefixes(rows: list[Any]) -> list[Any]:
        count = rows[0].shape[0]
        if count < 2:
            return rows
        pairs = combine([r[0 : count - 1 : 2] for r in rows], [r[1::2] for r in rows])
        odd = prefixes(pairs)
        after = [r[2::2] for r in rows]
        wanted = after[0].shape[0]
        out = []
        even = combine([o[:wanted] for o in odd], after) if wanted else None
        for i, row in enumerate(rows):
            first = row[:1] if even is None else clew.cat([row[:1], even[i]])
            woven = [first[j // 2] if j % 2 == 0 else odd[i][j // 2] for j in range(count)]
            out.append(clew.stack(woven))
        return out

    found = prefixes(leaves)
    if reverse:
        found = [leaf.flip(0) for leaf in found]
    return spec.unflatten([leaf.movedim(0, dim) for leaf in found])
