"""What PyTorch's dispatcher sees of a call of a public function: the operations below it.

`lower()` runs a call by sending operations one after another, each with PyTorch's name and
overload: `linear` arrives as `t` and `addmm`, `x @ y` as `mm` or `bmm` among views. A function
without a rule here is sent under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import clew
from clew import Tensor
from clew._base.overriding import DisableTorchFunctionSubclass
from clew._torch import _lowering_makers

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


def _contiguous(x: Tensor) -> bool:
    with DisableTorchFunctionSubclass():
        return x.is_contiguous()


def _same_layout(x: Tensor, size: Sequence[int]) -> bool:
    """Whether a tensor can be seen in other sizes without a copy."""
    with DisableTorchFunctionSubclass():
        if x.is_contiguous() or 0 in x.shape:
            return True
        try:
            clew.empty_strided(x.shape, x.stride(), device="meta").view(tuple(size))
        except RuntimeError:
            return False
        return True


def _reshaped(send: Send, x: Tensor, size: Sequence[int]) -> Tensor:
    size = list(size)
    if -1 in size:
        known = prod(n for n in size if n != -1)
        size[size.index(-1)] = prod(x.shape) // known if known else 0
    if tuple(x.shape) == tuple(size) and not _contiguous(x):
        return send("view", "default", x, size)
    if _same_layout(x, size):
        return send("view", "default", x, size)
    x = send("clone", "default", x, memory_format=clew.contiguous_format)
    return send("_unsafe_view", "default", x, size)


# ---- products ----


def _linear(send: Send, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    dims, out = len(x.shape), weight.shape[0]
    if bias is not None and dims != 2 and _contiguous(x):
        flat = send("view", "default", x, [prod(x.shape[:-1]), x.shape[-1]])
        turned = send("t", "default", weight)
        got = send("addmm", "default", bias, flat, turned)
        return send("view", "default", got, [*x.shape[:-1], out])
    turned = send("t", "default", weight)
    if bias is not None and dims == 2:
        return send("addmm", "default", bias, x, turned)
    got = _matmul(send, x, turned)
    return got if bias is None else send("add", "Tensor", got, bias)


def _matmul(send: Send, x: Tensor, y: Tensor) -> Tensor:
    a, b = len(x.shape), len(y.shape)
    if (a, b) == (1, 1):
        return send("dot", "default", x, y)
    if (a, b) == (2, 1):
        return send("mv", "default", x, y)
    if (a, b) == (1, 2):
        row = send("mm", "default", send("unsqueeze", "default", x, 0), y)
        return send("squeeze_", "dim", row, 0)
    if (a, b) == (2, 2):
        return send("mm", "default", x, y)
    folded = [prod(x.shape[:-1]), x.shape[-1]] if a else []
    if a >= 3 and b in (1, 2) and (y.requires_grad or _same_layout(x, folded)):
        flat = _reshaped(send, x, folded)
        got = send("mv" if b == 1 else "mm", "default", flat, y)
        return send("_unsafe_view", "default", got, [*x.shape[:-1], *y.shape[1:]])
    if not a or not b:
        return send("matmul", "default", x, y)
    if b == 1:
        got = _matmul(send, x, send("unsqueeze", "default", y, 1))
        return send("squeeze", "dim", got, -1)
    if a == 1:
        got = _matmul(send, send("unsqueeze", "default", x, 0), y)
        return send("squeeze", "dim", got, -2)
    batch = list(clew.broadcast_shapes(x.shape[:-2], y.shape[:-2]))
    many = prod(batch)

    def flat_batch(t: Tensor) -> Tensor:
        wide = send("expand", "default", t, [*batch, *t.shape[-2:]])
        return _reshaped(send, wide, [many, *t.shape[-2:]])

    left = flat_batch(x)
    got = send("bmm", "default", left, flat_batch(y))
    return send("_unsafe_view", "default", got, [*batch, x.shape[-2], y.shape[-1]])


def _outer(send: Send, x: Tensor, y: Tensor) -> Tensor:
    column = send("view", "default", x, [x.shape[0], 1])
    return send("mul", "Tensor", column, y)


def _many(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


def _conv(n: int) -> Callable[..., Any]:
    def rule(
        send: Send,
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        widths = _many(dilation, n)
        if padding == "valid":
            padding = 0
        elif padding == "same":
            both = [d * (k - 1) for d, k in zip(widths, weight.shape[2:])]
            if any(p % 2 for p in both):
                more = [q for p in reversed(both) for q in (0, p % 2)]
                input = send("constant_pad_nd", "default", input, more)
            padding = [p // 2 for p in both]
        single = len(input.shape) == n + 1
        if single:
            input = send("unsqueeze", "default", input, 0)
        sizes = _many(stride, n), _many(padding, n), widths
        out = send("convolution", "default", input, weight, bias, *sizes, False, [0] * n, groups)
        return send("squeeze", "dim", out, 0) if single else out

    return rule


def _conv_transpose(n: int) -> Callable[..., Any]:
    def rule(
        send: Send,
        input: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        single = len(input.shape) == n + 1
        if single:
            input = send("unsqueeze", "default", input, 0)
        sizes = _many(stride, n), _many(padding, n), _many(dilation, n)
        more = _many(output_padding, n)
        out = send("convolution", "default", input, weight, bias, *sizes, True, more, groups)
        return send("squeeze", "dim", out, 0) if single else out

    return rule


def _attention(
    send: Send,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if len(query.shape) != 4 or enable_gqa or dropout_p:
        return send(
            "scaled_dot_product_attention", "default", query, key, value, attn_mask, dropout_p,
            is_causal, scale=scale, enable_gqa=enable_gqa,
        )  # fmt: skip
    more: dict[str, Any] = {} if attn_mask is None else {"attn_mask": attn_mask}
    if scale is not None:
        more["scale"] = scale
    name = "_scaled_dot_product_flash_attention_for_cpu"
    return send(name, "default", query, key, value, dropout_p, is_causal, **more)[0]


# ---- layers and losses ----


def _batch_norm(
    send: Send,
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    rest = (running_mean, running_var, training, momentum, eps)
    return send("native_batch_norm", "default", input, weight, bias, *rest)[0]


def _layer_norm(
    send: Send, input: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    return send("native_layer_norm", "default", input, list(shape), weight, bias, eps)[0]


def _group_norm(
    send: Send, input: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    n, channels = input.shape[:2]
    places = prod(input.shape[2:])
    sizes = (n, channels, places, groups, eps)
    return send("native_group_norm", "default", input, weight, bias, *sizes)[0]


def _softmax_of(name: str) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, dim: int, dtype: Any = None, **_: Any) -> Tensor:
        if dtype is not None and dtype != input.dtype:
            input = send("_to_copy", "default", input, dtype=dtype)
        return send(name, "default", input, dim, False)

    return rule


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _nll(
    send: Send, input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str
) -> Any:
    given = (input, target, weight, _REDUCTIONS[reduction], ignore_index)
    return send("nll_loss_forward", "default", *given)


def _cross_entropy(
    send: Send,
    input: Tensor,
    target: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Any:
    if smoothing or len(input.shape) != 2:
        given = (input, target, weight, ignore_index, reduction, smoothing)
        return send("_cross_entropy", "default", *given)
    logs = send("_log_softmax", "default", input, 1, False)
    loss, total = _nll(send, logs, target, weight, ignore_index, reduction)
    return loss, input.detach(), total  # what stands between serves the gradient alone


def _dropout(
    send: Send, input: Tensor, p: float = 0.5, train: bool = True, inplace: bool = False, **_: Any
) -> Tensor:
    train = _.get("training", train)
    if not train or p == 0 or not prod(input.shape):
        return input
    noise = send("empty_like", "default", input)
    noise = send("bernoulli_", "float", noise, 1 - p)
    noise = send("div_", "Scalar", noise, 1 - p)
    return send("mul_" if inplace else "mul", "Tensor", input, noise)


def _embedding(
    send: Send, weight: Tensor, indices: Tensor, padding_idx: int = -1, scale: bool = False,
    adjoint: bool = False,
) -> Tensor:  # fmt: skip
    if adjoint:
        return send("_embedding", "default", weight, indices, padding_idx, scale, adjoint)
    more = (padding_idx, scale) if scale else (padding_idx,) if padding_idx != -1 else ()
    return send("embedding", "default", weight, indices, *more)


def _adaptive_avg(n: int) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, output_size: Any) -> Tensor:
        size = _many(output_size, n)
        if n != 1 and all(k == 1 for k in size):
            return send("mean", "dim", input, [-k for k in range(n, 0, -1)], True)
        return send(f"_adaptive_avg_pool{n}d", "default", input, size)

    return rule


def _max_pool(n: int) -> Callable[..., Any]:
    def rule(
        send: Send, input: Tensor, kernel: Any, stride: Any = None, padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        sizes = [_many(kernel, n), _many(kernel if stride is None else stride, n)]
        more: list[Any] = [_many(padding, n), _many(dilation, n), ceil_mode]
        if not ceil_mode:  # what has its default at the end is left out
            more.pop()
            if set(more[1]) == {1}:
                more.pop()
                if set(more[0]) == {0}:
                    more.pop()
        return send(f"max_pool{n}d_with_indices", "default", input, *sizes, *more)

    return rule


def _avg_pool(
    send: Send, input: Tensor, kernel_size: Any, stride: Any = None, *args: Any, **kwargs: Any
) -> Tensor:
    n = len(input.shape) - 2
    sizes = [_many(kernel_size, n), _many(kernel_size if stride is None else stride, n)]
    return send("avg_pool2d", "default", input, *sizes, *args, **kwargs)


def _pad(send: Send, input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    pad = list(pad)
    if mode == "constant":
        return send("constant_pad_nd", "default", input, pad, *(() if value is None else (value,)))
    names = {"reflect": "reflection", "replicate": "replication"}
    if mode not in names:
        return send("pad", "default", input, pad, mode, value)
    return send(f"{names[mode]}_pad{len(pad) // 2}d", "default", input, pad)


def _relu(send: Send, input: Tensor, inplace: bool = False) -> Tensor:
    return send("relu_" if inplace else "relu", "default", input)


def _prelu(send: Send, input: Tensor, weight: Tensor) -> Tensor:
    if len(weight.shape) == 1 and len(input.shape) != 1:
        ones = [1] * (len(input.shape) - 2)
        size = [1, weight.shape[0], *ones][: len(input.shape)]
        weight = send("view", "default", weight, size)
    return send("_prelu_kernel", "default", input, weight)


def _no_inplace(name: str) -> Callable[..., Any]:
    def rule(send: Send, input: Tensor, *args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
        if inplace or (args and args[-1] is True):
            return send(name + "_", "default", input, *(a for a in args if a is not True), **kwargs)
        return send(name, "default", input, *(a for a in args if a is not False), **kwargs)

    return rule


# ---- shapes ----


def _sizes(args: Sequence[Any]) -> list[int]:
    if len(args) == 1 and not isinstance(args[0], int):
        return list(args[0])
    return list(args)


def _view(send: Send, x: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    if kwargs or (size and isinstance(size[0], clew.dtype)):
        return send("view", "dtype", x, *size, **kwargs)
    return send("view", "default", x, _sizes(size))


def _reshape(send: Send, x: Tensor, *size: Any, shape: Any = None) -> Tensor:
    wanted = _sizes(size) if shape is None else list(shape)
    return _reshaped(send, x, wanted) if -1 not in wanted else _inferred(send, x, wanted)


def _inferred(send: Send, x: Tensor, size: list[int]) -> Tensor:
    with DisableTorchFunctionSubclass():
        size = list(clew.empty(x.shape, device="meta").reshape(size).shape)
    return _reshaped(send, x, size)


def _flatten(send: Send, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    n = len(x.shape)
    if not n:
        return _reshaped(send, x, [1])
    first, last = start_dim % n, end_dim % n
    if first == last:
        return x
    size = [*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]]
    return _reshaped(send, x, size)


def _listed(name: str) -> Callable[..., Any]:
    """An operation whose sizes come one by one or as a list."""

    def rule(send: Send, x: Tensor, *size: Any, **kwargs: Any) -> Tensor:
        for value in kwargs.values():
            size = (value,)
        return send(name, "default", x, _sizes(size))

    return rule


def _chunk(send: Send, x: Tensor, chunks: int, dim: int = 0) -> Any:
    size = x.shape[dim]
    each = -(-size // chunks)
    if not each:
        return send("chunk", "default", x, chunks, dim)
    return _split(send, x, each, dim)


def _split(send: Send, x: Tensor, *args: Any, dim: int = 0, **kwargs: Any) -> Any:
    sizes = args[0] if args else next(iter(kwargs.values()))
    dim = args[1] if len(args) > 1 else dim
    at = (dim,) if dim else ()
    if isinstance(sizes, int):
        return send("split", "Tensor", x, sizes, *at)
    return send("split_with_sizes", "default", x, list(sizes), *at)


def _narrow(send: Send, x: Tensor, dim: int, start: Any, length: int) -> Tensor:
    start = int(start)
    size = x.shape[dim]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        return send("narrow", "default", x, dim, start, length)  # which says what is wrong
    return send("slice", "Tensor", x, dim, first, first + length)


def _new(name: str) -> Callable[..., Any]:
    def rule(send: Send, x: Tensor, *size: Any, **kwargs: Any) -> Tensor:
        sizes = kwargs.pop("size") if "size" in kwargs else _sizes(size)
        return send(name, "default", x, list(sizes), **kwargs)

    return rule


def _cat(send: Send, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return send("cat", "default", list(tensors), *((dim,) if dim else ()))


def _like(name: str) -> Callable[..., Any]:
    """An operation that takes its size from another tensor."""

    def rule(send: Send, x: Tensor, other: Tensor) -> Tensor:
        if name == "reshape":
            return _reshaped(send, x, other.shape)
        return send(name, "default", x, list(other.shape))

    return rule


def _stacked(dim: int) -> Callable[..., Any]:
    """`hstack` and `vstack` of tensors that have the dims for it."""
    name = "hstack" if dim else "vstack"

    def rule(send: Send, tensors: Sequence[Tensor]) -> Tensor:
        dims = {len(t.shape) for t in tensors}
        if not dims or min(dims) < 2 - (dim == 1):
            return send(name, "default", tensors)
        return _cat(send, tensors, 0 if dims == {1} else dim)

    return rule


def _unflatten(send: Send, x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    at = dim % len(x.shape)
    return send("view", "default", x, [*x.shape[:at], *sizes, *x.shape[at + 1 :]])


def _ravel(send: Send, x: Tensor) -> Tensor:
    return _reshaped(send, x, [prod(x.shape)])


def _type_as(send: Send, x: Tensor, other: Tensor) -> Tensor:
    return x if x.dtype == other.dtype else send("_to_copy", "default", x, dtype=other.dtype)


def _turned(send: Send, x: Tensor) -> Tensor:
    return send("permute", "default", x, list(range(len(x.shape)))[::-1])


def _movedim(send: Send, x: Tensor, source: Any, destination: Any) -> Tensor:
    n = len(x.shape)
    pairs = zip(_many(source, 1), _many(destination, 1))
    at = {to % n: start % n for start, to in pairs}
    rest = iter([d for d in range(n) if d not in at.values()])
    return send("permute", "default", x, [at[d] if d in at else next(rest) for d in range(n)])


def _contiguous_rule(send: Send, x: Tensor, memory_format: Any = None) -> Tensor:
    if memory_format in (None, clew.contiguous_format):
        if _contiguous(x):
            return x
        memory_format = clew.contiguous_format
    return send("clone", "default", x, memory_format=memory_format)


def _unbind(send: Send, x: Tensor, dim: int = 0) -> Any:
    return send("unbind", "int", x, *((dim,) if dim else ()))


def _getitem(send: Send, x: Tensor, index: Any) -> Tensor:
    """Slices and numbers one by one, then all index tensors at once."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(p, (list, bool)) or type(p).__module__ == "numpy" for p in parts):
        return send("__getitem__", "default", x, index)
    takes = sum(
        len(p.shape) if isinstance(p, Tensor) and p.dtype == clew.bool else 1
        for p in parts
        if p is not None and p is not Ellipsis
    )
    at, slot, tensors = 0, 0, {}
    changed = False
    for part in parts:
        if part is Ellipsis:
            passed = len(x.shape) - takes
            at, slot = at + passed, slot + passed
        elif part is None:
            x, at, changed = send("unsqueeze", "default", x, at), at + 1, True
            slot += 1
            takes += 1
        elif isinstance(part, slice):
            start, stop, step = part.indices(x.shape[at])
            takes_all = (part.start in (None, 0)) and part.stop is None and step == 1
            if not takes_all:
                end = stop if part.stop is not None else 2**63 - 1
                more = (step,) if step != 1 else ()
                x, changed = send("slice", "Tensor", x, at, start, end, *more), True
            at, slot = at + 1, slot + 1
        elif isinstance(part, Tensor):
            tensors[slot] = part
            slot += 1
            at += len(part.shape) if part.dtype == clew.bool else 1
        else:
            x, changed = send("select", "int", x, at, int(part)), True
            takes -= 1
    if tensors:
        found: list[Any] = [None] * (max(tensors) + 1)
        for place, part in tensors.items():
            found[place] = part
        return send("index", "Tensor", x, found)
    return x if changed else send("alias", "default", x)


