"""Views in ONNX."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import clew
from clew.export._ir import Value
from clew.onnx._errors import OnnxExporterError
from clew.onnx._lower import Builder, lowers

LAST = 2**63 - 1


def rank(v: Value) -> int:
    """The number of dims."""
    return len(v.sizes)


@lowers("reshape", "ops.reshape", "ops.view", "view")
def _reshape(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    size = a.get("size", a.get("shape"))
    if size is None:
        raise OnnxExporterError("onnx.export: view() as another dtype")
    result: str = b.op("Reshape", b.name(x), b.vector(size), allowzero=int(_has_zero(size)))
    return result


def _has_zero(size: Any) -> bool:
    parts = size if isinstance(size, (tuple, list)) else (size,)
    return not any(type(n) is int and n == -1 for n in parts)


@lowers("ops.view_as", "ops.reshape_as")
def _view_as(b: Builder, a: Any) -> str:
    x, other = a.node.args[:2]
    result: str = b.op("Reshape", b.name(x), b.shape(b.name(other)), allowzero=1)
    return result


@lowers("flatten", "ravel")
def _flatten(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n = rank(x)
    if n == 0 or a.node.op == "ravel":
        return b.op("Reshape", b.name(x), b.ints(-1))
    start, end = a.get("start_dim", 0) % n, a.get("end_dim", -1) % n
    shape = b.shape(b.name(x))
    before = b.op("Slice", shape, b.ints(0), b.ints(start))
    after = b.op("Slice", shape, b.ints(end + 1), b.ints(LAST))
    inner = b.op("ReduceProd", b.op("Slice", shape, b.ints(start), b.ints(end + 1)), keepdims=1)
    target = b.op("Concat", before, inner, after, axis=0)
    result: str = b.op("Reshape", b.name(x), target, allowzero=1)
    return result


@lowers("unflatten")
def _unflatten(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    d = a.dim % rank(x)
    shape = b.shape(b.name(x))
    before = b.op("Slice", shape, b.ints(0), b.ints(d))
    after = b.op("Slice", shape, b.ints(d + 1), b.ints(LAST))
    target = b.op("Concat", before, b.vector(a.sizes), after, axis=0)
    result: str = b.op("Reshape", b.name(x), target)
    return result


def transposed(b: Builder, name: str, perm: list[int]) -> str:
    """Dims in another order."""
    result: str = name if perm == sorted(perm) else b.op("Transpose", name, perm=perm)
    return result


@lowers("transpose", "swapaxes", "swapdims")
def _transpose(b: Builder, a: Any) -> str:
    x, *dims = list(a.values())[:3]
    n = rank(x)
    if n == 0:
        return b.name(x)
    i, j = (d % n for d in dims)
    perm = list(range(n))
    perm[i], perm[j] = j, i
    return transposed(b, b.name(x), perm)


@lowers("t", "ops._mT", "ops._T", "adjoint", "ops._H", "ops._mH")
def _t(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n = rank(x)
    if n < 2:
        return b.name(x)
    perm = list(range(n))
    if a.node.op == "ops._T":
        perm = perm[::-1]
    else:
        perm[-1], perm[-2] = perm[-2], perm[-1]
    return transposed(b, b.name(x), perm)


@lowers("permute")
def _permute(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    return transposed(b, b.name(x), [d % rank(x) for d in a.dims])


@lowers("movedim", "moveaxis")
def _movedim(b: Builder, a: Any) -> str:
    x, source, target = list(a.values())[:3]
    n = rank(x)
    listed = lambda d: [k % n for k in (d if isinstance(d, (tuple, list)) else [d])]  # noqa: E731
    source, target = listed(source), listed(target)
    perm: list[Any] = [None] * n
    for s, t in zip(source, target):
        perm[t] = s
    rest = iter(k for k in range(n) if k not in source)
    return transposed(b, b.name(x), [next(rest) if p is None else p for p in perm])


@lowers("unsqueeze")
def _unsqueeze(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    result: str = b.op("Unsqueeze", b.name(x), b.ints(a.dim % (rank(x) + 1)))
    return result


@lowers("squeeze")
def _squeeze(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n, gone = rank(x), rank(x) - rank(a.out)
    dim = a.get("dim")
    if dim is None:
        dims = [d for d, size in enumerate(x.sizes) if size == 1]
    else:
        dims = [d % n for d in ([dim] if isinstance(dim, int) else dim)] if n else []
        dims = dims if len(dims) == gone else [d for d in dims if x.sizes[d] == 1]
    if len(dims) != gone:
        raise OnnxExporterError("onnx.export: squeeze() of a dim whose size varies")
    result: str = b.op("Squeeze", b.name(x), b.ints(*dims)) if dims else b.name(x)
    return result


@lowers("expand", "ops.expand", "broadcast_to", "ops.expand_as")
def _expand(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    if a.node.op.endswith("as"):
        return b.op("Expand", b.name(x), b.shape(b.name(a.node.args[1])))
    size = next(v for k, v in a.items() if k in ("size", "sizes", "shape"))
    size = [1 if type(n) is int and n == -1 else n for n in size]
    result: str = b.op("Expand", b.name(x), b.vector(size))
    return result


@lowers("ops.repeat", "tile")
def _repeat(b: Builder, a: Any) -> str:
    x, times = list(a.values())[:2]
    times = list(times) if isinstance(times, (tuple, list)) else [times]
    name = b.name(x)
    extra = len(times) - rank(x)
    if extra > 0:
        name = b.op("Unsqueeze", name, b.ints(*range(extra)))
    times = [1] * -extra + times
    result: str = b.op("Tile", name, b.vector(times))
    return result


@lowers("narrow")
def _narrow(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    start = b.vector(a.start)
    if type(a.start) is int and a.start < 0:
        size = b.op("Unsqueeze", b.dim_of(x, a.dim % rank(x)), b.ints(0))
        start = b.op("Add", start, size)
    end = b.op("Add", start, b.vector(a.length))
    result: str = b.op("Slice", b.name(x), start, end, b.ints(a.dim % rank(x)))
    return result


@lowers("select")
def _select(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    result: str = b.op("Gather", b.name(x), b.scalar(a.index, "int64"), axis=a.dim % rank(x))
    return result


@lowers("unbind")
def _unbind(b: Builder, a: Any) -> list[str]:
    x = a.node.args[0]
    d = a.get("dim", 0) % rank(x)
    return [
        b.op("Gather", b.name(x), b.const(k, np.int64), axis=d) for k in range(len(a.node.outputs))
    ]


@lowers("split", "chunk", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit")
def _split(b: Builder, a: Any) -> Any:
    x = a.node.args[0]
    op = a.node.op
    d = {"hsplit": 0 if rank(x) == 1 else 1, "vsplit": 0, "dsplit": 2}.get(op)
    d = a.get("dim", 0) % rank(x) if d is None else d
    lengths = [o.sizes[d] for o in a.node.outputs]
    name = b.name(x)
    if None not in lengths:
        names = b.op("Split", name, b.ints(*lengths), n=len(lengths), axis=d)
        return [names] if len(lengths) == 1 else names
    if op == "chunk":
        count = a.chunks
        size = b.dim_of(x, d)
        each = b.op("Div", b.op("Add", size, b.const(count - 1, np.int64)),
                    b.const(count, np.int64))  # fmt: skip
    elif op in ("split", "split_with_sizes") and isinstance(
        sizes := next(v for k, v in a.items() if k.startswith("split_size")), (tuple, list)
    ):
        return b.op("Split", name, b.vector(sizes), n=len(lengths), axis=d)
    elif op == "split":
        each = b.scalar(next(v for k, v in a.items() if k.startswith("split_size")), "int64")
    else:
        return _parts(b, a, name, d)
    found = []
    for k in range(len(lengths)):
        start = b.op("Unsqueeze", b.op("Mul", each, b.const(k, np.int64)), b.ints(0))
        end = b.op("Unsqueeze", b.op("Mul", each, b.const(k + 1, np.int64)), b.ints(0))
        found.append(b.op("Slice", name, start, end, b.ints(d)))
    return found


def _parts(b: Builder, a: Any, name: str, d: int) -> list[str]:
    """tensor_split() along a dim: into a number of parts or at places."""
    count = len(a.node.outputs)
    given = [v for k, v in a.items() if k.startswith(("indices", "sections"))]
    where = next((v for v in given if v is not None), None)
    if isinstance(where, (tuple, list)):
        cuts = [b.vector([k]) for k in where]
    elif type(where) is int:  # the first parts are longer by one
        size = b.op("Shape", name, start=d, end=d + 1)
        each = b.op("Div", size, b.ints(where))
        longer = b.op("Mod", size, b.ints(where))
        cuts = [
            b.op("Add", b.op("Mul", each, b.ints(k)), b.op("Min", longer, b.ints(k)))
            for k in range(1, count)
        ]
    else:
        raise OnnxExporterError(
            f"onnx.export: {a.node.op}() at places that a tensor says; write slices, x[a:b]"
        )
    bounds = [b.ints(0), *cuts, b.ints(LAST)]
    return [b.op("Slice", name, i, j, b.ints(d)) for i, j in itertools.pairwise(bounds)]


@lowers("rot90")
def _rot90(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    n, name = rank(x), b.name(x)
    first, second = (d % n for d in a.get("dims", (0, 1)))
    turns = a.get("k", 1) % 4
    over = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[turns]
    if over:
        back = b.ints(*[-1] * len(over))
        name = b.op("Slice", name, back, b.ints(*[-LAST] * len(over)), b.ints(*over), back)
    order = list(range(n))
    if turns % 2:
        order[first], order[second] = second, first
    return transposed(b, name, order)


@lowers("flip", "fliplr", "flipud")
def _flip(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    dims = {"fliplr": (1,), "flipud": (0,)}.get(a.node.op) or a.get("dims")
    dims = [d % rank(x) for d in ([dims] if isinstance(dims, int) else dims)]
    if not dims:
        return b.name(x)
    k = len(dims)
    result: str = b.op(
        "Slice", b.name(x), b.ints(*[-1] * k), b.ints(*[-LAST] * k), b.ints(*dims),
        b.ints(*[-1] * k),
    )  # fmt: skip
    return result


@lowers("roll")
def _roll(b: Builder, a: Any) -> str:
    x = a.node.args[0]
    as_list = lambda v: list(v) if isinstance(v, (tuple, list)) else [v]  # noqa: E731
    shifts, dims = as_list(a.shifts), a.get("dims")
    name = b.name(x)
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        flat = b.op("Reshape", name, b.ints(-1))
        return b.op("Reshape", _rolled(b, flat, shifts[0], 0), b.shape(name), allowzero=1)
    for s, d in zip(shifts, as_list(dims)):
        name = _rolled(b, name, s, d % rank(x))
    return name


def _rolled(b: Builder, name: str, shift: Any, d: int) -> str:
    size = b.op("Squeeze", b.op("Shape", name, start=d, end=d + 1), b.ints(0))
    line = b.op("Range", b.const(0, np.int64), size, b.const(1, np.int64))
    places = b.op("Mod", b.op("Sub", line, b.scalar(shift, "int64")), size)
    result: str = b.op("Gather", name, places, axis=d)
    return result


@lowers("ops.unfold", "Tensor.unfold")
def _windows(b: Builder, a: Any) -> str:
    """Windows along a dim, whose elements become the last dim."""
    x = a.node.args[0]
    d, size, step = a.dimension % max(rank(x), 1), a.get("size"), a.step
    if not rank(x) or isinstance(size, Value) or isinstance(step, Value):
        raise OnnxExporterError("onnx.export: unfold() of a number, or with a size that varies")
    stop = b.op("Sub", b.dim_of(x, d), b.const(size - 1, np.int64))
    starts = b.op("Range", b.const(0, np.int64), stop, b.const(step, np.int64))
    places = b.op("Add", b.op("Unsqueeze", starts, b.ints(1)), b.ints(*range(size)))
    windows = b.op("Gather", b.name(x), places, axis=d)
    order = [*range(d + 1), *range(d + 2, rank(x) + 1), d + 1]
    result: str = b.op("Transpose", windows, perm=order)
    return result


@lowers(
    "diagonal", "diag", "diag_embed", "diagflat", "as_strided", "ops._as_strided",
)  # fmt: skip
def _fixed_places(b: Builder, a: Any) -> str:
    """A view of fixed sizes: the places of its elements are constants."""
    x = a.node.args[0]
    if None in x.sizes and a.node.op in ("diagonal", "diag", "diag_embed", "diagflat"):
        return _diagonal(b, a, x)
    if None in x.sizes or None in a.out.sizes:
        raise OnnxExporterError(f"onnx.export: {a.node.op}() of a tensor whose sizes vary")
    from clew.export._names import function_of

    count = int(np.prod(x.sizes))
    line = clew.arange(count).reshape(x.sizes)
    function = function_of(a.node.op)
    assert function is not None
    if a.node.op in ("diag_embed", "diagflat") or (a.node.op == "diag" and rank(x) == 1):
        made = function(line + 1, *a.node.args[1:], **a.node.kwargs).numpy() - 1
        padded = b.op("Concat", b.op("Reshape", b.name(x), b.ints(-1)), b.op(
            "Reshape", b.scalar(0, x.dtype), b.ints(1)), axis=0)  # fmt: skip
        return b.op("Gather", padded, b.const(np.where(made < 0, count, made)), axis=0)
    places = function(line, *a.node.args[1:], **a.node.kwargs).numpy()
    flat = b.op("Reshape", b.name(x), b.ints(-1))
    result: str = b.op("Gather", flat, b.const(places.astype(np.int64)), axis=0)
    return result


def _diagonal(b: Builder, a: Any, x: Value) -> str:
    """Diagonals, read or made, of sizes that vary."""
    op, n, name = a.node.op, rank(x), b.name(x)
    shift = a.get("offset", a.get("diagonal", 0)) or 0
    zero, one = b.const(0, np.int64), b.const(1, np.int64)
    if op == "diagonal" or (op == "diag" and n == 2):
        d1, d2 = a.get("dim1", 0) % n, a.get("dim2", 1) % n
        rest = [d for d in range(n) if d not in (d1, d2)]
        name = b.op("Transpose", name, perm=[*rest, d1, d2])
        rows = b.op("Sub", b.dim_of(x, d1), b.const(max(-shift, 0), np.int64))
        columns = b.dim_of(x, d2)
        count = b.op("Min", rows, b.op("Sub", columns, b.const(max(shift, 0), np.int64)))
        line = b.op("Range", zero, b.op("Max", count, zero), one)
        places = b.op("Mul", line, b.op("Add", columns, one))
        start = b.op("Mul", b.const(max(-shift, 0), np.int64), columns)
        places = b.op("Add", places, b.op("Add", start, b.const(max(shift, 0), np.int64)))
        flat = b.op("Reshape", name, b.ints(*[0] * (n - 2), -1))
        return str(b.op("Gather", flat, places, axis=n - 2))
    if op == "diagflat":
        name, n = b.op("Reshape", name, b.ints(-1)), 1
    into = a.get("dim1", -2) % (n + 1), a.get("dim2", -1) % (n + 1)
    if op == "diag_embed" and into != (n - 1, n):
        raise OnnxExporterError("onnx.export: diag_embed() of varying sizes into other dims")
    last = b.op("Shape", name, start=n - 1)
    size = b.op("Add", b.op("Squeeze", last, b.ints(0)), b.const(abs(shift), np.int64))
    line = b.op("Range", zero, size, one)
    down = b.op("Unsqueeze", line, b.ints(1))
    on = b.op("Equal", b.op("Sub", line, b.const(shift, np.int64)), down)
    wide = b.op("Unsqueeze", name, b.ints(n - 1))
    pads = [*[0] * n, max(shift, 0), *[0] * n, max(-shift, 0)]
    padded = b.op("Pad", wide, b.ints(*pads))
    return str(b.op("Where", on, padded, b.scalar(0, x.dtype)))
