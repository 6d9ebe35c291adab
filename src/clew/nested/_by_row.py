"""Operations that look at whole rows of ragged tensors, and those that change rows' lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import _C
from clew._C import Tensor
from clew.nested._pointwise import aligned, function, on_values
from clew.nested._reductions import _each, dim_of, reduced
from clew.nested._shapes import (
    _dense_dim,
    _of_rows,
    _refuse_batch,
    _refuse_ragged,
    cat,
    transpose,
)
from clew.nested._tensor import NestedTensor, RaggedSize, Rows, is_ragged, need_same_rows, ragged

__all__ = ["RULES", "WHOLE", "joined"]


def joined(rows: list[Tensor], x: NestedTensor, at: int) -> NestedTensor:
    """A ragged tensor of new rows; `x` stands in where there are none."""
    if not rows:
        return x
    return ragged(Rows.of_counts([r.shape[at - 1] for r in rows]), clew.cat(rows, at - 1), at)


def together(name: str, tensors: Any) -> tuple[NestedTensor, list[Tensor]]:
    """The first ragged one without gaps, and the values of all, of one shape."""
    found = [t for t in tensors if is_ragged(t)]
    if len({len(t._sizes()) for t in found}) > 1:
        raise RuntimeError(
            f"{name}: ragged tensors must have the same number of dims; got shapes "
            f"{[list(t.shape) for t in found]}"
        )
    need_same_rows(name, found)
    first = found[0].packed()
    values = [t.packed()._elements if is_ragged(t) else aligned(name, t, first) for t in tensors]
    return first, list(clew.broadcast_tensors(*values))


# ---- rows that keep their length ----


def _roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    if dims is None or dims in ((), []):
        raise RuntimeError(
            "roll: dims must be given for a ragged tensor, whose rows cannot be flattened into one"
        )
    by = [shifts] if isinstance(shifts, int) else list(shifts)
    over = [dim_of("roll", x, d) for d in ([dims] if isinstance(dims, int) else dims)]
    if 0 in over:
        _refuse_batch("roll")
    places = [d - 1 for d in over]
    if x._at in over:
        return x.by_row(lambda row: row.roll(by, places))
    return ragged(x._rows, x._elements.roll(by, places), x._at)


def _triangle(name: str) -> Any:
    fn = function(name)

    def rule(x: Any, diagonal: int = 0) -> Any:
        n = len(x._sizes())
        if n < 3:
            raise RuntimeError(
                f"{name}: rows must be matrices or batches of them; got shape {list(x.shape)}"
            )
        if x._at >= n - 2:
            return x.by_row(lambda row: fn(row, diagonal))
        return ragged(x._rows, fn(x._elements, diagonal), x._at)

    return rule


def _batch_norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Statistics of what is there: no padding counts."""
    if not is_ragged(x) or any(map(is_ragged, (*args, *kwargs.values()))):
        return NotImplemented
    if x._at == 1:
        raise RuntimeError(
            f"batch_norm: the channels must be dim 1, as for dense tensors; got shape "
            f"{list(x.shape)}; use .transpose(1, 2)"
        )
    x = x.packed()
    made = function("batch_norm")(x._elements.unsqueeze(0), *args, **kwargs)
    return ragged(x._rows, made.squeeze(0), x._at)


def _instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    *more: Any,
    **named: Any,
) -> Any:
    if use_input_stats and (running_mean is not None or running_var is not None):
        raise NotImplementedError(
            "instance_norm: running statistics are not kept for ragged tensors, whose rows have "
            "different weights in them; make the module with track_running_stats=False"
        )
    given = (running_mean, running_var, weight, bias, use_input_stats, *more)
    return _through_batches("instance_norm", clew.nn.functional.instance_norm)(
        input, *given, **named
    )


def _through_batches(name: str, call: Any = None) -> Any:
    """Functions of (batch, channels, places...): each row is a batch of one."""
    fn = call or function(name)

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_ragged(x) or any(map(is_ragged, (*args, *kwargs.values()))):
            return NotImplemented
        if x._at < 2:
            raise RuntimeError(
                f"{name.lstrip('_')}: the channels must be dim 1, as for dense tensors; got shape "
                f"{list(x.shape)}; use .transpose(1, 2)"
            )
        made = [fn(row.unsqueeze(0), *args, **kwargs) for row in x.packed().row_values()]
        if not made:
            return _of_no_rows(name, x, lambda row: fn(row, *args, **kwargs))
        if name.startswith(("adaptive", "_adaptive")):  # one size for all rows
            if isinstance(made[0], tuple):
                return tuple(clew.cat([m[i] for m in made]) for i in range(len(made[0])))
            return clew.cat(made)
        if isinstance(made[0], tuple):
            fields = [[m[i].squeeze(0) for m in made] for i in range(len(made[0]))]
            return tuple(joined(f, x, x._at) for f in fields)
        return joined([m.squeeze(0) for m in made], x, x._at)

    return rule