def _setitem(send: Send, x: Tensor, index: Any, value: Any) -> None:
    parts = index if isinstance(index, tuple) else (index,)
    if all(p is None or p is Ellipsis or isinstance(p, (int, slice)) for p in parts):
        place = _getitem(send, x, index)
        if isinstance(value, Tensor):
            send("copy_", "default", place, value)
        else:
            send("fill_", "Tensor", place, clew.tensor(value, dtype=x.dtype))
        return
    if all(isinstance(p, Tensor) for p in parts):
        value = value if isinstance(value, Tensor) else clew.tensor(value, dtype=x.dtype)
        send("index_put_", "default", x, list(parts), value)
        return
    send("__setitem__", "default", x, index, value)


def _converted(dtype: Any) -> Callable[..., Any]:
    def rule(send: Send, x: Tensor, **_: Any) -> Tensor:
        return x if x.dtype == dtype else send("_to_copy", "default", x, dtype=dtype)

    return rule


def _to(send: Send, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    for a in args:
        if isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, clew.dtype):
            dtype = a
        elif isinstance(a, (str, clew.device)):
            device = a
    if device is not None and clew.device(device) != x.device:
        dtype = x.dtype if dtype is None else dtype
        more = {"dtype": dtype, "layout": x.layout, "device": clew.device(device)}
        return send("_to_copy", "default", x, **more)
    if dtype is None or (dtype == x.dtype and not kwargs.get("copy")):
        with DisableTorchFunctionSubclass():
            return (
                x if not isinstance(x, Tensor) or type(x) is not Tensor else x.to(*args, **kwargs)
            )
    return send("_to_copy", "default", x, dtype=dtype)


