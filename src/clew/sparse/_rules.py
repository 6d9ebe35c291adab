"""What operations do with sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._C import Tensor
from clew.sparse import _batched, _blocked, _products, _reductions
from clew.sparse._of_dense import at_places
from clew.sparse._tensor import (
    Compressed,
    Coo,
    Pattern,
    _Sparse,
    compressed,
    coo,
    flat_places,
    is_same_pattern,
)


def _dim_of(name: str, x: Any, dim: Any, extra: int = 0) -> int:
    """A dim counted from the front."""
    n = x.dim() + extra
    if not isinstance(dim, int):
        raise TypeError(f"{name}: dim must be an int; got {dim!r}")
    if not -n <= dim < n:
        raise IndexError(f"{name}: dim must be in [{-n}, {n - 1}]; got {dim}")
    return int(dim) % n


# Functions that leave 0 at 0.
_ZERO_STAYS = (
    "abs absolute neg negative sqrt sin tan asin arcsin atan arctan sinh tanh asinh arcsinh atanh "
    "arctanh expm1 log1p relu sign sgn floor ceil round trunc fix frac square erf erfinv deg2rad "
    "rad2deg isnan isinf isposinf isneginf signbit angle positive conj conj_physical"
).split()
# Those of them that may be applied before elements of equal places are added up.
LINEAR = ("neg", "negative", "positive", "conj", "conj_physical")


def _unary(name: str) -> Any:
    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        x = x.coalesce() if isinstance(x, Coo) and name not in LINEAR else x
        return x._with(getattr(Tensor, name)(x._elements, *args, **kwargs))

    return rule


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) or (type(x) is Tensor and x.dim() == 0)


def to_dense(x: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    values = x._elements if dtype is None else x._elements.to(dtype)
    zeros = values.new_zeros(tuple(x.shape))
    if isinstance(x, Coo):
        if not x.sparse_dim():
            return values.sum(0, dtype=values.dtype)
        return zeros.index_put(tuple(x._ind.unbind(0)), values, accumulate=True)
    p = x._pattern
    places = (p.rows(), p.col.long()) if x._by_rows else (p.col.long(), p.rows())
    return zeros.index_put(places, values)


def to_coo(x: Any, sparse_dim: Any = None) -> Coo:
    if isinstance(x, Coo):
        if sparse_dim is not None and int(sparse_dim) != x.sparse_dim():
            return NotImplemented
        return x
    if sparse_dim is not None and int(sparse_dim) != 2:
        return NotImplemented
    p = x.pattern()
    made = coo(clew.stack([p.rows(), p.col.long()]), x.row_values(), x.shape, True)
    made._pattern = p
    return made


def to_csr(x: Any, dense_dim: Any = None) -> Compressed:
    if dense_dim is not None and int(dense_dim) != x.dense_dim():
        return NotImplemented
    if isinstance(x, Compressed):
        return x if x._by_rows else compressed(x.pattern(), x.row_values(), True)
    if x.sparse_dim() != 2:
        return NotImplemented
    x = x.coalesce()
    return compressed(x.pattern(), x._elements, True)


def to_csc(x: Any, dense_dim: Any = None) -> Any:
    if dense_dim is not None and int(dense_dim) != x.dense_dim():
        return NotImplemented
    if isinstance(x, Compressed) and not x._by_rows:
        return x
    rows = to_csr(x)
    if rows is NotImplemented:
        return rows
    turned, order = rows._pattern.turned()
    return compressed(turned, rows._elements.index_select(0, order), False)


def to_sparse(
    x: Any,
    *args: Any,
    layout: Any = None,
    sparse_dim: Any = None,
    dense_dim: Any = None,
    blocksize: Any = None,
) -> Any:
    if layout in (_dtypes.sparse_bsr, _dtypes.sparse_bsc) and blocksize is not None:
        by_rows = layout is _dtypes.sparse_bsr
        return (x.to_sparse_bsr if by_rows else x.to_sparse_bsc)(blocksize, dense_dim)
    if blocksize is not None:
        return NotImplemented
    if dense_dim is not None and int(dense_dim) != x.dense_dim():
        return NotImplemented
    if layout is None or layout is _dtypes.sparse_coo:
        return to_coo(x, *(args or (sparse_dim,)))
    if layout is _dtypes.strided:
        return to_dense(x)
    if layout is _dtypes.sparse_csr:
        return to_csr(x)
    return to_csc(x) if layout is _dtypes.sparse_csc else NotImplemented


def _as_layout_of(x: Coo, like: Any) -> Any:
    if isinstance(like, Coo):
        return x
    return to_csr(x) if like._by_rows else to_csc(x)


def _scaled(values: Tensor, alpha: Any) -> Tensor:
    return values if alpha == 1 else values * alpha


def add(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    if isinstance(x, _Sparse) and isinstance(y, _Sparse):
        if tuple(x.shape) != tuple(y.shape):
            raise RuntimeError(
                f"add: sparse tensors must have one shape; got {list(x.shape)} and {list(y.shape)}"
            )
        if x.layout is y.layout and is_same_pattern(x, y):
            return x._with(x._elements + _scaled(y._elements, alpha))
        a, b = to_coo(x), to_coo(y)
        if a.sparse_dim() != b.sparse_dim():
            return NotImplemented
        dtype = clew.result_type(a._elements, b._elements)
        values = [a._elements.to(dtype), _scaled(b._elements, alpha).to(dtype)]
        made = coo(clew.cat([a._ind, b._ind], 1), clew.cat(values), x.shape, False).coalesce()
        return _as_layout_of(made, x)
    dense, sparse = (x, y) if isinstance(y, _Sparse) else (y, x)
    if not isinstance(dense, Tensor) or tuple(dense.shape) != tuple(sparse.shape):
        return NotImplemented
    return clew.add(
        to_dense(x) if sparse is x else x, to_dense(y) if sparse is y else y, alpha=alpha
    )


def sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(y, (Tensor, int, float, complex)):
        return NotImplemented
    if isinstance(y, Tensor) and _C.bool in (x.dtype, y.dtype):
        clew.sub(clew.empty(0, dtype=x.dtype), clew.empty(0, dtype=y.dtype))  # raises
    return add(x, y, alpha=-alpha)


def mul(x: Any, y: Any) -> Any:
    if _is_number(x):
        x, y = y, x
    if _is_number(y):
        return x._with(x._elements * y)
    if isinstance(x, _Sparse) and isinstance(y, _Sparse):
        if tuple(x.shape) != tuple(y.shape):
            return NotImplemented
        a = x.coalesce() if isinstance(x, Coo) else x
        b = y.coalesce() if isinstance(y, Coo) else y
        if a.layout is b.layout and is_same_pattern(a, b):
            return a._with(a._elements * b._elements)
        a, b = to_coo(a), to_coo(b)
        if a.sparse_dim() != b.sparse_dim():
            return NotImplemented
        sizes = tuple(a.shape[: a.sparse_dim()])
        p, q = flat_places(a._ind, sizes).numpy(), flat_places(b._ind, sizes).numpy()
        _, i, j = np.intersect1d(p, q, assume_unique=True, return_indices=True)
        at, to = clew.from_numpy(i), clew.from_numpy(j)
        values = a._elements.index_select(0, at) * b._elements.index_select(0, to)
        return _as_layout_of(coo(a._ind.index_select(1, at), values, x.shape, True), x)
    sparse, dense = (x, y) if isinstance(x, _Sparse) else (y, x)
    if not isinstance(dense, Tensor):
        return NotImplemented
    if tuple(dense.shape) != tuple(sparse.shape):
        shape = tuple(clew.broadcast_shapes(dense.shape, sparse.shape))
        if shape != tuple(sparse.shape):
            if not isinstance(sparse, Coo):
                return NotImplemented
            sparse = _expanded(sparse, shape)
        dense = dense.expand(shape)
    return sparse._with(sparse._elements * at_places(dense, sparse))


def _expanded(x: Coo, shape: tuple[int, ...]) -> Coo:
    """A tensor in coordinates, its elements once for each place that they are broadcast to."""
    x = x.coalesce()
    more = len(shape) - x.dim()
    sparse = more + x.sparse_dim()
    values = x._elements.expand(-1, *shape[sparse:])
    ind = clew.cat([x._ind.new_zeros((more, x._nnz())), x._ind])
    sizes = [1] * more + list(x.shape[: x.sparse_dim()])
    grown = [d for d in range(sparse) if sizes[d] != shape[d]]
    for d in reversed(grown):
        n = ind.shape[1]
        ind = ind.repeat(1, shape[d])
        ind[d] = clew.arange(shape[d]).repeat_interleave(n)
        values = values.repeat(shape[d], *[1] * (values.dim() - 1))
    rising = not grown or grown[-1] < more
    made = coo(ind, values, shape, rising)
    return made if rising else made.coalesce()


def div(x: Any, y: Any, *, rounding_mode: Any = None) -> Any:
    if not isinstance(x, _Sparse) or not _is_number(y) or rounding_mode is not None:
        return NotImplemented
    return x._with(x._elements / y)


def power(x: Any, exponent: Any) -> Any:
    if not isinstance(x, _Sparse) or not isinstance(exponent, (int, float)) or not exponent:
        return NotImplemented
    x = x.coalesce() if isinstance(x, Coo) else x
    return x._with(x._elements**exponent)


def mul_(x: Any, y: Any) -> Any:
    if not isinstance(x, _Sparse) or not _is_number(y):
        return NotImplemented
    x._elements.mul_(y)
    return x


def div_(x: Any, y: Any) -> Any:
    if not isinstance(x, _Sparse) or not _is_number(y):
        return NotImplemented
    x._elements.div_(y)
    return x


def copy_(x: Any, source: Any, non_blocking: bool = False) -> Any:
    """The places of the source are copied, too, as in PyTorch; its gradient gets what x's gets."""
    if not (isinstance(x, _Sparse) and isinstance(source, _Sparse)):
        raise RuntimeError(
            f"copy_: a dense tensor and a sparse one cannot be copied into each other; got "
            f"{x.layout} and {source.layout}; convert with .to_dense() or .to_sparse()"
        )
    if x.layout is not source.layout or tuple(x.shape) != tuple(source.shape):
        raise RuntimeError(
            "copy_: sparse tensors must have one layout and one shape; got "
            f"{x.layout} of shape {list(x.shape)} and {source.layout} of {list(source.shape)}"
        )
    if is_same_pattern(x, source):
        x._elements.copy_(source._elements)
        return x
    if x.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(
            "copy_: a sparse tensor that requires grad gets other places under no_grad only"
        )
    values = source._elements.to(x.dtype, copy=True)
    x._elements = values.requires_grad_() if x.requires_grad else values
    if isinstance(x, Coo) and isinstance(source, Coo):
        x._ind, x._coalesced, x._pattern = source._ind.clone(), source._coalesced, None
    elif isinstance(x, Compressed) and isinstance(source, Compressed):
        x._pattern = source._pattern
    return x


