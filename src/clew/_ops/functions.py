"""Top-level functions written in Python on top of the ops."""

from __future__ import annotations

import functools
from typing import Any

from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import need_bools, need_int, need_tensors, numpy_names
from clew._base.autocast import in_float32
from clew._base.out import write_out
from clew._base.overriding import asks_classes, modes_are_on
from clew._base.promotion import can_cast, promote_types, result_type
from clew._base.sizes import broadcast_sizes
from clew._C import Tensor
from clew._ops.modes import set_deterministic_debug_mode
from clew._tensor.conversions import clone

__all__ = [
    "allclose",
    "are_deterministic_algorithms_enabled",
    "broadcast_shapes",
    "broadcast_tensors",
    "can_cast",
    "clone",
    "cross",
    "detach",
    "diff",
    "dist",
    "equal",
    "get_default_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_complex",
    "is_floating_point",
    "is_nonzero",
    "is_storage",
    "is_tensor",
    "memory_stats",
    "norm",
    "numel",
    "promote_types",
    "result_type",
    "set_default_device",
    "set_default_dtype",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "trace",
    "typename",
    "unique",
    "unique_consecutive",
    "use_deterministic_algorithms",
]


def is_tensor(obj: Any) -> bool:
    """Whether obj is a Tensor.

    Args:
        obj: anything.

    >>> clew.is_tensor(clew.ones(1)), clew.is_tensor(1)
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether obj is a storage.

    Args:
        obj: anything.

    >>> clew.is_storage(clew.ones(1).untyped_storage())
    True
    """
    from clew.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


@asks_classes
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype of input is a floating point one.

    >>> clew.is_floating_point(clew.ones(1))
    True
    """
    return input.is_floating_point()


@asks_classes
def is_complex(input: Tensor) -> bool:
    """Whether the dtype of input is a complex one.

    >>> clew.is_complex(clew.ones(1))
    False
    """
    return input.is_complex()


@asks_classes
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of input is not zero.

    >>> clew.is_nonzero(clew.tensor([2]))
    True
    """
    return bool(input)


@asks_classes
def numel(input: Tensor) -> int:
    """Number of elements of input.

    >>> clew.numel(clew.ones(2, 3))
    6
    """
    return input.numel()


def set_default_dtype(d: _C.dtype) -> None:
    """Sets the dtype of new floating point tensors.

    Args:
        d: a floating point dtype of 16 bits or more.

    Raises:
        TypeError: d is another dtype.

    >>> clew.set_default_dtype(clew.float32)
    """
    if not isinstance(d, _C.dtype) or not d.is_floating_point or d in _dtypes.STORED:
        raise TypeError(
            f"set_default_dtype: only floating-point types are supported as the default type; "
            f"got {d!r}"
        )
    _C._set_default_dtype(d)


def set_default_device(device: Any) -> None:
    """Sets the device of tensors that this thread creates without one.

    ``with clew.device("meta"):`` sets it for a block.

    Args:
        device: "cpu" or "meta"; None for the CPU.

    >>> clew.set_default_device('cpu')
    """
    _C._set_default_device(device)


def get_default_device() -> _C.device:
    """The device of tensors that are created without one.

    >>> clew.get_default_device()
    device(type='cpu')
    """
    return _C.get_default_device()


def memory_stats() -> dict[str, int]:
    """Live, peak and cached bytes of tensor storage, and the number of allocations.

    ``fresh_bytes`` counts all bytes ever requested from the system for blocks above 4 KB. While it
    stays the same, new tensors use freed memory. ``cached_bytes`` are free bytes that still occupy
    memory: at most an eighth of the recent peak of live bytes plus 16 MB. Bytes that were unused
    for half a minute go back to the system; ``empty_cache()`` gives all of them back at once.

    >>> sorted(clew.memory_stats())[0] in clew.memory_stats()
    True
    """
    return _C._memory_stats()


def broadcast_shapes(*shapes: Any) -> _C.Size:
    """The shape that all given shapes broadcast to.

    >>> clew.broadcast_shapes((2, 1), (3,))
    clew.Size([2, 3])
    """
    if set(map(type, shapes)) == {_C.Size}:  # the shapes of tensors: nothing negative
        if shapes.count(shapes[0]) == len(shapes):
            return shapes[0]
        made = broadcast_sizes(shapes)
        if made is not None:
            return _C.Size(made)
    if any(hasattr(type(s), "__torch_function__") for s in shapes):  # those of clew.fx
        from clew._base.overriding import handle_torch_function

        return handle_torch_function(broadcast_shapes, shapes, *shapes)
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    n = max((len(s) for s in sizes), default=0)
    out = [1] * n
    for s in sizes:
        for i, size in enumerate(reversed(s), start=1):
            if size < 0:
                raise RuntimeError(f"broadcast_shapes: sizes must not be negative; got {s}")
            if size != 1 and out[-i] not in (1, size):
                raise RuntimeError(
                    "broadcast_shapes: Shape mismatch: objects cannot be broadcast to a single "
                    f"shape: {s} with {tuple(out)}"
                )
            if size != 1:
                out[-i] = size
    return _C.Size(out)