def _item(send: Send, x: Tensor) -> Any:
    return send("_local_scalar_dense", "default", x)


def _cast(kind: Any) -> Callable[..., Any]:
    return lambda send, x: kind(send("_local_scalar_dense", "default", x))


def _rtruediv(send: Send, x: Tensor, other: Any) -> Tensor:
    return send("mul", "Tensor", send("reciprocal", "default", x), other)


def _rpow(send: Send, x: Tensor, base: Any) -> Tensor:
    return send("pow", "Scalar", base, x)


def _pow(name: str) -> Callable[..., Any]:
    def rule(send: Send, x: Any, exponent: Any, **kwargs: Any) -> Tensor:
        if name == "pow_":
            kind = "Tensor" if isinstance(exponent, Tensor) else "Scalar"
        elif not isinstance(x, Tensor):
            kind = "Scalar"
        else:
            kind = "Tensor_Tensor" if isinstance(exponent, Tensor) else "Tensor_Scalar"
        return send(name, kind, x, exponent, **kwargs)

    return rule


def _norm(send: Send, x: Tensor, p: Any = "fro", dim: Any = None, *a: Any, **kwargs: Any) -> Tensor:
    if p not in ("fro", 2, 2.0, None) or a or kwargs:
        return send("norm", "default", x, p, dim, *a, **kwargs)
    return send("linalg_vector_norm", "default", x, 2, *(() if dim is None else (dim,)))


