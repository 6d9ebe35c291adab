"""Operations on ragged tensors that take each element by itself, and how dense tensors are
broadcast against ragged ones.
"""

from __future__ import annotations

import operator
from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew._ops.kinds import elementwise_names
from clew._tensor.structured import Structured
from clew.nested._tensor import NestedTensor, is_ragged, need_same_rows, ragged

__all__ = ["RULES", "aligned", "extreme", "function", "on_values"]

# Functions of one number or of several at the same place: those with a loop of their own, and those
# that are written with them.
_NAMES = sorted(
    elementwise_names().union(
        "bernoulli celu clamp clip complex conj conj_physical dropout elu float_power gelu "
        "isclose isreal ldexp logit masked_fill mvlgamma nan_to_num poisson polar polygamma "
        "positive relu6 resolve_conj resolve_neg rsub selu softshrink tanhshrink where".split()
    )
)
# Operators that have no name among them.
_OPERATORS = {
    "__eq__": operator.eq,
    "__floordiv__": operator.floordiv,
    "__rfloordiv__": lambda x, y: y // x,
    "__rsub__": lambda x, y: y - x,
    "__rtruediv__": lambda x, y: y / x,
    "__rpow__": lambda x, y: y**x,
    "__rmod__": lambda x, y: y % x,
    "__invert__": operator.invert,
    "__lshift__": operator.lshift,
    "__rshift__": operator.rshift,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__rand__": operator.and_,
    "__ror__": operator.or_,
    "__rxor__": operator.xor,
}
# Operators that write, and the methods that do.
_WRITING = {
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}
_FILLING = (
    "zero fill copy normal uniform exponential geometric cauchy log_normal random bernoulli".split()
)
_LIKE = (
    "zeros_like ones_like full_like empty_like rand_like randn_like randint_like clone detach "
    "alias_copy"
).split()
_CASTS = "float double half bfloat16 int long short char byte bool cfloat cdouble".split()


def function(name: str) -> Any:
    """The function or method of that name."""
    table = _C.functions
    found = table.get("nn.functional." + name) or table.get(name) or table.get("special." + name)
    return found or getattr(clew, name, None) or getattr(Tensor, name, None)


def aligned(name: str, dense: Tensor, x: NestedTensor) -> Tensor:
    """A dense tensor so that it broadcasts against the values of a ragged one without gaps."""
    rows, at, n = x._rows, x._at, len(x._sizes())
    if dense.dim() == 0:
        return dense
    sizes = (1,) * (n - dense.dim()) + tuple(dense.shape)
    batch, length = len(rows.counts), rows.longest
    fits = len(sizes) == n and sizes[0] in (1, batch) and sizes[at] in (1, length)
    if not fits or any(
        1 != s != m != 1 for d, (s, m) in enumerate(zip(sizes, x._sizes())) if d not in (0, at)
    ):
        raise RuntimeError(
            f"{name}: a dense tensor must be broadcastable to {list(x.shape)}, its size in the "
            f"ragged dim being 1 or that of the longest row, {length}; got shape "
            f"{list(dense.shape)}"
        )
    if sizes[0] == 1 and sizes[at] == 1:
        return dense.squeeze(0) if dense.dim() == n else dense
    dense = dense.reshape(sizes)
    if sizes[at] == 1:
        return dense.squeeze(at).index_select(0, rows.ids()).movedim(0, at - 1)
    if sizes[0] == 1:
        return dense.squeeze(0).index_select(at - 1, rows.positions())
    places = rows.ids() * length + rows.positions()
    return dense.movedim(at, 1).flatten(0, 1).index_select(0, places).movedim(0, at - 1)


def extreme(name: str, other: str, over: Any, on_elements: Any) -> Any:
    """max or min: of one tensor, or of two at each place.

    Args:
        name: which.
        other: the function of two tensors.
        over: the reduction of one.
        on_elements: runs a function on the elements of several, as on_values().
    """

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        second = args[0] if args else kwargs.get("other")
        if isinstance(second, Tensor):
            if len(args) + len(kwargs) > 1:
                raise TypeError(f"{name}: of two tensors takes no further arguments")
            return on_elements(name, function(other), (x, second), {})
        return over(x, *args, **kwargs)

    return rule


