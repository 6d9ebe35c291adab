"""Making sparse tensors of their parts."""

from __future__ import annotations

import math
from contextlib import ContextDecorator
from typing import Any

import numpy as np

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import is_structured, need_bools
from clew._base.overriding import asks_classes
from clew._C import Tensor
from clew.sparse._batched import batched
from clew.sparse._blocked import Blocked, blocked
from clew.sparse._products import need_tensors
from clew.sparse._tensor import Compressed, Coo, Pattern, compressed, constructors, coo, index_names

__all__ = [
    "check_sparse_tensor_invariants",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spdiags",
]


def _as_indices(name: str, what: str, given: Any, narrow: bool) -> Tensor:
    """Indices as a tensor without history, int64; int32 stays where that is an index type."""
    made = given.detach() if isinstance(given, Tensor) else clew.tensor(np.asarray(given).tolist())
    if made.is_meta:
        raise RuntimeError(f"{name}: {what} must be on the CPU, where they are read; got meta")
    if made.is_floating_point() or made.is_complex() or made.dtype is _C.bool:
        if made.numel():
            raise TypeError(f"{name}: {what} must hold integers; got {made.dtype}")
        made = made.long()
    if made.dtype is _C.int64 or (narrow and made.dtype is _C.int32):
        return made
    return made.long()


def _as_values(name: str, given: Any, dtype: Any, requires_grad: bool) -> Tensor:
    need_bools(name, requires_grad=requires_grad)
    made = given if isinstance(given, Tensor) else clew.tensor(given)
    if type(made) is not Tensor and is_structured(made):
        raise TypeError(f"{name}: values must be a dense tensor; got {made.layout}")
    if dtype is not None:
        made = made.to(dtype)
    return made.detach().requires_grad_() if requires_grad else made


def _check_options(name: str, device: Any, layout: Any, wanted: Any) -> None:
    if device is not None and _C.device(device).type != "cpu":
        raise NotImplementedError(f"{name}: sparse tensors are on the CPU; got device {device}")
    if layout is not None and layout is not wanted:
        raise ValueError(f"{name}: layout must be {wanted}; got {layout}")


def _check_size(name: str, shape: tuple[int, ...]) -> None:
    """Refuses a size whose places cannot be counted; how many bytes they would take dense does not
    matter.
    """
    if any(n < 0 for n in shape):
        raise RuntimeError(f"{name}: size must not be negative; got {list(shape)}")
    if math.prod(n for n in shape if n) >= 2**63:
        raise RuntimeError(
            f"{name}: size must have fewer than 2**63 elements, which an int64 can count; got "
            f"{list(shape)}"
        )


