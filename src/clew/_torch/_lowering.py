"""What PyTorch's dispatcher sees of a call of a public function: the operations below it.

`lower()` runs a call by sending operations one after another, each with PyTorch's name and
overload: `linear` arrives as `t` and `addmm`, `x @ y` as `mm` or `bmm` among views. A function
without a rule here is sent under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew import Tensor
from clew._torch import _lowering_layers, _lowering_makers, _lowering_shapes

__all__ = ["lower"]

Send = Callable[..., Any]  # (name, overload, *args, **kwargs)

# Not operations: they say something about a tensor, or leave the library.
_DIRECT = frozenset(
    "dim ndimension numel nelement size stride storage_offset is_contiguous is_floating_point "
    "is_complex is_signed is_shared is_pinned element_size get_device data_ptr storage "
    "untyped_storage requires_grad_ register_hook backward retain_grad numpy tolist type "
    "is_same_size is_set_to is_coalesced is_inference is_conj is_neg __len__ __repr__ __format__ "
    "__deepcopy__ __reduce_ex__ __array__ __dlpack__ __dlpack_device__ __contains__ __reversed__ "
    "cpu cuda pin_memory dense_dim sparse_dim share_memory_ result_type promote_types can_cast "
    "names has_names apply_ map_ map2_".split()
)
_BY_OPERATOR = {
    "__abs__": "abs", "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub",
    "__isub__": "sub_", "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_",
    "__truediv__": "div", "__itruediv__": "div_", "__floordiv__": "floor_divide",
    "__ifloordiv__": "floor_divide_", "__mod__": "remainder", "__imod__": "remainder_",
    "__pow__": "pow", "__ipow__": "pow_", "__neg__": "neg", "__invert__": "bitwise_not",
    "__matmul__": "matmul", "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le",
    "__gt__": "gt", "__ge__": "ge", "__and__": "bitwise_and", "__rand__": "bitwise_and",
    "__iand__": "bitwise_and_", "__or__": "bitwise_or", "__ror__": "bitwise_or",
    "__ior__": "bitwise_or_", "__xor__": "bitwise_xor", "__rxor__": "bitwise_xor",
    "__ixor__": "bitwise_xor_", "__rsub__": "rsub",
    "negative": "neg", "absolute": "abs", "multiply": "mul", "subtract": "sub", "divide": "div",
    "true_divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne", "concat": "cat", "concatenate": "cat", "swapaxes": "transpose",
    "swapdims": "transpose", "ger": "outer", "clip": "clamp", "clip_": "clamp_",
    "moveaxis": "movedim", "arccos": "acos", "arcsin": "asin", "arctan": "atan",
}  # fmt: skip
# Overloads that a second tensor or number decides.
_TENSOR = frozenset("add sub mul div true_divide xlogy".split())
_EITHER = frozenset(
    "eq ne lt le gt ge remainder fmod bitwise_and bitwise_or bitwise_xor rsub".split()
)
_BY_VALUE = frozenset("masked_fill lerp fill".split())  # the last argument
_DIMS = {
    "sum": "dim_IntList", "mean": "dim", "prod": "dim_int", "max": "dim", "min": "dim",
    "any": "dim", "all": "dim", "median": "dim", "nanmedian": "dim", "squeeze": "dim",
    "squeeze_": "dim",
}  # fmt: skip
_LISTS_OF_DIMS = frozenset("sum mean amax amin std var std_mean var_mean logsumexp".split())
_FIXED = {
    "transpose": "int", "transpose_": "int", "select": "int", "slice": "Tensor",
    "unbind": "int", "index": "Tensor", "where": "self", "empty": "memory_format",
    "bernoulli_": "float", "std": "correction", "var": "correction", "var_mean": "correction",
    "std_mean": "correction", "_foreach_add": "List", "index_fill": "int_Scalar",
}  # fmt: skip


_RULES: dict[str, Callable[..., Any]] = {
    **_lowering_layers.RULES,
    **_lowering_shapes.RULES,
    **_lowering_makers.RULES,
}


def _overload(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Which of PyTorch's overloads a call is of."""
    base = name.rstrip("_")
    second = args[1] if len(args) > 1 else kwargs.get("other")
    if base in _TENSOR:
        return "Tensor_mode" if kwargs.get("rounding_mode") else "Tensor"
    if base in _EITHER:
        return "Tensor" if isinstance(second, Tensor) else "Scalar"
    if base in _BY_VALUE:
        value = args[-1] if args else next(iter(kwargs.values()))
        return "Tensor" if isinstance(value, Tensor) else "Scalar"
    if base in _DIMS:
        if isinstance(second, Tensor):
            return "other"
        dim = kwargs.get("dim", second)
        if base == "squeeze" and isinstance(dim, (tuple, list)):
            return "dims"
        return "default" if dim is None else _DIMS[base]
    if base in ("clamp", "isin"):
        return "Tensor" if any(isinstance(a, Tensor) for a in args[1:]) else "default"
    if base == "scatter":
        last = args[-1] if len(args) > 3 else kwargs.get("value", kwargs.get("src"))
        return "src" if isinstance(last, Tensor) else "value"
    return _FIXED.get(base, "default")


def lower(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], send: Send) -> Any:
    """Runs a call as the operations that PyTorch's dispatcher would see.

    Args:
        func: the public function or method.
        args: its arguments.
        kwargs: its named arguments.
        send: takes (name, overload, *args, **kwargs), runs the operation and gives its result; a
            name that `clew.ops.aten` lacks comes with `_function`, which runs it.
    """
    name = getattr(func, "__name__", "")
    name = _BY_OPERATOR.get(name, name)
    if name in _DIRECT or not name:
        return func(*args, **kwargs)
    if kwargs:
        unsaid = ("out", "generator")
        kwargs = {k: v for k, v in kwargs.items() if v is not None or k not in unsaid}
    rule = _RULES.get(name)
    if rule is not None and "out" not in kwargs:
        if "input" in kwargs:
            args, kwargs = (
                (kwargs["input"], *args),
                {k: v for k, v in kwargs.items() if k != "input"},
            )
        return rule(send, *args, **kwargs)
    overload = "out" if "out" in kwargs else _overload(name, args, kwargs)
    if name in _LISTS_OF_DIMS and len(args) > 1 and type(args[1]) is int:
        args = (args[0], [args[1]], *args[2:])
    return send(name, overload, *args, _function=func, **kwargs)
