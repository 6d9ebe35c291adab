"""What PyTorch's dispatcher sees of reshaping, indexing and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import clew
from clew import Tensor
from clew._base.overriding import DisableTorchFunctionSubclass

__all__ = ["RULES"]

Send = Callable[..., Any]


def many(value: Any, n: int) -> list[int]:
    """A number for each of n dims, where one may stand for all."""
    return [value] * n if isinstance(value, int) else list(value)


def contiguous(x: Tensor) -> bool:
    """Whether a tensor is contiguous, which is asked without being sent."""
    with DisableTorchFunctionSubclass():
        return x.is_contiguous()


def same_layout(x: Tensor, size: Sequence[int]) -> bool:
    """Whether a tensor can be seen in other sizes without a copy."""
    with DisableTorchFunctionSubclass():
        if x.is_contiguous() or 0 in x.shape:
            return True
        try:
            clew.empty_strided(x.shape, x.stride(), device="meta").view(tuple(size))
        except RuntimeError:
            return False
        return True


def reshaped(send: Send, x: Tensor, size: Sequence[int]) -> Tensor:
    """Sends a reshape: a view, of a copy where the memory asks for one."""
    size = list(size)
    if -1 in size:
        known = prod(n for n in size if n != -1)
        size[size.index(-1)] = prod(x.shape) // known if known else 0
    if tuple(x.shape) == tuple(size) and not contiguous(x):
        return send("view", "default", x, size)
    if same_layout(x, size):
        return send("view", "default", x, size)
    x = send("clone", "default", x, memory_format=clew.contiguous_format)
    return send("_unsafe_view", "default", x, size)


def _sizes(args: Sequence[Any]) -> list[int]:
    if len(args) == 1 and not isinstance(args[0], int):
        return list(args[0])
    return list(args)


def _view(send: Send, x: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    if kwargs or (size and isinstance(size[0], clew.dtype)):
        return send("view", "dtype", x, *size, **kwargs)
    return send("view", "default", x, _sizes(size))


def unseen(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function without sending it: with wrong arguments, so that it raises."""
    with DisableTorchFunctionSubclass():
        return function(*args, **kwargs)


def _shown(name: str, x: Tensor, *args: Any) -> Any:
    """What an operation makes of a tensor of these sizes, without memory; or raises."""
    with DisableTorchFunctionSubclass():
        return getattr(clew.empty(x.shape, device="meta"), name)(*args)


def _reshape(send: Send, x: Tensor, *size: Any, shape: Any = None) -> Tensor:
    wanted = size if shape is None else (shape,)
    return reshaped(send, x, _shown("reshape", x, *wanted).shape)


def _axis(name: str, dim: int, n: int) -> int:
    """A dim counted from the front, or the error of the operation itself."""
    n = max(n, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"{name}: dim must be in [{-n}, {n - 1}]; got {dim} (Dimension out of range)"
        )
    return dim % n


def _flatten(send: Send, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    n = len(x.shape)
    first, last = _axis("flatten", start_dim, n), _axis("flatten", end_dim, n)
    if not n:
        return reshaped(send, x, [1])
    if first > last:
        raise RuntimeError(
            f"flatten: start_dim must not come after end_dim; got {start_dim} and {end_dim}"
        )
    if first == last:
        return x
    size = [*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]]
    return reshaped(send, x, size)


def _listed(name: str) -> Callable[..., Any]:
    """An operation whose sizes come one by one or as a list."""

    def rule(send: Send, x: Tensor, *size: Any, **kwargs: Any) -> Tensor:
        for value in kwargs.values():
            size = (value,)
        if not size:
            _shown(name, x)  # which some refuse
        return send(name, "default", x, _sizes(size))

    return rule


def _chunk(send: Send, x: Tensor, chunks: int, dim: int = 0) -> Any:
    each = _shown("chunk", x, chunks, dim)[0].shape[dim]
    if not each:
        return send("chunk", "default", x, chunks, dim)
    return _split(send, x, each, dim)


def _split(send: Send, x: Tensor, *args: Any, dim: int = 0, **kwargs: Any) -> Any:
    sizes = args[0] if args else next(iter(kwargs.values()))
    dim = args[1] if len(args) > 1 else dim
    at = (dim,) if dim else ()
    if isinstance(sizes, int):
        return send("split", "Tensor", x, sizes, *at)
    _shown("split", x, sizes, dim)
    return send("split_with_sizes", "default", x, list(sizes), *at)


def _narrow(send: Send, x: Tensor, dim: int, start: Any, length: int) -> Tensor:
    _shown("narrow", x, dim, start, length)
    start = int(start)
    first = start + x.shape[dim] if start < 0 else start
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
            return _reshape(send, x, other.shape)
        return send(name, "default", x, list(other.shape))

    return rule


def _stacked(dim: int) -> Callable[..., Any]:
    """`hstack` and `vstack` of tensors that have the dims for it."""
    name = "hstack" if dim else "vstack"

    def rule(send: Send, tensors: Sequence[Tensor]) -> Tensor:
        dims = {len(t.shape) for t in tensors}
        if len(dims) != 1 or min(dims) < 2 - (dim == 1):
            return send(name, "default", tensors)
        return _cat(send, tensors, 0 if dims == {1} else dim)

    return rule


def _unflatten(send: Send, x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    return send("view", "default", x, list(_shown("unflatten", x, dim, sizes).shape))


def _ravel(send: Send, x: Tensor) -> Tensor:
    return reshaped(send, x, [prod(x.shape)])


def _type_as(send: Send, x: Tensor, other: Tensor) -> Tensor:
    return x if x.dtype == other.dtype else send("_to_copy", "default", x, dtype=other.dtype)


def _turned(send: Send, x: Tensor) -> Tensor:
    return send("permute", "default", x, list(range(len(x.shape)))[::-1])


def _movedim(send: Send, x: Tensor, source: Any, destination: Any) -> Tensor:
    n = len(x.shape)
    starts, ends = list(many(source, 1)), list(many(destination, 1))
    if len(starts) != len(ends):
        raise RuntimeError(
            "movedim: source and destination must name equally many dimensions; got "
            f"{starts} and {ends}"
        )
    at = {_axis("movedim", to, n): _axis("movedim", start, n) for start, to in zip(starts, ends)}
    if len({*at.values()}) < len(starts):
        raise RuntimeError(f"movedim: dimensions must not repeat; got {starts} and {ends}")
    rest = iter([d for d in range(n) if d not in at.values()])
    return send("permute", "default", x, [at[d] if d in at else next(rest) for d in range(n)])


def _contiguous_rule(send: Send, x: Tensor, memory_format: Any = None) -> Tensor:
    if memory_format in (None, clew.contiguous_format):
        if contiguous(x):
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


RULES: dict[str, Callable[..., Any]] = {
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
    "mT": lambda send, x: send("transpose", "int", x, -2, -1),
}  # fmt: skip
