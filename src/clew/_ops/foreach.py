"""Operations on every tensor of a list, by PyTorch's names: `_foreach_add(tensors, 1)`.

Forms that end in an underscore write to the tensors and give the list itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_BINARY = "add sub mul div maximum minimum clamp_min clamp_max pow".split()
_TERNARY = "addcmul addcdiv lerp".split()


def _tensors(name: str, value: Any) -> list[Tensor]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in value):
        raise TypeError(f"{name}: expected a list of tensors; got {type(value).__name__}")
    return list(value)


def _for_each(name: str, count: int, value: Any) -> list[Any]:
    """One operand for each tensor: of a list its items, else the same for all."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise RuntimeError(
                f"{name}: Tensor lists must have the same number of tensors, got {count} and "
                f"{len(value)}"
            )
        return list(value)
    if isinstance(value, Tensor) and value.ndim == 1 and value.numel() == count and count != 1:
        return value.tolist()  # a vector of numbers, one for each
    return [value] * count


_KEYWORDS = "other scalar scalars exponent tensor1 tensors1 tensor2 tensors2 weight weights".split()


def _make(short: str, operands: int, in_place: bool) -> Callable[..., Any]:
    suffix = "_" if in_place else ""
    name = f"_foreach_{short}{suffix}"
    # A number is no operand of the method `maximum`.
    method = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(short, short) + suffix

    def function(self: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        if short == "pow" and not in_place and isinstance(self, (int, float, complex)):
            return tuple(self**t for t in _tensors(name, args[0] if args else None))
        tensors = _tensors(name, self)
        named = dict(kwargs)
        given = list(args)
        given += [named.pop(key) for key in _KEYWORDS if key in named]
        if len(given) < operands:
            raise TypeError(f"{name}: takes {operands} operands; got {len(given)}")
        if given[operands:]:
            named["alpha" if short in ("add", "sub") else "value"] = given[operands]
        columns = [_for_each(name, len(tensors), v) for v in given[:operands]]
        # `value` may be a number for each tensor: addcdiv's.
        options = {key: _for_each(name, len(tensors), v) for key, v in named.items()}
        results = [
            getattr(t, method)(*(c[i] for c in columns), **{k: v[i] for k, v in options.items()})
            for i, t in enumerate(tensors)
        ]
        return self if in_place else tuple(results)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{short}` of every tensor of a list."
    return function


for _names, _count in ((_UNARY, 0), (_BINARY, 1), (_TERNARY, 2)):
    for _short in _names:
        for _in_place in (False, True):
            _function = _make(_short, _count, _in_place)
            globals()[_function.__name__] = _function


def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """Makes the tensors of a list zero."""
    for t in _tensors("_foreach_zero_", self):
        t.zero_()
    return self


def _foreach_clone(
    self: Sequence[Tensor], *, memory_format: Any = _dtypes.preserve_format
) -> tuple[Tensor, ...]:
    """Copies of the tensors of a list."""
    return tuple(t.clone(memory_format=memory_format) for t in _tensors("_foreach_clone", self))


def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The product of each matrix of one list with that of another."""
    first = _tensors("_foreach_mm", self)
    second = _for_each("_foreach_mm", len(first), _tensors("_foreach_mm", mat2))
    return tuple(a.mm(b) for a, b in zip(first, second))


def _foreach_copy_(
    self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False
) -> Sequence[Tensor]:
    """Writes each tensor of one list over that of another."""
    tensors = _tensors("_foreach_copy_", self)
    for t, s in zip(tensors, _for_each("_foreach_copy_", len(tensors), src)):
        t.copy_(s)
    return self


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of every tensor of a list."""
    return tuple(
        _C.functions["linalg.vector_norm"](t, ord, dtype=dtype)
        for t in _tensors("_foreach_norm", self)
    )


def _foreach_powsum(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the absolute values' powers, of every tensor of a list."""
    return tuple(
        t.to(dtype or t.dtype).abs().pow(ord).sum() for t in _tensors("_foreach_powsum", self)
    )


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of every tensor of a list."""
    return tuple(t.max() for t in _tensors("_foreach_max", self))


def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiplies gradients; says in found_inf whether one is not finite."""
    for t in _tensors("_amp_foreach_non_finite_check_and_unscale_", self):
        if not bool(t.isfinite().all()):
            found_inf.fill_(1.0)
        t.mul_(inv_scale)


def __getattr__(name: str) -> Any:  # most names here are made in a loop, which type checkers miss
    raise AttributeError(f"module 'clew._ops.foreach' has no attribute {name!r}")