def requires_grad_off(x: Any) -> Any:
    x._elements = x._elements.detach()
    return x


def zero_(x: Any) -> Any:
    x._elements.zero_()
    return x


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    a, b = _dim_of("transpose", x, dim0), _dim_of("transpose", x, dim1)
    if a == b:
        return x
    if isinstance(x, Compressed):
        if max(a, b) > 1:
            return NotImplemented
        return compressed(x._pattern, x._elements, not x._by_rows)
    if max(a, b) >= x.sparse_dim():
        return NotImplemented
    order, shape = list(range(x.sparse_dim())), list(x.shape)
    order[a], order[b] = order[b], order[a]
    shape[a], shape[b] = shape[b], shape[a]
    return coo(x._ind[order], x._elements, shape, x._nnz() < 2)


def permute(x: Any, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    n, sparse = x.dim(), x.sparse_dim()
    if any(not -n <= d < n for d in given) or sorted(d % n for d in given) != list(range(n)):
        raise RuntimeError(f"permute: dims must name each of {n} dims once; got {list(given)}")
    order = [d % n for d in given]
    if isinstance(x, Compressed):
        return x if order == [0, 1] else transpose(x, 0, 1)
    if order[sparse:] != list(range(sparse, n)):  # mixes sparse dims and dense ones
        return NotImplemented
    if order == list(range(n)):
        return x
    return coo(x._ind[order[:sparse]], x._elements, [x.shape[d] for d in order], x._nnz() < 2)


def t(x: Any) -> Any:
    if x.dim() < 2:
        return x
    return transpose(x, 0, 1) if x.dim() == 2 else NotImplemented


def index_select(x: Any, dim: int, index: Tensor) -> Any:
    dim = _dim_of("index_select", x, dim)
    if index.dim() != 1 or index.dtype not in (_C.int64, _C.int32):
        raise IndexError(
            "index_select: index must be a vector of int64 or int32; got "
            f"{index.dtype} of shape {list(index.shape)}"
        )
    if isinstance(x, Compressed):
        if index.numel() and int(index.min()) < 0:
            raise IndexError(f"index_select: index must not be negative; got {index.tolist()}")
        return _as_layout_of(index_select(to_coo(x), dim, index).coalesce(), x)
    shape = [*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]]
    if dim >= x.sparse_dim():
        values = x._elements.index_select(dim - x.sparse_dim() + 1, index)
        return coo(x._ind, values, shape, x._coalesced)
    wanted = index.long().numpy()
    size = int(x.shape[dim])
    if wanted.size and (wanted.min() < -size or wanted.max() >= size):
        raise IndexError(f"index_select: index must be in [{-size}, {size}); got {wanted.tolist()}")
    wanted = np.where(wanted < 0, wanted + size, wanted)
    # Each element meets all the places of the index that name its coordinate.
    order = np.argsort(wanted, kind="stable")
    rising, own = wanted[order], x._ind[dim].numpy()
    starts = np.searchsorted(rising, own)
    counts = np.searchsorted(rising, own, "right") - starts
    element = np.repeat(np.arange(len(own)), counts)
    first = np.cumsum(counts) - counts
    place = order[np.arange(len(element)) - np.repeat(first - starts, counts)]
    by_place = np.argsort(place, kind="stable")  # the order of PyTorch's elements
    element, place = element[by_place], place[by_place]
    ind = x._ind.numpy()[:, element]
    ind[dim] = place
    values = x._elements.index_select(0, clew.from_numpy(element))
    return coo(clew.from_numpy(ind), values, shape, values.shape[0] < 2)


