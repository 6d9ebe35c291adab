"""rearrange: reshaping and permuting said by names of dimensions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from clew import _C
from clew._C import Tensor

_TOKEN = re.compile(r"\s*(\.\.\.|\(|\)|[A-Za-z]\w*|1(?!\w)|\S)")
_ELLIPSIS = "..."


def _side(text: str, pattern: str) -> list[list[str]]:
    """The groups of names on one side of the arrow: one for each dimension."""
    groups: list[list[str]] = []
    inside = False
    seen: set[str] = set()
    for token in _TOKEN.findall(text):
        if token == "(" and not inside:
            groups.append([])
            inside = True
        elif token == ")" and inside:
            inside = False
        elif token == "1":
            if not inside:
                groups.append([])
        elif token == _ELLIPSIS or token.isidentifier():
            if token in seen:
                raise ValueError(f"rearrange: {token!r} appears twice on a side of {pattern!r}")
            if token == _ELLIPSIS and inside:
                raise ValueError(f"rearrange: '...' must not stand in parentheses; got {pattern!r}")
            seen.add(token)
            if inside:
                groups[-1].append(token)
            else:
                groups.append([token])
        else:
            raise ValueError(f"rearrange: {token!r} is not understood in {pattern!r}")
    if inside:
        raise ValueError(f"rearrange: a parenthesis is not closed in {pattern!r}")
    return groups


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """Permutes, splits and joins dimensions by their names.

    Args:
        tensor: the tensor, or tensors of one shape that are stacked along a new first dimension.
        pattern: names on the left, the same names in another order on the right; names in
            parentheses share a dimension, ``...`` stands for any others, ``1`` for size 1.
        axes_lengths: sizes of named dimensions that the tensor does not tell.

    Returns: a view where possible.

    Example:
        >>> x = clew.arange(6).reshape(2, 3)
        >>> clew.func.rearrange(x, "a b -> b a").tolist()
        [[0, 3], [1, 4], [2, 5]]
        >>> clew.func.rearrange(x, "a (b c) -> (a b) c", c=1).shape
        clew.Size([6, 1])
    """
    x: Tensor = tensor if isinstance(tensor, Tensor) else _C.functions["stack"](list(tensor))
    if pattern.count("->") != 1:
        raise ValueError(f"rearrange: the pattern needs one '->'; got {pattern!r}")
    left, right = (_side(part, pattern) for part in pattern.split("->"))
    names = [n for g in left for n in g]
    if sorted(names) != sorted(n for g in right for n in g):
        raise ValueError(f"rearrange: both sides must have the same names; got {pattern!r}")
    unknown = set(axes_lengths) - set(names)
    if unknown:
        raise ValueError(f"rearrange: {sorted(unknown)} do not appear in {pattern!r}")
    extra = x.ndim - len(left) + (_ELLIPSIS in names)
    if extra < 0 or (_ELLIPSIS not in names and extra != 0):
        raise ValueError(
            f"rearrange: the left side of {pattern!r} does not fit {x.ndim} dimensions"
        )
    sizes = _sizes(x.shape, left, extra, dict(axes_lengths), pattern)
    spread = x.reshape([s for n in names for s in sizes[n]])
    start, place = {}, 0
    for n in names:
        start[n] = place
        place += len(sizes[n])
    order = [start[n] + k for g in right for n in g for k in range(len(sizes[n]))]
    shape: list[int] = []
    for g in right:
        if g == [_ELLIPSIS]:
            shape += sizes[_ELLIPSIS]
        else:
            shape.append(math.prod(s for n in g for s in sizes[n]))
    return spread.permute(order).reshape(shape)


def _sizes(
    shape: Sequence[int], left: list[list[str]], extra: int, known: dict[str, int], pattern: str
) -> dict[str, list[int]]:
    """The size of each name, a list of one; of the ellipsis as many as it stands for."""
    found: dict[str, list[int]] = {}
    at = 0
    for group in left:
        if group == [_ELLIPSIS]:
            found[_ELLIPSIS] = list(shape[at : at + extra])
            at += extra
            continue
        size = shape[at]
        at += 1
        open_names = [n for n in group if n not in known]
        given = math.prod(known[n] for n in group if n in known)
        fits = size % given == 0 if open_names and given else size == given
        if len(open_names) > 1 or not fits:
            raise ValueError(
                f"rearrange: ({' '.join(group)}) does not tell how to divide {size} in {pattern!r}"
                f" with {known}"
            )
        for n in group:
            found[n] = [known[n] if n in known else size // given]
    return found