class check_sparse_tensor_invariants(ContextDecorator):
    """A switch, context manager and decorator without effect. In PyTorch it says whether the parts
    of sparse tensors are checked when these are made; clew always checks them.

    Args:
        enable: without effect.

    >>> clew.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        pass

    @staticmethod
    def is_enabled() -> bool:
        """True: parts are always checked."""
        return True

    @staticmethod
    def enable() -> None:
        """Without effect: parts are always checked."""

    @staticmethod
    def disable() -> None:
        """Without effect: parts are always checked."""

    def __enter__(self) -> check_sparse_tensor_invariants:
        return self

    def __exit__(self, *error: object) -> None:
        pass


@asks_classes
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    layout: Any = None,
) -> Coo:
    """A sparse tensor in coordinates (COO).

    Element ``k`` lies at ``indices[:, k]``; elements of equal places add up.

    Args:
        indices: (sparse dims, elements), integers; or the size of a tensor without elements; or
            None, if ``size`` is that.
        values: (elements, *dense dims).
        size: the tensor's; without it the least that the indices fit in.
        dtype: of the values; default: theirs.
        device: None or "cpu".
        pin_memory: without effect.
        requires_grad: whether the tensor is a leaf that gets a gradient.
        check_invariants: indices are always checked.
        is_coalesced: True asserts that places are sorted and named once, which is checked.
        layout: None or clew.sparse_coo.

    Returns:
        a sparse tensor; gradients flow to ``values``.

    Raises:
        RuntimeError: shapes do not fit, an index is out of range.

    >>> clew.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    name = "sparse_coo_tensor"
    _check_options(name, device, layout, _dtypes.sparse_coo)
    if is_coalesced is not None:
        need_bools(name, is_coalesced=is_coalesced)
    if values is None:
        if (indices is None) is (size is None):
            raise TypeError(
                f"{name}: without values, either indices or size must be given, the size"
            )
        shape = tuple(int(n) for n in (size if indices is None else indices))
        _check_size(name, shape)
        ind = clew.zeros((len(shape), 0), dtype=_C.int64)
        made = clew.zeros(0, dtype=dtype, requires_grad=requires_grad)
        return coo(ind, made, shape, True)
    ind = _as_indices(name, "indices", indices, False)
    val = _as_values(name, values, dtype, requires_grad)
    if ind.dim() == 1 and ind.numel() == 0:
        ind = ind.reshape(len(size) if size is not None else 1, 0)
    if ind.dim() != 2:
        raise RuntimeError(
            f"{name}: indices must be a matrix, a row for each sparse dim; got shape "
            f"{list(ind.shape)}"
        )
    if val.dim() < 1 or val.shape[0] != ind.shape[1]:
        raise RuntimeError(
            f"{name}: indices and values must have the same number of elements; got "
            f"{ind.shape[1]} columns of indices and values of shape {list(val.shape)}"
        )
    flat = ind.numpy()
    rows = ind.shape[0]
    if size is None:
        found = [n + 1 for n in flat.max(1).tolist()] if flat.shape[1] else [0] * rows
        shape = (*found, *val.shape[1:])
    else:
        shape = tuple(int(n) for n in size)
    _check_size(name, shape)
    if len(shape) != rows + val.dim() - 1:
        raise RuntimeError(
            f"{name}: size must have a number for each of {rows} sparse dims and "
            f"{val.dim() - 1} dense ones; got {list(shape)}"
        )
    if tuple(shape[rows:]) != tuple(val.shape[1:]):
        raise RuntimeError(
            f"{name}: values must have shape {['nnz', *shape[rows:]]} for size {list(shape)}; got "
            f"{list(val.shape)}"
        )
    for d in range(rows):
        if not flat.shape[1]:
            break
        low, high = int(flat[d].min()), int(flat[d].max())
        if low < 0 or high >= shape[d]:
            raise RuntimeError(
                f"{name}: size is inconsistent with indices: for dim {d}, size is {shape[d]} but "
                f"found index {low if low < 0 else high}"
            )
    made_coo = coo(ind, val, shape, False)
    if is_coalesced or ind.shape[1] < 2:
        from clew.sparse._tensor import is_sorted

        made_coo._coalesced = is_sorted(made_coo)
        if is_coalesced and not made_coo._coalesced:
            raise RuntimeError(f"{name}: is_coalesced=True, but places are not sorted and distinct")
    return made_coo