def select(x: Any, dim: int, index: int) -> Any:
    dim = _dim_of("select", x, dim)
    size = int(x.shape[dim])
    if not -size <= index < size:
        raise IndexError(f"select: index {index} is out of range for dim {dim} of size {size}")
    part = narrow(to_coo(x), dim, index % size, 1)
    shape = [*x.shape[:dim], *x.shape[dim + 1 :]]
    if dim >= part.sparse_dim():
        values = part._elements.squeeze(dim - part.sparse_dim() + 1)
        return coo(part._ind, values, shape, part._coalesced)
    rest = [d for d in range(part.sparse_dim()) if d != dim]
    if not rest:
        return part._elements.sum(0, dtype=x.dtype)
    return coo(part._ind[rest], part._elements, shape, part._coalesced or part._nnz() < 2)


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    dim = _dim_of("narrow", x, dim)
    if start < 0 or length < 0 or start + length > x.shape[dim]:
        raise RuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dim {dim} of size {x.shape[dim]}"
        )
    return _steps(x, dim, start, start + length, 1)


def _steps(x: Any, dim: int, start: int, stop: int, step: int) -> Any:
    if isinstance(x, Compressed):
        return _as_layout_of(_steps(to_coo(x), dim, start, stop, step), x)
    length = len(range(start, stop, step))
    shape = [*x.shape[:dim], length, *x.shape[dim + 1 :]]
    if dim >= x.sparse_dim():
        index = clew.arange(start, stop, step)
        return coo(
            x._ind, x._elements.index_select(dim - x.sparse_dim() + 1, index), shape, x._coalesced
        )
    own = x._ind[dim]
    keep = ((own >= start) & (own < stop) & ((own - start) % step == 0)).nonzero()[:, 0]
    ind = x._ind.index_select(1, keep)
    ind[dim] = (ind[dim] - start) // step
    return coo(ind, x._elements.index_select(0, keep), shape, x._coalesced)