def _of_no_rows(name: str, x: NestedTensor, call: Any) -> Any:
    """What a function of (batch, channels, places...) makes of a batch without rows: nothing, of
    the sizes that a row of many places would have.
    """
    if "norm" in name or "dropout" in name:
        return x
    sizes = list(x._elements.shape)
    sizes[x._at - 1] = 1024
    made = call(x._elements.new_zeros((1, *sizes)))
    several = isinstance(made, tuple)

    def none_of(one: Tensor) -> Any:
        if name.startswith(("adaptive", "_adaptive")):
            return one[:0]
        return ragged(x.packed()._rows, one.squeeze(0).narrow(x._at - 1, 0, 0), x._at)

    return tuple(map(none_of, made)) if several else none_of(made)


def _rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    x = input if inplace else input.packed()
    made = clew.nn.functional.rrelu(x._elements, lower, upper, training, inplace)
    return input if inplace else x._with(made)


def _in_place(name: str) -> Any:
    """A function of elements that writes what it is given."""
    fn = _C.functions["nn.functional." + name]

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            return NotImplemented
        fn(x._elements, *args, **kwargs)
        return x

    return rule


def _pair(call: Any) -> Any:
    """A function of elements that has several results."""

    def rule(input: Any) -> Any:
        return _each(call(input._elements), input._with)

    return rule