def _mse(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    return send("mse_loss", "default", x, y, *(() if mean else (2,)))


def _smooth(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    """Half a square up to `edge`, then a line of slope 1."""
    reduction = () if mean else (2,)
    if (edge, half, line) == (1, 0.5, 1):
        return send("smooth_l1_loss", "default", x, y, *reduction)
    if line == 1:
        return send("smooth_l1_loss", "default", x, y, 1 if mean else 2, edge)
    return send("_smooth_l1_loss", "default", x, y, edge, half, line, mean)


def _huber(
    send: Send, x: Tensor, y: Tensor, edge: float, half: float, line: float, mean: bool
) -> Tensor:
    return send("huber_loss", "default", x, y, 1 if mean else 2, edge)


def _adaptive_max(send: Send, x: Tensor, size: Any) -> Any:
    return send("adaptive_max_pool2d", "default", x, _many(size, 2))


_RULES: dict[str, Callable[..., Any]] = {
    "linear": _linear, "matmul": _matmul, "outer": _outer,
    "conv1d": _conv(1), "conv2d": _conv(2), "conv3d": _conv(3),
    "conv_transpose1d": _conv_transpose(1), "conv_transpose2d": _conv_transpose(2),
    "conv_transpose3d": _conv_transpose(3), "scaled_dot_product_attention": _attention,
    "batch_norm": _batch_norm, "layer_norm": _layer_norm, "group_norm": _group_norm,
    "softmax": _softmax_of("_softmax"), "log_softmax": _softmax_of("_log_softmax"),
    "_nll_loss": _nll, "_cross_entropy": _cross_entropy, "_mse_loss": _mse,
    "dropout": _dropout, "_embedding": _embedding,
    "adaptive_avg_pool2d": _adaptive_avg(2), "adaptive_avg_pool3d": _adaptive_avg(3),
    "_max_pool2d": _max_pool(2), "_max_pool3d": _max_pool(3), "avg_pool2d": _avg_pool,
    "_adaptive_max_pool2d": _adaptive_max,
    "pad": _pad, "relu": _relu, "prelu": _prelu,
    "relu6": lambda send, x, inplace=False: send(
        "hardtanh_" if inplace else "hardtanh", "default", x, 0.0, 6.0
    ),
    "logsigmoid": lambda send, x: send("log_sigmoid_forward", "default", x)[0],
    "silu": _no_inplace("silu"), "elu": _no_inplace("elu"), "mish": _no_inplace("mish"),
    "hardswish": _no_inplace("hardswish"), "leaky_relu": _no_inplace("leaky_relu"),
    "hardsigmoid": _no_inplace("hardsigmoid"),
    "view": _view, "reshape": _reshape, "flatten": _flatten, "expand": _listed("expand"),
    "permute": _listed("permute"), "flip": _listed("flip"), "new_empty": _new("new_empty"),
    "new_zeros": _new("new_zeros"), "new_ones": _new("new_ones"),
    "narrow": _narrow, "expand_as": _like("expand"), "view_as": _like("view"),
    "reshape_as": _like("reshape"), "hstack": _stacked(1), "vstack": _stacked(0),
    "unflatten": _unflatten, "ravel": _ravel, "type_as": _type_as, "T": _turned,
    "movedim": _movedim, "cat": _cat, "repeat": _listed("repeat"), "chunk": _chunk, "split": _split,
    "contiguous": _contiguous_rule, "unbind": _unbind, "__iter__": _unbind,
    "__getitem__": _getitem, "__setitem__": _setitem,
    "double": _converted(clew.float64), "float": _converted(clew.float32),
    "half": _converted(clew.float16), "bfloat16": _converted(clew.bfloat16),
    "long": _converted(clew.int64), "int": _converted(clew.int32), "bool": _converted(clew.bool),
    "to": _to, "item": _item, "__bool__": _cast(bool), "__int__": _cast(int),
    "__float__": _cast(float), "__index__": _cast(int), "__complex__": _cast(complex),
    "__rtruediv__": _rtruediv, "__rpow__": _rpow, "pow": _pow("pow"), "pow_": _pow("pow_"),
    "norm": _norm, "_smooth_l1_loss": _smooth, "_huber_loss": _huber,
    "_binary_cross_entropy_with_logits": lambda send, x, y: send(
        "binary_cross_entropy_with_logits", "default", x, y, None, None, 0
    ),
    "_binary_cross_entropy": lambda send, x, y: send(
        "binary_cross_entropy", "default", x, y, None, 0
    ),
    "mT": lambda send, x: send("transpose", "int", x, -2, -1),
    **_lowering_makers.RULES,
}  # fmt: skip


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