@asks_classes
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape they broadcast to; all are given back where none grows.

    >>> [t.shape for t in clew.broadcast_tensors(clew.ones(2, 1), clew.ones(3))]
    [clew.Size([2, 3]), clew.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(t.shape for t in tensors))
    rank = len(shape)
    # Ranks first: export takes the comparison of two sizes for a decision.
    return tuple([t if t.dim() == rank and t.shape == shape else t.expand(shape) for t in tensors])


@asks_classes
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether input and other have the same shape and elements.

    >>> clew.equal(clew.ones(2), clew.ones(2))
    True
    """
    # Ragged and sparse tensors have rules of their own; modes are shown the operations.
    plain = type(input) is Tensor is type(other)
    ruled = not plain and (hasattr(type(input), "_rules") or hasattr(type(other), "_rules"))
    if ruled or modes_are_on():
        need_tensors("equal", input=input, other=other)
        return input.shape == other.shape and bool((input == other).all().item())
    return input._equals(other)


@asks_classes
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all |input - other| <= atol + rtol * |other|.

    Args:
        input: the tensor.
        other: the tensor to compare with.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    Returns:
        a bool.

    >>> clew.allclose(clew.ones(2), clew.ones(2) + 1e-9)
    True
    """
    return bool(
        _C.functions["isclose"](input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)
        .all()
        .item()
    )


def are_deterministic_algorithms_enabled() -> bool:
    """True: clew's operations always give the same bits for the same input and thread count.

    >>> clew.are_deterministic_algorithms_enabled()
    True
    """
    return True


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: clew's operations are deterministic anyway.

    Args:
        mode: True is what `get_deterministic_debug_mode` then says: 2, or 1 with `warn_only`.
        warn_only: what `is_deterministic_algorithms_warn_only_enabled` then says.

    Raises:
        TypeError: one of them is no bool.

    >>> clew.use_deterministic_algorithms(True, warn_only=True)
    >>> clew.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> clew.use_deterministic_algorithms(False)
    """
    need_bools("use_deterministic_algorithms", mode=mode, warn_only=warn_only)
    set_deterministic_debug_mode((1 if warn_only else 2) if mode else 0)


def typename(obj: Any) -> str:
    """The name of a class or function, of a tensor's type, of another object's type.

    Args:
        obj: anything.

    >>> clew.typename(clew.ones(1)), clew.typename(3), clew.typename(clew.nn.ReLU)
    ('clew.FloatTensor', 'int', 'clew.nn.modules.activation.ReLU')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    name = name or type(obj).__qualname__
    return name if module in (None, "builtins") else f"{module}.{name}"


@asks_classes
def detach(input: Tensor) -> Tensor:
    """The same elements without history.

    >>> x = clew.ones(2, requires_grad=True)
    >>> clew.detach(x).requires_grad
    False
    """
    return input.detach()


_interop_threads = 1


def get_num_interop_threads() -> int:
    """What :func:`set_num_interop_threads` was given; 1 before.

    >>> clew.get_num_interop_threads() >= 1
    True
    """
    return _interop_threads


def set_num_interop_threads(n: int) -> None:
    """Bounds how many operations run at once, without an effect: they run one after the other.

    Args:
        n: a positive number.

    Raises:
        TypeError: ``n`` is not an int.
        RuntimeError: ``n`` is not positive.

    >>> clew.set_num_interop_threads(1)
    """
    global _interop_threads
    n = need_int("set_num_interop_threads", "n", n)
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads: n must be positive; got {n}")
    _interop_threads = n


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal numbers are always kept.

    >>> clew.set_flush_denormal(False)
    False
    """
    need_bools("set_flush_denormal", mode=mode)
    return False


_matmul_precision = "highest"


def get_float32_matmul_precision() -> str:
    """What :func:`set_float32_matmul_precision` was given; 'highest' before.

    >>> clew.get_float32_matmul_precision()
    'highest'
    """
    return _matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Accepts a level of precision, without an effect.

    Products of float32 are always computed in float32, the most precise of the levels.

    Args:
        precision: "highest", "high" or "medium".

    Raises:
        ValueError: for another one.

    >>> clew.set_float32_matmul_precision('highest')
    """
    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: expected 'highest', 'high' or 'medium'; got "
            f"{precision!r}"
        )
    _matmul_precision = precision


