"""Masked tensors: a tensor and a mask of the same shape, which says what elements are there."""

# mypy: disable-error-code="override"
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew._tensor.structured import Structured
from clew.masked import _reductions, _statistics

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

_UNARY = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh "
    "arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv "
    "exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg "
    "negative positive rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt "
    "square tan tanh trunc __invert__"
).split()
_BINARY = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "div divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter pow remainder sub "
    "subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum "
    "fmax fmin not_equal __eq__ __radd__ __rsub__ __rmul__ __rtruediv__ __rpow__ __floordiv__ "
    "__rfloordiv__ __rmod__ __rand__ __ror__ __rxor__"
).split()
_IN_PLACE = "add_ sub_ mul_ div_ pow_ floor_divide_ remainder_ fmod_ clamp_ abs_ neg_ exp_".split()
_SHAPES = (
    "select transpose swapaxes t __getitem__ expand expand_as view reshape unsqueeze squeeze "
    "unfold permute flatten split chunk unbind cat stack narrow index_select movedim broadcast_to"
).split()
_REDUCED = "sum mean amin amax argmin argmax prod all norm var std".split()
_LIKE = "ones_like zeros_like empty_like rand_like randn_like".split()


class MaskedTensor(Structured):
    """A tensor some of whose elements are not there. Made by `clew.masked.masked_tensor`.

    Reductions leave these elements out, and their gradients are not there either. Operations with
    another masked tensor need equal masks.

    Args:
        data: all elements, also those that the mask hides; they are copied.
        mask: bool, of the same shape: which elements are there.
        requires_grad: whether it is a leaf that gets a gradient.

    >>> clew.masked.MaskedTensor(clew.tensor([1., 2.]), clew.tensor([True, False]))
    MaskedTensor(
      [  1.0000,       --]
    )
    """

    __module__ = "clew.masked"
    _kind = "masked tensors"
    _remedy = ".to_tensor(value)"
    _mask: Tensor

    layout = property(lambda self: _dtypes.strided)
    is_sparse = property(lambda self: False)
    is_sparse_csr = property(lambda self: False)

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        values = data.detach().clone()
        return _over(cls, values.requires_grad_(requires_grad), mask.clone())

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    def _with(self, values: Tensor) -> MaskedTensor:
        return _over(type(self), values, self._mask)

    def _has_places_of(self, other: Any) -> bool:
        return isinstance(other, MaskedTensor) and _same(self._mask, other._mask)

    def get_data(self) -> Tensor:
        """The elements, with whatever is where none is."""
        return self._elements

    def get_mask(self) -> Tensor:
        """Which elements are there."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """A tensor with a value where no element is.

        Args:
            value: a number.
        """
        return self._elements.masked_fill(~self._mask, value)

    def item(self) -> Any:
        """The number of a tensor of one element."""
        return self._elements.item()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        data, mask = self._elements.detach(), self._mask
        if not data.dim():
            text = _number(data.item()) if mask.item() else "--"
            return f"MaskedTensor({text}, {bool(mask.item())})"
        lines = "\n".join("  " + line for line in _text(data, mask).split("\n"))
        return f"MaskedTensor(\n{lines}\n)"

    def _reduced(self) -> Any:
        return masked_tensor, (self._elements.detach(), self._mask, self.requires_grad)


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if isinstance(value, MaskedTensor) or not isinstance(value, Tensor):
            raise TypeError(f"masked_tensor: {name} must be a Tensor; got {type(value).__name__}")
        if isinstance(value, Structured):
            raise NotImplementedError(
                f"masked_tensor: {name} must be dense; got {value.layout}; convert with .to_dense()"
            )
    if mask.dtype is not _dtypes.bool:
        raise TypeError(f"masked_tensor: mask must have dtype bool; got {mask.dtype}")
    if data.is_complex() or data.dtype in (_dtypes.uint8, _dtypes.bfloat16):
        raise TypeError(f"masked_tensor: {data.dtype} is not supported in MaskedTensor")
    if data.shape != mask.shape:
        raise ValueError(
            f"masked_tensor: data and mask must have the same shape; got {list(data.shape)} and "
            f"{list(mask.shape)}"
        )


def _over(cls: Any, values: Tensor, mask: Tensor) -> Any:
    """A masked tensor over tensors that fit, with their history."""
    empty = _C.empty(tuple(values.shape), dtype=values.dtype, device="meta")
    made = Tensor._make_subclass(cls, empty, False)
    made._elements, made._mask = values, mask
    return made


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies, without history.

    Args:
        data: all elements, also those that the mask hides.
        mask: bool, of the same shape: which elements are there.
        requires_grad: whether it is a leaf that gets a gradient.

    Returns:
        a :class:`MaskedTensor`.

    Raises:
        TypeError: they are no tensors, or the mask is not of bools.
        ValueError: their shapes differ.

    >>> clew.masked.masked_tensor(clew.ones(2), clew.tensor([True, False])).sum()
    MaskedTensor(  1.0000, True)
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor of a tensor that may have a history: gradients flow to it.

    Args:
        data: all elements, also those that the mask hides.
        mask: bool, of the same shape: which elements are there.

    Returns:
        a :class:`MaskedTensor`.

    >>> x = clew.ones(2, requires_grad=True)
    >>> clew.masked.as_masked_tensor(x, clew.tensor([True, False])).sum().backward()
    >>> x.grad
    tensor([1., 0.])
    """
    _check(data, mask)
    return _over(MaskedTensor, data, mask.clone())