def _compressed(
    name: str, by_rows: bool, crow: Any, col: Any, values: Any, size: Any, **options: Any
) -> Any:
    one, other = index_names(by_rows)
    c, o = _as_indices(name, one, crow, True), _as_indices(name, other, col, True)
    val = _as_values(name, values, options["dtype"], options["requires_grad"])
    _check_options(
        name,
        options["device"],
        options["layout"],
        _dtypes.sparse_csr if by_rows else _dtypes.sparse_csc,
    )
    if c.dtype is not o.dtype:
        raise RuntimeError(
            f"{name}: {one} and {other} must have the same dtype; got {c.dtype} and {o.dtype}"
        )
    batch = tuple(c.shape[:-1])
    if not c.dim() or tuple(o.shape[:-1]) != batch or tuple(val.shape[: len(batch)]) != batch:
        raise RuntimeError(
            f"{name}: {one}, {other} and values must be vectors, or have the same batch dims; got "
            f"shapes {list(c.shape)}, {list(o.shape)} and {list(val.shape)}"
        )
    if not c.numel():
        raise RuntimeError(f"{name}: {one} must have at least one element")
    if val.dim() < o.dim() or val.shape[len(batch)] != o.shape[-1]:
        raise RuntimeError(
            f"{name}: {other} and values must have the same number of elements; got "
            f"shapes {list(o.shape)} and {list(val.shape)}"
        )
    dense = tuple(val.shape[len(batch) + 1 :])
    if size is None:
        places = o.numpy()
        shape: tuple[int, ...] = (c.shape[-1] - 1, int(places.max()) + 1 if places.size else 0)
    else:
        sizes = tuple(int(n) for n in size)
        _check_size(name, sizes)
        shape = sizes[len(batch) : len(batch) + 2]
        if len(shape) != 2 or sizes[: len(batch)] != batch or sizes[len(batch) + 2 :] != dense:
            raise RuntimeError(
                f"{name}: size must be {[*batch, 'rows', 'columns', *dense]} for values of shape "
                f"{list(val.shape)}; got {list(sizes)}"
            )
        shape = shape if by_rows else shape[::-1]
    if not batch:
        return compressed(_pattern(name, by_rows, c, o, (shape[0], shape[1])), val, by_rows)
    patterns = [
        _pattern(name, by_rows, starts, places, (shape[0], shape[1]))
        for starts, places in zip(c.flatten(0, -2).unbind(0), o.flatten(0, -2).unbind(0))
    ]
    return batched(patterns, c, o, val, by_rows)


def _pattern(name: str, by_rows: bool, c: Tensor, o: Tensor, shape: tuple[int, int]) -> Pattern:
    """The pattern of one matrix, of which everything is checked."""
    one, other = index_names(by_rows)
    starts, places = c.numpy(), o.numpy()
    if len(starts) != shape[0] + 1:
        raise RuntimeError(
            f"{name}: {one} must have {shape[0] + 1} elements, one more than there are "
            f"{'rows' if by_rows else 'columns'}; got {len(starts)}"
        )
    if starts[0] != 0:
        raise RuntimeError(f"{name}: {one}[0] must be 0; got {starts[0]}")
    if (np.diff(starts) < 0).any():
        at = int(np.argmax(np.diff(starts) < 0))
        raise RuntimeError(
            f"{name}: {one} must not decrease; got {starts[at]} before {starts[at + 1]}"
        )
    if starts[-1] != len(places):
        raise RuntimeError(
            f"{name}: {one}[-1] must be the number of elements, {len(places)}; got {starts[-1]}"
        )
    if places.size and (places.min() < 0 or places.max() >= shape[1]):
        bad = places.min() if places.min() < 0 else places.max()
        raise RuntimeError(f"{name}: {other} must be in [0, {shape[1]}); got {bad}")
    falls = places[1:] <= places[:-1]
    inner = np.ones(len(falls), bool)
    ends = starts[1:-1]
    inner[ends[(ends > 0) & (ends < len(places))] - 1] = False
    if (falls & inner).any():
        raise RuntimeError(
            f"{name}: {other} must rise within each {'row' if by_rows else 'column'} and be "
            "distinct"
        )
    return Pattern(c, o, shape)