@asks_classes
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements of input, or its distinct slices along ``dim``, in ascending order.

    Args:
        input: any shape.
        sorted: accepted; the result is always in ascending order.
        return_inverse: also return where each element of input is in the result.
        return_counts: also return how often each one occurs.
        dim: compare slices along this dim; None compares elements.

    Returns:
        the distinct elements, followed by the inverse and the counts when asked for.

    >>> clew.unique(clew.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if dim is None:
        found = _C.ops._unique(input, sorted, return_inverse, return_counts)
    elif input.ndim == 0:
        raise _without_dims("unique", dim)
    else:
        found = _C.ops._unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _selected("unique", input, found, return_inverse, return_counts)


@asks_classes
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements of input without those that equal the one before.

    Args:
        input: the tensor.
        return_inverse: whether to give the index of each element in the result too.
        return_counts: whether to give how often each stands in a row too.
        dim: compare slices along this dimension; None: single elements.

    Returns:
        a tensor, or a tuple where more is asked for.

    >>> clew.unique_consecutive(clew.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if dim is not None and input.ndim == 0:
        raise _without_dims("unique_consecutive", dim)
    return _selected(
        "unique_consecutive",
        input,
        _C.ops._unique_consecutive(input, return_inverse, return_counts, dim),
        return_inverse,
        return_counts,
    )


def _without_dims(function: str, dim: int) -> IndexError:
    return IndexError(f"{function}: dimension specified as {dim} but tensor has no dimensions")


def _selected(name: str, input: Tensor, found: Any, inverse: bool, counts: bool) -> Any:
    values = found[0]
    if input.requires_grad:
        from clew._ops.primitive import without_derivative

        (values,) = without_derivative(name, [values], input)
    chosen = (values, *((found[1],) if inverse else ()), *((found[2],) if counts else ()))
    return chosen if len(chosen) > 1 else chosen[0]


@asks_classes
@in_float32
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    >>> clew.trace(clew.eye(3))
    tensor(3.)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype is _dtypes.bool:
        raise NotImplementedError(
            "trace: not implemented for bool; convert it first, e.g. with .long()"
        )
    return input.diagonal().sum()


@asks_classes
@numpy_names
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th differences of neighbours along ``dim``.

    Args:
        input: the tensor.
        n: how often differences are taken.
        dim: the dimension.
        prepend: what is put before the input along dim.
        append: what is put behind it.

    Returns:
        a tensor, n smaller along dim.

    >>> clew.diff(clew.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if input.ndim == 0:
        raise RuntimeError("diff: expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"diff: order must be non-negative but got {n}")
    if n == 0 and out is None:
        return input.clone()
    parts = [t for t in (prepend, input, append) if t is not None]
    if n > 0 and len(parts) > 1:
        input = _C.functions["cat"](parts, dim)
    for _ in range(min(n, input.shape[dim])):
        size = input.shape[dim]
        high, low = input.narrow(dim, 1, size - 1), input.narrow(dim, 0, size - 1)
        input = high ^ low if input.dtype is _dtypes.bool else high - low
    if out is None:
        return input
    return write_out("diff", input, out, converts=True)


@asks_classes
@numpy_names
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The cross product of 3-vectors along ``dim`` (by default the first dim of size 3).

    Args:
        input: the tensor.
        other: a tensor of a shape that broadcasts.
        dim: the dimension of size 3.

    Returns:
        a tensor of the broadcast shape.

    >>> clew.cross(clew.tensor([1.0, 0.0, 0.0]), clew.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if dim is None:
        sizes = broadcast_shapes(input.shape, other.shape)
        if 3 not in sizes:
            raise RuntimeError(f"cross: no dimension of size 3 in input; got {list(sizes)}")
        dim = sizes.index(3)
    return _cross_product()(input, other, dim, out)


@functools.cache
def _cross_product() -> Any:
    from clew.linalg._products import cross_product

    return cross_product


@asks_classes
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other.

    Args:
        input: the tensor.
        other: the tensor to subtract.
        p: the power of the norm.

    Returns:
        a 0-d tensor.

    >>> clew.dist(clew.tensor([1.0, 1.0]), clew.tensor([4.0, 5.0]))
    tensor(5.)
    """
    return (input - other).norm(p)


_norm = _C.functions["norm"]


@asks_classes
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The p-norm of a tensor, of all elements or along dims.

    Args:
        input: floating point or complex.
        p: the order; "fro" is 2, "nuc" the sum of a matrix's singular values.
        dim: one dim or several; None for all.
        keepdim: keep these dims with size 1.
        out: a tensor that receives the result.
        dtype: convert to this first.

    Returns:
        real.

    >>> clew.norm(clew.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(p, str) and p == "nuc":
        from clew.linalg._norms import nuclear_norm

        if dim is None and input.ndim != 2:
            raise RuntimeError(
                f"norm: p='nuc' without dim needs a tensor of 2 dimensions; got {input.ndim}"
            )
        return nuclear_norm(input if dtype is None else input.to(dtype), dim, keepdim, out=out)
    if out is None:
        return _norm(input, p, dim, keepdim, dtype=dtype)
    return _norm(input, p, dim, keepdim, dtype=dtype, out=out)


def _method_norm(
    self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The p-norm, of all elements or along dims; see clew.norm.

    >>> clew.tensor([3.0, 4.0]).norm()
    tensor(5.)
    """
    return norm(self, p, dim, keepdim, None, dtype)


_method_norm.__name__ = "norm"  # pickles know it by its other name

# Set on Tensor by clew._ops.installer.
METHODS = {
    "norm": _method_norm,
    "unique": unique,
    "unique_consecutive": unique_consecutive,
    "trace": trace,
    "diff": diff,
    "cross": cross,
    "dist": dist,
    "equal": equal,
    "allclose": allclose,
}
