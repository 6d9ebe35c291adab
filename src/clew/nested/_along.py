"""Operations on ragged tensors that go along a dim and keep its size: softmax, running sums."""

from __future__ import annotations

from typing import Any

import clew
from clew.nested._pointwise import function
from clew.nested._reductions import _each, dim_of
from clew.nested._tensor import is_ragged, ragged

__all__ = ["RULES"]


def _refuse_batch(name: str) -> None:
    raise RuntimeError(
        f"{name}: dim 0 counts the rows of a ragged tensor, which differ in length; make the "
        "tensor dense with .to_padded_tensor(padding)"
    )


def _along(name: str, default: int | None = None) -> Any:
    fn = function(name)

    def rule(x: Any, dim: Any = default, *args: Any, **kwargs: Any) -> Any:
        if dim is None or not is_ragged(x):
            return NotImplemented
        d = dim_of(name, x, dim)
        if d == 0:
            _refuse_batch(name)
        if d == x._at and name != "glu":
            return x.by_row(lambda row: fn(row, d - 1, *args, **kwargs))
        if d == x._at:
            return NotImplemented
        made = fn(x._elements, d - 1, *args, **kwargs)
        return _each(made, lambda m: ragged(x._rows, m, x._at))

    return rule


def _sorted(name: str) -> Any:
    """Operations of several results, or whose dim is not the first argument."""
    fn = function(name)

    def rule(x: Any, *args: Any, dim: int = -1, **kwargs: Any) -> Any:
        if name == "topk":
            k, args = (args[0], args[1:]) if args else (kwargs.pop("k"), ())
        if args:
            dim, *rest = args
            if rest:
                return NotImplemented
        d = dim_of(name, x, dim)
        if d == 0:
            return NotImplemented

        def call(t: Any) -> Any:
            if name == "topk":
                return fn(t, k, d - 1, **kwargs)
            return fn(t, dim=d - 1, **kwargs)

        if d != x._at:
            return _each(call(x._elements), lambda m: ragged(x._rows, m, x._at))
        x = x.packed()
        made = [call(row) for row in x.row_values()]
        if name == "topk" and made:  # as many of each row
            fields = [clew.stack([m[i] for m in made]) for i in range(len(made[0]))]
            return type(made[0])(fields)
        if not made:  # no rows
            return _each(call(x._elements), lambda m: ragged(x._rows, m, x._at))
        if not isinstance(made[0], tuple):
            return ragged(x._rows, clew.cat(made, d - 1), x._at)
        fields = [clew.cat([m[i] for m in made], d - 1) for i in range(len(made[0]))]
        return type(made[0])([ragged(x._rows, f, x._at) for f in fields])

    return rule


def _flip(x: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    over = [dim_of("flip", x, d) for d in given]
    if 0 in over:
        _refuse_batch("flip")
    places = [d - 1 for d in over]
    if x._at in over:
        return x.by_row(lambda row: row.flip(places))
    return ragged(x._rows, x._elements.flip(places), x._at)


RULES: dict[str, Any] = {
    **{n: _along(n) for n in "softmax log_softmax softmin cumsum cumprod logcumsumexp".split()},
    "glu": _along("glu", -1),
    **{n: _sorted(n) for n in "sort argsort cummax cummin topk".split()},
    "flip": _flip,
}