@asks_classes
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    layout: Any = None,
) -> Compressed:
    """A sparse matrix in compressed rows (CSR).

    Row ``r`` has the elements ``crow_indices[r]`` to ``crow_indices[r + 1] - 1``.

    Args:
        crow_indices: (*batch, rows + 1), int64 or int32: where each row begins, and the last one
            ends.
        col_indices: (*batch, elements), the column of each; they rise within a row.
        values: (*batch, elements, *dense dims).
        size: (*batch, rows, columns, *dense dims); without it the least that the indices fit in.
        dtype: of the values; default: theirs.
        device: None or "cpu".
        pin_memory: without effect.
        requires_grad: whether the matrix is a leaf that gets a gradient.
        check_invariants: indices are always checked.
        layout: None or clew.sparse_csr.

    Returns:
        a sparse matrix, or a batch of them, over the tensors given; gradients flow to ``values``.

    Raises:
        RuntimeError: shapes do not fit, offsets decrease, an index is out of range.

    >>> clew.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _compressed(
        "sparse_csr_tensor",
        True,
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        layout=layout,
    )


@asks_classes
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    layout: Any = None,
) -> Compressed:
    """A sparse matrix in compressed columns (CSC).

    Args:
        ccol_indices: (*batch, columns + 1), int64 or int32: where each column begins, and the
            last one ends.
        row_indices: (*batch, elements), the row of each; they rise within a column.
        values: (*batch, elements, *dense dims).
        size: (*batch, rows, columns, *dense dims); without it the least that the indices fit in.
        dtype, device, pin_memory, requires_grad, check_invariants: as for
            :func:`sparse_csr_tensor`.
        layout: None or clew.sparse_csc.

    Returns:
        a sparse matrix, or a batch of them, over the tensors given; gradients flow to ``values``.

    Raises:
        RuntimeError: shapes do not fit, offsets decrease, an index is out of range.

    >>> clew.sparse_csc_tensor([0, 1, 1, 2], [1, 0], [4.0, 3.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _compressed(
        "sparse_csc_tensor",
        False,
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        layout=layout,
    )


def _of_blocks(
    name: str, by_rows: bool, ends: Any, places: Any, values: Any, size: Any, **options: Any
) -> Blocked:
    """A matrix of blocks: a matrix of places for blocks, whose elements are two dims and those of
    each number.
    """
    wanted = _dtypes.sparse_bsr if by_rows else _dtypes.sparse_bsc
    _check_options(name, options["device"], options.pop("layout"), wanted)
    values = _as_values(name, values, options["dtype"], options["requires_grad"])
    options.update(dtype=None, requires_grad=False, layout=None)
    ends = _as_indices(name, index_names(by_rows)[0], ends, True)
    if values.dim() < 3 or ends.dim() > 1:
        raise NotImplementedError(
            f"{name}: expected values of shape [blocks, rows, columns, *dense dims] and vectors of "
            f"indices; got {list(values.shape)} and {list(ends.shape)}; batches of such matrices "
            "are not offered"
        )
    grid = None
    if size is not None:
        sizes, (a, b, *rest) = tuple(int(n) for n in size), (int(n) for n in values.shape[1:])
        fits = len(sizes) == 2 + len(rest) and list(sizes[2:]) == rest and a and b
        if not fits or sizes[0] % a or sizes[1] % b:
            raise RuntimeError(
                f"{name}: size must be two multiples of the blocks' size, [{a}, {b}], and the "
                f"dense dims, {rest}; got {list(sizes)}"
            )
        grid = (sizes[0] // a, sizes[1] // b, a, b, *rest)
    made = _compressed(name, by_rows, ends, places, values, grid, **options)
    return blocked(made._pattern, made._elements, by_rows)


@asks_classes
def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    layout: Any = None,
) -> Blocked:
    """A sparse matrix of dense blocks in compressed rows of blocks (BSR).

    Args:
        crow_indices: (rows of blocks + 1), int64 or int32: where each row of blocks begins, and the
            last one ends.
        col_indices: (blocks), in which column of blocks each is; they rise within a row.
        values: (blocks, rows of a block, columns of a block, *dense dims).
        size: rows, columns and dense dims; without it the least that the indices fit in.
        dtype: of the values; default: theirs.
        device: None or "cpu".
        pin_memory: without effect.
        requires_grad: whether the matrix is a leaf that gets a gradient.
        check_invariants: indices are always checked.
        layout: None or clew.sparse_bsr.

    Returns:
        a sparse matrix over the tensors given; gradients flow to ``values``.

    Raises:
        RuntimeError: shapes do not fit, offsets decrease, an index is out of range.

    >>> clew.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    return _of_blocks(
        "sparse_bsr_tensor",
        True,
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        layout=layout,
    )


@asks_classes
def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    layout: Any = None,
) -> Blocked:
    """A sparse matrix of dense blocks in compressed columns of blocks (BSC).

    Args:
        ccol_indices: (columns of blocks + 1), int64 or int32: where each column of blocks begins,
            and the last one ends.
        row_indices: (blocks), in which row of blocks each is; they rise within a column.
        values: (blocks, rows of a block, columns of a block, *dense dims).
        size: rows, columns and dense dims; without it the least that the indices fit in.
        dtype, device, pin_memory, requires_grad, check_invariants: as for
            :func:`sparse_bsr_tensor`.
        layout: None or clew.sparse_bsc.

    Returns:
        a sparse matrix over the tensors given; gradients flow to ``values``.

    Raises:
        RuntimeError: shapes do not fit, offsets decrease, an index is out of range.

    >>> clew.sparse_bsc_tensor([0, 0, 1], [0], [[[1.0, 2.0]]], (1, 4)).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    return _of_blocks(
        "sparse_bsc_tensor",
        False,
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        device=device,
        requires_grad=requires_grad,
        layout=layout,
    )


@asks_classes
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    layout: Any = None,
    **options: Any,
) -> Any:
    """A sparse matrix of a compressed layout.

    Args:
        compressed_indices: where each row or column begins, and the last one ends.
        plain_indices: the places of the elements within.
        values: (elements).
        size: rows and columns.
        layout: clew.sparse_csr, clew.sparse_csc, clew.sparse_bsr or clew.sparse_bsc.
        options: as for :func:`sparse_csr_tensor`.

    Returns:
        a sparse matrix.

    Raises:
        NotImplementedError: another layout.

    >>> m = clew.sparse_compressed_tensor([0, 1], [0], [2.0], (1, 1), layout=clew.sparse_csr)
    >>> m.to_dense()
    tensor([[2.]])
    """
    for kind, make in _MAKERS.items():
        if layout is kind:
            return make(compressed_indices, plain_indices, values, size, **options)
    raise NotImplementedError(
        "sparse_compressed_tensor: layout must be clew.sparse_csr, clew.sparse_csc, "
        f"clew.sparse_bsr or clew.sparse_bsc; got {layout}"
    )


_MAKERS: dict[Any, Any] = {
    _dtypes.sparse_csr: sparse_csr_tensor,
    _dtypes.sparse_csc: sparse_csc_tensor,
    _dtypes.sparse_bsr: sparse_bsr_tensor,
    _dtypes.sparse_bsc: sparse_bsc_tensor,
}


@asks_classes
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix of diagonals.

    Args:
        diagonals: (diagonals, elements): of diagonal k, element j is in column j.
        offsets: which diagonals they are: 0 is the main one, positive ones lie above.
        shape: rows and columns.
        layout: None or clew.sparse_coo, clew.sparse_csr, clew.sparse_csc.

    Returns:
        the matrix.

    Raises:
        RuntimeError: shapes do not fit, an offset is named twice.

    >>> clew.sparse.spdiags(clew.ones(1, 2), clew.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    need_tensors("spdiags", diagonals=diagonals, offsets=offsets)
    diagonals, offsets = clew.atleast_2d(diagonals), offsets.reshape(-1)
    rows, columns = (int(n) for n in shape)
    if diagonals.shape[0] != offsets.shape[0]:
        raise RuntimeError(
            f"spdiags: there must be as many diagonals as offsets; got {diagonals.shape[0]} and "
            f"{offsets.shape[0]}"
        )
    if len(set(offsets.tolist())) != offsets.shape[0]:
        raise RuntimeError("spdiags: offsets must be distinct")
    col = clew.arange(diagonals.shape[1]).expand(diagonals.shape)
    row = col - offsets.long().unsqueeze(1)
    fits = (row >= 0) & (row < rows) & (col < columns)
    made = coo(
        clew.stack([row[fits], col[fits]]), diagonals[fits], (rows, columns), False
    ).coalesce()
    if layout is None or layout is _dtypes.sparse_coo:
        return made
    return made.to_sparse(layout=layout)


constructors.update(coo=sparse_coo_tensor, csr=sparse_csr_tensor, csc=sparse_csc_tensor)
constructors.update(bsr=sparse_bsr_tensor, bsc=sparse_bsc_tensor)