def is_masked_tensor(obj: Any, /) -> TypeGuard[MaskedTensor]:
    """Whether something is a masked tensor.

    Args:
        obj: anything.

    >>> clew.masked.is_masked_tensor(clew.ones(1))
    False
    """
    return isinstance(obj, MaskedTensor)


# ---- texts ----


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _text(data: Tensor, mask: Tensor) -> str:
    if data.dim() > 1:
        parts = [_text(d, m) for d, m in zip(data.unbind(0), mask.unbind(0))]
        inner = [part.replace("\n", "\n  ") for part in parts]
        return "[\n  " + ",\n  ".join(inner) + "\n]"
    numbers = [_number(v) for v in data.tolist()]
    there = mask.tolist()
    width = max((len(n) if m else 8 for n, m in zip(numbers, there)), default=0)
    return "[" + ", ".join(n if m else "--".rjust(width) for n, m in zip(numbers, there)) + "]"


# ---- rules ----


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.shape == b.shape and bool((a == b).all()))


def _plain(value: Any, part: str) -> Any:
    """A value with the data or the masks of masked tensors in their place."""
    if isinstance(value, MaskedTensor):
        return getattr(value, part)
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(v, part) for v in value])
    return value


def _wrapped(data: Any, mask: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return type(data)([_wrapped(d, m) for d, m in zip(data, mask)])
    return _over(MaskedTensor, data, mask)


def _call(name: str) -> Callable[..., Any]:
    method = getattr(Tensor, name, None)
    return method if method is not None else getattr(clew, name)


def _unary(name: str) -> Any:
    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            raise TypeError(f"{name}: further arguments must be numbers for masked tensors")
        return x._with(_call(name)(x._elements, *args, **kwargs))

    return rule


def _masks(name: str, x: Any, y: Any) -> Tensor:
    """The mask of two operands, of which one may have none."""
    masks: list[Tensor] = [v._mask for v in (x, y) if isinstance(v, MaskedTensor)]
    if len(masks) == 2 and not _same(*masks):
        raise ValueError(f"{name}: Input masks must match; give both operands one mask")
    return masks[0]


def _binary(name: str) -> Any:
    def rule(x: Any, y: Any, **kwargs: Any) -> Any:
        mask = _masks(name, x, y)
        made = _call(name)(_plain(x, "_elements"), _plain(y, "_elements"), **kwargs)
        return made if made is NotImplemented else _wrapped(made, mask.expand_as(made))

    return rule


def _in_place(name: str) -> Any:
    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, MaskedTensor):
            return NotImplemented
        for y in args:
            _masks(name, x, y)
        _call(name)(x._elements, *_plain(args, "_elements"), **kwargs)
        return x

    return rule


def _shape(name: str) -> Any:
    def rule(*args: Any, **kwargs: Any) -> Any:
        given = (args, tuple(kwargs.values()))
        for value in (*args, *(args[0] if isinstance(args[0], (list, tuple)) else ())):
            if name in ("cat", "stack") and type(value) is Tensor:
                raise TypeError(f"{name}: all tensors must be masked, or none")
        data, mask = (
            _call(name)(
                *_plain(given[0], part), **dict(zip(kwargs, _plain(given[1], part), strict=True))
            )
            for part in ("_elements", "_mask")
        )
        return _wrapped(data, mask)

    return rule


def _like(name: str) -> Any:
    def rule(x: Any, **options: Any) -> Any:
        return x._with(getattr(clew, name)(x._elements, **options))

    return rule


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if isinstance(condition, MaskedTensor) or not (
        isinstance(x, MaskedTensor) and isinstance(y, MaskedTensor)
    ):
        raise TypeError("where: both values must be masked tensors, and the condition none")
    data = clew.where(condition, x._elements, y._elements)
    return _wrapped(data, clew.where(condition, x._mask, y._mask))


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return x._with(_statistics.softmax(x._elements, dim, dtype=dtype, mask=x._mask))


def _all(data: Tensor, dim: Any = None, keepdim: bool = False, mask: Any = None) -> Tensor:
    data = data.bool() | ~mask
    return data.all() if dim is None else data.all(dim, keepdim)


def _reduced(name: str) -> Any:
    function: Any = {
        "all": _all,
        **{n: getattr(_reductions, n) for n in "sum amin amax argmin argmax prod".split()},
        **{n: getattr(_statistics, n) for n in "mean norm var std".split()},
    }[name]

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        options = dict(zip(("dim", "keepdim", "dtype"), args, strict=False))
        if options.keys() & kwargs.keys() or len(args) > 3:
            raise TypeError(f"{name}: an argument was given twice")
        options.update(kwargs)
        unknown = options.keys() - {"dim", "keepdim", "dtype"}
        if unknown:
            raise NotImplementedError(
                f"{name}: of masked tensors it takes dim, keepdim and dtype; got {min(unknown)}"
            )
        dim, keepdim = options.get("dim"), bool(options.get("keepdim", False))
        data: Tensor = function(x._elements, **options, mask=x._mask)
        if dim is None:
            return _wrapped(data, x._mask.any())
        return _wrapped(data, _reductions.amax(x._mask.int(), dim, keepdim=keepdim).bool())

    return rule


MaskedTensor._rules = {
    **{name: _unary(name) for name in _UNARY if hasattr(Tensor, name)},
    **{name: _binary(name) for name in _BINARY if hasattr(Tensor, name)},
    **{name: _in_place(name) for name in _IN_PLACE},
    **{name: _shape(name) for name in _SHAPES},
    **{name: _like(name) for name in _LIKE},
    **{name: _reduced(name) for name in _REDUCED},
    "where": _where,
    "softmax": _softmax,
    "to_dense": lambda x, *args, **kwargs: x,
}