def _among(name: str, call: Any, at: int) -> Any:
    """Each element looked for among those of a dense tensor."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= at or [is_ragged(a) for a in args].count(True) != 1:
            return NotImplemented
        x = args[at]
        if not is_ragged(x) or any(isinstance(v, Tensor) for v in kwargs.values()):
            return NotImplemented
        if name == "searchsorted" and args[0].dim() != 1:
            return NotImplemented
        return x._with(call(*args[:at], x._elements, *args[at + 1 :], **kwargs))

    return rule


# ---- what is left of rows ----


def _over_ragged(name: str) -> Any:
    """Reductions with a number of their own before the dim, or none."""
    fn = function(name)

    def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
        return reduced(name, x, dim, keepdim, lambda t, d, keep: fn(t, k, d, keep), False)

    def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
        return reduced(name, x, dim, keepdim, fn, False)

    def aminmax(x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return fn(x.packed()._elements, keepdim=False)
        return reduced(name, x, dim, keepdim, lambda t, d, keep: fn(t, dim=d, keepdim=keep), False)

    return {"kthvalue": kthvalue, "mode": mode, "aminmax": aminmax}[name]


def _quantile(name: str) -> Any:
    fn = function(name)

    def rule(
        input: Any,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Any:
        x = input
        if not is_ragged(x) or is_ragged(q):
            return NotImplemented

        def call(t: Tensor, d: Any, keep: bool) -> Tensor:
            made: Tensor = fn(t, q, d, keep, interpolation=interpolation)
            return made

        several = isinstance(q, Tensor) and q.dim() == 1
        if not several:
            return reduced(name, x, dim, keepdim, call, False)
        if dim is None:
            made = reduced(name, x, None, False, call, False)
            return made.reshape((-1, *(1,) * len(x._sizes()))) if keepdim else made
        d = dim_of(name, x, dim)
        if d != x._at:
            raise RuntimeError(
                f"{name}: several quantiles come in a dim in front of the batch's, which a ragged "
                f"tensor cannot have: reduce the ragged dim, {x._at}, or pass one number at a time"
            )
        rows = [call(row, d - 1, keepdim) for row in x.packed().row_values()]
        return clew.stack(rows, 1) if rows else NotImplemented

    return rule


def _trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    if x is not None or not is_ragged(y):
        return NotImplemented
    return reduced(
        "trapezoid",
        y,
        dim,
        False,
        lambda t, d, keep: clew.trapezoid(t, dx=dx, dim=d),
        False,
    )


def _cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    name, fn = "cosine_similarity", clew.nn.functional.cosine_similarity
    first, (a, b) = together(name, (x1, x2))
    d = dim_of(name, first, dim)
    if d == 0:
        _refuse_batch(name)
    if d != first._at:
        return ragged(first._rows, fn(a, b, d - 1, eps), first._at - (d < first._at))
    counts = first._rows.counts
    rows = zip(a.split(counts, d - 1), b.split(counts, d - 1)) if counts else ()
    made = [fn(p, q, d - 1, eps) for p, q in rows]
    return clew.stack(made) if made else NotImplemented


def _bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    if not (is_ragged(x1) and is_ragged(x2)) or is_ragged(weight) or is_ragged(bias):
        return NotImplemented
    if x1._at == len(x1._sizes()) - 1:
        raise RuntimeError(
            f"bilinear: the last dim must not be the ragged one; got shape {list(x1.shape)}; move "
            "it with .transpose()"
        )
    need_same_rows("bilinear", (x1, x2))
    x1, x2 = x1.packed(), x2.packed()
    made = function("bilinear")(x1._elements, x2._elements, weight, bias)
    return ragged(x1._rows, made, x1._at)


def _multinomial(x: Any, num_samples: int, replacement: bool = False, **more: Any) -> Any:
    if x._at != len(x._sizes()) - 1 or len(x._sizes()) > 3:
        return NotImplemented
    rows = [r.multinomial(num_samples, replacement, **more) for r in x.packed().row_values()]
    if not rows:
        return clew.zeros((*x._sizes()[: x._at], num_samples), dtype=_C.int64)
    return clew.stack(rows)


def _unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    if dim is not None:
        return NotImplemented
    x = input.packed()
    made = x._elements.unique(sorted, return_inverse, return_counts)
    if not return_inverse:
        return made
    return (made[0], x._with(made[1]), *made[2:])


def _histogram(name: str) -> Any:
    """Of the elements of all rows."""
    call = getattr(clew, name)

    def rule(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_ragged(input) or any(is_ragged(a) for a in (*args, *kwargs.values())):
            return NotImplemented
        return call(input.packed()._elements, *args, **kwargs)

    return rule


# ---- rows of other lengths ----


def _diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    d = dim_of("diff", x, dim)
    if prepend is not None or append is not None:
        return NotImplemented
    if d == 0:
        _refuse_batch("diff")
    if d != x._at:
        return ragged(x._rows, x._elements.diff(n, d - 1), x._at)
    return joined([row.diff(n, d - 1) for row in x.packed().row_values()], x, x._at)


def _repeat(x: Any, *sizes: Any) -> Any:
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    n = len(x._sizes())
    if len(given) != n or given[0] != 1:
        raise RuntimeError(
            f"repeat: {n} numbers must be given for a ragged tensor of {n} dims, the first of them "
            f"1: its rows stay; got {list(given)}; repeat rows with .repeat_interleave(n, 0)"
        )
    if given[x._at] == 1:
        return ragged(x._rows, x._elements.repeat(tuple(given[1:])), x._at)
    return joined([row.repeat(tuple(given[1:])) for row in x.packed().row_values()], x, x._at)


def _repeat_interleave(x: Any, repeats: Any, dim: Any = None, **more: Any) -> Any:
    if dim is None or is_ragged(repeats):
        return NotImplemented
    d = dim_of("repeat_interleave", x, dim)
    if d not in (0, x._at):
        return ragged(x._rows, x._elements.repeat_interleave(repeats, d - 1), x._at)
    if d == 0:
        times = repeats if isinstance(repeats, int) else np.asarray(repeats.tolist(), np.int64)
        return _of_rows(x, np.repeat(np.arange(len(x._rows.counts)), times))
    if not isinstance(repeats, int):
        _refuse_ragged("repeat_interleave with a tensor", x)
    x = x.packed()
    rows = Rows.of_counts([n * repeats for n in x._rows.counts])
    return ragged(rows, x._elements.repeat_interleave(repeats, d - 1), x._at)


def _pad(x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    fn, n = function("pad"), len(x._sizes())
    by = list(pad)
    if len(by) // 2 >= n and any(by[2 * (n - 1) :]):
        _refuse_batch("pad")
    by = by[: 2 * (n - 1)]
    place = 2 * (n - 1 - x._at)
    if not any(by[place : place + 2]):
        return ragged(x._rows, fn(x._elements, by, *args, **kwargs), x._at)
    rows = [fn(row, by, *args, **kwargs) for row in x.packed().row_values()]
    return joined(rows, x, x._at)


def _cdist(x1: Any, x2: Any, *args: Any, **kwargs: Any) -> Any:
    if not is_ragged(x1) or is_ragged(x2):
        raise NotImplementedError(
            "cdist: for ragged tensors the first must be ragged and the second dense: distances "
            "between rows that both differ in length differ in two sizes; work on the rows of "
            ".unbind()"
        )
    x = x1.packed()
    if x._at != len(x._sizes()) - 2 or len(x._sizes()) != 3 or x2.dim() not in (2, 3):
        return NotImplemented
    others = list(x2.unbind(0)) if x2.dim() == 3 else [x2] * len(x._rows.counts)
    if len(others) != len(x._rows.counts):
        raise RuntimeError(
            f"cdist: there must be as many rows as batches; got {len(x._rows.counts)} and "
            f"{len(others)}"
        )
    return joined([clew.cdist(p, q, *args, **kwargs) for p, q in zip(x.row_values(), others)], x, 1)


# ---- shapes and new tensors ----


def _broadcast_to(x: Any, size: Any) -> Any:
    if is_ragged(x):
        return x.expand(tuple(size))
    return NotImplemented


def _broadcast_tensors(*tensors: Any) -> Any:
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    first, values = together("broadcast_tensors", given)
    return tuple(ragged(first._rows, v, first._at) for v in values)


def _new(name: str) -> Any:
    call = getattr(Tensor, name)

    def rule(x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
        if name != "new_full" and args:
            size, args = (size, *args), ()
        sizes: list[Any] = [size] if isinstance(size, int) else list(size)
        at = [d for d, s in enumerate(sizes) if isinstance(s, RaggedSize)]
        if not at:
            return call(x._elements, tuple(sizes), *args, **kwargs)
        rows = sizes[at[0]]._rows
        if len(at) > 1 or at[0] == 0 or sizes[0] != len(rows.counts):
            raise RuntimeError(
                f"{name}: a shape with a ragged dim must begin with its number of rows, "
                f"{len(rows.counts)}, and have one such dim; got {sizes}"
            )
        rows = rows if rows.lengths is None else rows.packed()[0]
        sizes[at[0]] = sum(rows.counts)
        return ragged(rows, call(x._elements, tuple(sizes[1:]), *args, **kwargs), at[0])

    return rule


def _adjoint(x: Any) -> Any:
    made = transpose(x, -2, -1)
    return made.conj() if made.is_complex() else made


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    d = _dense_dim("unfold", x, dimension)
    return ragged(x._rows, x._elements.unfold(d - 1, size, step), x._at)


def _of_values(name: str) -> Any:
    return lambda x, *args: getattr(x._elements, name)(*args)


_SPECIAL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 gammainc gammaincc igamma igammac "
    "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 "
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w"
).split()


def _special(name: str) -> Any:
    call = getattr(clew.special, name, None) or getattr(clew, name)
    return lambda *args, **kwargs: on_values(name, call, args, kwargs)


_POOLS = (
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d group_norm "
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d dropout1d dropout2d dropout3d "
    "feature_alpha_dropout"
).split()
_OTHER_POOLS = {
    n: getattr(_C.ops, n)
    for n in ("_max_pool1d", "_max_pool2d", "_max_pool3d", "_adaptive_max_pool1d")
    if hasattr(_C.ops, n)
}

RULES: dict[str, Any] = {
    **{n: _special(n) for n in _SPECIAL},
    **{
        n: _in_place(n)
        for n in "celu_ elu_ selu_ threshold_ hardtanh_ leaky_relu_".split()
        if "nn.functional." + n in _C.functions
    },
    **{n: _through_batches(n) for n in _POOLS},
    **{n: _through_batches(n, fn) for n, fn in _OTHER_POOLS.items()},
    **{n: _triangle(n) for n in ("tril", "triu")},
    **{n: _over_ragged(n) for n in ("kthvalue", "mode", "aminmax")},
    **{n: _quantile(n) for n in ("quantile", "nanquantile")},
    **{n: _new(n) for n in ("new_zeros", "new_ones", "new_empty", "new_full")},
    **{n: _of_values(n) for n in ("is_pinned", "is_shared", "storage_offset")},
    **{n: _histogram(n) for n in ("histc", "histogram")},
    "roll": _roll,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "rrelu": _rrelu,
    "alpha_dropout": lambda x, *args, **kwargs: x._with(
        function("alpha_dropout")(x._elements, *args, **kwargs)
    ),
    "frexp": _pair(clew.frexp),
    "isin": _among("isin", clew.isin, 0),
    "bucketize": _among("bucketize", clew.bucketize, 0),
    "searchsorted": _among("searchsorted", clew.searchsorted, 1),
    "trapezoid": _trapezoid,
    "trapz": _trapezoid,
    "cosine_similarity": _cosine_similarity,
    "bilinear": _bilinear,
    "multinomial": _multinomial,
    "unique": _unique,
    "diff": _diff,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "pad": _pad,
    "cdist": _cdist,
    "broadcast_to": _broadcast_to,
    "broadcast_tensors": _broadcast_tensors,
    "adjoint": _adjoint,
    **dict.fromkeys(("vstack", "row_stack"), cat),
    "hstack": lambda tensors: cat(tensors, 1),
    "unfold": _unfold,
    "pin_memory": lambda x, *args: x,
}
# Functions written in Python that have a rule for all of their call.
WHOLE: frozenset[str] = frozenset(
    "instance_norm rrelu frexp isin trapezoid trapz cosine_similarity quantile nanquantile cdist "
    "broadcast_tensors einsum unique histc histogram".split()
) | frozenset(_SPECIAL)