def _is_place(key: Any) -> bool:
    """Whether a key names one place of a dim."""
    if isinstance(key, int):
        return not isinstance(key, bool)
    return type(key) is Tensor and not key.dim() and key.dtype in (_C.int64, _C.int32)


def getitem(x: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    if any(k is Ellipsis for k in keys):
        at = [k is Ellipsis for k in keys].index(True)
        fill = x.dim() - (sum(k is not None for k in keys) - 1)
        keys = (*keys[:at], *[slice(None)] * fill, *keys[at + 1 :])
    if sum(k is not None for k in keys) > x.dim():
        raise IndexError(f"too many indices for a tensor of {x.dim()} dims")
    dim = 0
    for i, k in enumerate(keys):
        if k is None:
            x = unsqueeze(x, dim)
            if x is NotImplemented:
                return x
            dim += 1
        elif isinstance(k, slice):
            start, stop, step = k.indices(int(x.shape[dim]))
            if step < 1:
                return NotImplemented
            if (start, step) != (0, 1) or stop < x.shape[dim]:
                x = _steps(x, dim, start, max(start, stop), step)
            dim += 1
        elif _is_place(k):
            x = select(x, dim, int(k))
            if not isinstance(x, _Sparse):  # an element, which may be a dense tensor
                return x[keys[i + 1 :]] if keys[i + 1 :] else x
        elif type(k) is Tensor and k.dim() == 1 and k.dtype in (_C.int64, _C.int32):
            if sum(isinstance(other, Tensor) for other in keys) > 1:
                return NotImplemented
            wanted = clew.where(k < 0, k + int(x.shape[dim]), k)
            x = index_select(x, dim, wanted)
            dim += 1
        else:
            return NotImplemented
    return x


def cat(tensors: Any, dim: int = 0) -> Any:
    if not all(isinstance(x, Coo) for x in tensors):
        return NotImplemented
    first = tensors[0]
    dim = _dim_of("cat", first, dim)
    shape, inds = list(first.shape), []
    shape[dim] = 0
    for x in tensors:
        rest = [n for d, n in enumerate(x.shape) if d != dim]
        if rest != [n for d, n in enumerate(shape) if d != dim] or (
            x.sparse_dim() != first.sparse_dim()
        ):
            raise RuntimeError("cat: sparse tensors must agree in all dims but the one joined")
        ind = x._ind.clone()
        if dim < first.sparse_dim():
            ind[dim] += shape[dim]
        inds.append(ind)
        shape[dim] += int(x.shape[dim])
    parts = [x._elements for x in tensors]
    if dim >= first.sparse_dim():  # each element gets zeros where the others' elements lie
        behind, after = 0, 2 * (len(shape) - dim - 1)
        for i, (x, part) in enumerate(zip(tensors, parts)):
            end = behind + int(x.shape[dim])
            pad = [0] * after + [behind, shape[dim] - end]
            parts[i], behind = clew.nn.functional.pad(part, pad), end
    values = clew.cat(parts)
    return coo(clew.cat(inds, 1), values, shape, values.shape[0] < 2)


def sparse_mask(x: Any, mask: Any) -> Any:
    if isinstance(x, _Sparse):
        return _masked(x, mask)
    from clew.sparse._of_dense import sparse_mask as of_dense

    return of_dense(x, mask)


def _masked(x: Any, mask: Any) -> Any:
    """Of a tensor in coordinates the elements at the places of another, zeros where there is none;
    of compressed ones, those at places that both have.
    """
    if isinstance(x, Compressed) and isinstance(mask, Compressed) and x.layout is mask.layout:
        return mul(x, mask._with(clew.ones_like(mask._elements, dtype=x.dtype)))
    if isinstance(x, _blocked.Blocked) and x is mask:
        return x._with(x._elements)
    if isinstance(x, Coo) and isinstance(mask, Compressed):
        return _as_layout_of(_masked(x, to_coo(mask)), mask)
    if isinstance(x, Coo) and isinstance(mask, _blocked.Blocked):
        places = coo(_blocked.places_of(mask), mask._elements.flatten(0, 2), mask.shape, False)
        return mask._with(_masked(x, places)._elements.reshape_as(mask._elements))
    if not isinstance(x, Coo) or not isinstance(mask, Coo):
        return NotImplemented
    if x._ind is mask._ind and tuple(x.shape) == tuple(mask.shape):
        return x._with(x._elements)  # also where a place is named twice
    if tuple(x.shape) != tuple(mask.shape) or x.sparse_dim() != mask.sparse_dim():
        raise RuntimeError(
            "sparse_mask: the tensor and the mask must have one shape and as many sparse dims; got "
            f"{list(x.shape)} with {x.sparse_dim()} and {list(mask.shape)} with "
            f"{mask.sparse_dim()}"
        )
    x, sizes = x.coalesce(), tuple(x.shape[: x.sparse_dim()])
    own, wanted = flat_places(x._ind, sizes).numpy(), flat_places(mask._ind, sizes).numpy()
    at = np.minimum(np.searchsorted(own, wanted), max(len(own) - 1, 0))
    to = np.flatnonzero(own[at] == wanted) if len(own) else np.zeros(0, np.int64)
    zeros = x._elements.new_zeros((len(wanted), *x._elements.shape[1:]))
    found = x._elements.index_select(0, clew.from_numpy(at[to].astype(np.int64)))
    return mask._with(zeros.index_copy(0, clew.from_numpy(to), found))


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
    if dim is not None or keepdim or ord < 0:
        return NotImplemented
    x = x.coalesce() if isinstance(x, Coo) else x
    return clew.linalg.vector_norm(x._elements, ord, **more)


def norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return vector_norm(x, 2 if p == "fro" else p, dim, keepdim, dtype=dtype)


def zeros_like(x: Any, *, dtype: Any = None, layout: Any = None, **options: Any) -> Any:
    if any(v not in (None, False) for v in options.values()):
        return NotImplemented
    values = x._elements.detach().new_zeros((0, *x._elements.shape[1:]), dtype=dtype)
    if layout is _dtypes.strided and isinstance(x, Coo):
        return values.new_zeros(tuple(x.shape))
    if layout not in (None, x.layout):
        return NotImplemented
    if isinstance(x, Coo):
        return coo(x._ind.new_zeros((x.sparse_dim(), 0)), values, x.shape, True)
    p = x._pattern
    empty = Pattern(clew.zeros_like(p.crow), p.col[:0], p.shape)
    make = _blocked.blocked if isinstance(x, _blocked.Blocked) else compressed
    return make(empty, values, x._by_rows)


def unsqueeze(x: Any, dim: int) -> Any:
    if not isinstance(x, Coo):
        return NotImplemented
    dim = _dim_of("unsqueeze", x, dim, 1)
    if dim > x.sparse_dim():
        values = x._elements.unsqueeze(dim - x.sparse_dim() + 1)
        return coo(x._ind, values, [*x.shape[:dim], 1, *x.shape[dim:]], x._coalesced)
    row = x._ind.new_zeros((1, x._nnz()))
    ind = clew.cat([x._ind[:dim], row, x._ind[dim:]])
    return coo(ind, x._elements, [*x.shape[:dim], 1, *x.shape[dim:]], x._coalesced)


RULES: dict[str, Any] = {
    **{name: _unary(name) for name in _ZERO_STAYS if hasattr(Tensor, name)},
    "to_dense": to_dense,
    "to_sparse": to_sparse,
    "to_sparse_coo": to_coo,
    "to_sparse_csr": to_csr,
    "to_sparse_csc": to_csc,
    **_blocked.block_rules(),
    "sparse_mask": sparse_mask,
    "add": add,
    "__radd__": lambda x, y: add(y, x),
    "sub": sub,
    "subtract": sub,
    "__rsub__": lambda x, y: add(y, x, alpha=-1) if isinstance(y, Tensor) else NotImplemented,
    "mul": mul,
    "multiply": mul,
    "div": div,
    "divide": div,
    "true_divide": div,
    "pow": power,
    "mul_": mul_,
    "div_": div_,
    "copy_": copy_,
    "zero_": zero_,
    "detach_": requires_grad_off,
    "transpose": transpose,
    "swapaxes": transpose,
    "permute": permute,
    "t": t,
    "index_select": index_select,
    "select": select,
    "narrow": narrow,
    "__getitem__": getitem,
    "cat": cat,
    "unsqueeze": unsqueeze,
    "vector_norm": vector_norm,
    "norm": norm,
    "zeros_like": zeros_like,
    **_products.RULES,
    **_reductions.RULES,
}
_Sparse._rules = RULES
_blocked.Blocked._rules = _blocked.rules(
    RULES, tuple(name for name in _ZERO_STAYS if hasattr(Tensor, name))
)
_batched.Batched._rules = _batched.rules(
    RULES, tuple(name for name in _ZERO_STAYS if hasattr(Tensor, name))
)