def on_values(name: str, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function that takes elements by themselves makes of ragged and dense arguments."""
    given = [*args, *kwargs.values()]
    found: list[Any] = [a for a in given if isinstance(a, Structured)]
    if not found:  # in a list
        return NotImplemented
    if not all(map(is_ragged, found)):  # a sparse tensor
        return NotImplemented
    first = found[0]
    dense = any(isinstance(a, Tensor) and not is_ragged(a) and a.dim() for a in given)
    if len(found) > 1 or dense:
        if any(len(a._sizes()) != len(first._sizes()) for a in found):
            raise RuntimeError(
                f"{name}: ragged tensors must have the same number of dims; got shapes "
                f"{[list(a.shape) for a in found]}"
            )
        need_same_rows(name, found)
        if dense or any(a._rows is not first._rows for a in found):
            packed = {id(a): a.packed() for a in found}
            first = packed[id(first)]
        else:
            packed = {id(a): a for a in found}
    else:
        packed = {id(first): first}

    def part(a: Any) -> Any:
        if is_ragged(a):
            return packed[id(a)]._elements
        if isinstance(a, Tensor):
            return aligned(name, a, first)
        return a

    made = call(*map(part, args), **{k: part(v) for k, v in kwargs.items()})
    return ragged(first._rows, made, first._at)


def _rule(name: str, call: Any) -> Any:
    def rule(*args: Any, **kwargs: Any) -> Any:
        return on_values(name, call, args, kwargs)

    return rule


def _writing(name: str) -> Any:
    call = getattr(Tensor, name)

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_ragged(x):
            raise RuntimeError(
                f"{name}: a ragged tensor cannot be written into a dense one; make it dense with "
                ".to_padded_tensor(padding)"
            )
        others: list[Any] = [
            a for a in (*args, *kwargs.values()) if isinstance(a, Tensor) and a.dim()
        ]
        moved = any(not is_ragged(a) or a._rows is not x._rows for a in others)
        if moved and x._rows.lengths is not None:
            raise RuntimeError(
                f"{name}: the rows of this ragged tensor have gaps between them; call .contiguous()"
            )
        on_values(name, call, (x, *args), kwargs)
        return x

    return rule


def _cast(name: str) -> Any:
    return lambda x: getattr(x, name)()


def detach_(x: Any) -> Any:
    x._elements = x._elements.detach()
    return x


def _type_as(x: Any, other: Any) -> Any:
    return x.to(other.dtype) if is_ragged(x) else x.to(other._elements.dtype)


def _same(x: Any, y: Any) -> bool:
    """Whether two ragged tensors have rows of the same lengths in the same dim."""
    return bool(
        is_ragged(x)
        and is_ragged(y)
        and x._at == y._at
        and x._elements.dim() == y._elements.dim()
        and x._rows.is_like(y._rows)
    )


def _equal(x: Any, y: Any) -> bool:
    if not all(isinstance(a, Tensor) for a in (x, y)):
        raise TypeError(f"equal: both must be tensors; got {type(x).__name__}, {type(y).__name__}")
    return _same(x, y) and clew.equal(x.packed()._elements, y.packed()._elements)


def _allclose(x: Any, y: Any, *args: Any, **kwargs: Any) -> bool:
    return bool(clew.isclose(x, y, *args, **kwargs).all())


RULES: dict[str, Any] = {
    **{n: _rule(n, function(n)) for n in (*_NAMES, *_LIKE) if function(n) is not None},
    **{n: _rule(n, call) for n, call in _OPERATORS.items()},
    **{n + "_": _writing(n + "_") for n in (*_NAMES, *_FILLING) if hasattr(Tensor, n + "_")},
    **{n: _writing(m) for n, m in _WRITING.items()},
    **{n: _cast(n) for n in _CASTS},
    "to": lambda x, *args, **kwargs: x.to(*args, **kwargs),
    "contiguous": lambda x, **kwargs: x.contiguous(),
    "type_as": _type_as,
    "detach_": detach_,
    "equal": _equal,
    "allclose": _allclose,
    "is_same_size": _same,
    "size": lambda x, dim=None: x.size(dim),
    "numel": lambda x: x.numel(),
    "nelement": lambda x: x.numel(),
    "is_nonzero": lambda x: bool(x),
}
