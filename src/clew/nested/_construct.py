"""Making ragged tensors, and dense ones of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import clew
from clew import _C
from clew._base import dtypes as _dtypes
from clew._base.arguments import is_structured
from clew._C import Tensor
from clew.nested._strided import NestedRows, is_nested_rows, of_rows
from clew.nested._tensor import NestedTensor, Rows, constructors, is_ragged, ragged

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "pad",
    "to_padded_tensor",
]


def _check_options(name: str, layout: Any, device: Any) -> None:
    offered = (_dtypes.jagged,) if name == "narrow" else (_dtypes.jagged, _dtypes.strided)
    if layout is not None and layout not in offered:
        raise NotImplementedError(
            f"{name}: layout must be {' or '.join(map(str, offered))}; got {layout}"
        )
    if device is not None and _C.device(device).type != "cpu":
        raise NotImplementedError(f"{name}: ragged tensors are on the CPU; got device {device}")


def _rows_of(name: str, given: Any, dtype: Any) -> list[Tensor]:
    if isinstance(given, Tensor) or not isinstance(given, (list, tuple)):
        raise TypeError(
            f"{name}: expected a list of tensors, one for each row; got {type(given).__name__}"
        )
    rows = [t if isinstance(t, Tensor) else clew.tensor(t, dtype=dtype) for t in given]
    if not rows:
        raise ValueError(f"{name}: the list must have at least one tensor")
    for i, t in enumerate(rows):
        if is_structured(t):
            raise TypeError(f"{name}: rows must be dense tensors; row {i} is of {t.layout}")
    if dtype is not None:
        rows = [t.to(dtype) for t in rows]
    first = rows[0]
    for i, t in enumerate(rows):
        if t.dim() != first.dim():
            raise RuntimeError(
                f"{name}: rows must have the same number of dims; got {first.dim()} in row 0 and "
                f"{t.dim()} in row {i}"
            )
        if t.dtype is not first.dtype:
            raise RuntimeError(
                f"{name}: rows must have the same dtype; got {first.dtype} in row 0 and {t.dtype} "
                f"in row {i}; dtype= converts them"
            )
    return rows


def _joined(name: str, rows: list[Tensor], layout: Any) -> Any:
    """The rows one behind the other: ragged, unless they cannot be or it is not wanted."""
    shapes = [tuple(t.shape) for t in rows]
    differ = [d for d in range(rows[0].dim()) if len({s[d] for s in shapes}) > 1]
    fits = rows[0].dim() > 0 and len(differ) < 2
    if layout is _dtypes.strided or (layout is None and not fits):
        return of_rows(rows)
    if not rows[0].dim():
        raise RuntimeError(f"{name}: rows must have at least one dim; got numbers")
    if not fits:
        raise RuntimeError(
            f"{name}: rows may differ in the size of one dim only; got sizes that differ in dims "
            f"{differ}: {[list(s) for s in shapes][:4]}; use "
            "layout=clew.strided, or pad all of them but one with clew.nn.functional.pad"
        )
    dim = differ[0] if differ else 0
    counts = [s[dim] for s in shapes]
    return ragged(Rows.of_counts(counts), clew.cat(rows, dim), dim + 1)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor | NestedRows:
    """A ragged tensor with a copy of the rows given: a leaf of the graph.

    Args:
        tensor_list: the rows, tensors or nested lists, of one number of dims; for clew.jagged,
            their sizes differ in at most one dim.
        dtype: of the result; default: theirs, which is one.
        layout: clew.jagged; clew.strided, for rows that differ in any sizes; by default the first
            where it can hold the rows.
        device: None or "cpu".
        requires_grad: whether the tensor gets a gradient.
        pin_memory: without effect.

    Returns:
        a ragged tensor of shape (rows, *sizes of a row).

    Raises:
        RuntimeError: rows differ in dtype or in the number of dims; for clew.jagged, in the size of
            several dims.
        NotImplementedError: another layout.

    >>> x = clew.nested.nested_tensor([clew.ones(2, 3), clew.ones(4, 3)])
    >>> x.offsets(), tuple(x.values().shape)
    (tensor([0, 2, 6]), (6, 3))
    """
    name = "nested_tensor"
    _check_options(name, layout, device)
    if is_ragged(tensor_list) or is_nested_rows(tensor_list):
        raise TypeError(f"{name}: this is a nested tensor already; use .detach().clone()")
    rows = [t.detach() for t in _rows_of(name, tensor_list, dtype)]
    made = _joined(name, rows, layout)
    return made._with(made._elements.detach().requires_grad_(requires_grad))


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NestedTensor | NestedRows:
    """A ragged tensor of rows, through which gradients flow to them.

    Args:
        ts: the rows, as for :func:`nested_tensor`; or a dense tensor (rows, length, ...), whose
            rows are all of one length; or a nested tensor of either layout.
        dtype: of the result; default: theirs.
        device: None or "cpu".
        layout: as for :func:`nested_tensor`.

    Returns:
        a ragged tensor of shape (rows, *sizes of a row).

    Raises:
        RuntimeError: rows differ in dtype or in the number of dims; for clew.jagged, in the size of
            several dims.
        NotImplementedError: another layout.

    >>> row = clew.ones(2, requires_grad=True)
    >>> (clew.nested.as_nested_tensor([row, clew.ones(1)]) * 3).sum().backward()
    >>> row.grad
    tensor([3., 3.])
    """
    name = "as_nested_tensor"
    _check_options(name, layout, device)
    made: Any
    if is_ragged(ts) or is_nested_rows(ts):
        same = layout is None or ts.layout is layout
        made = ts if same else _joined(name, ts.row_values(), layout)
    elif isinstance(ts, Tensor) and layout is _dtypes.strided and ts.dim() and len(ts):
        made = of_rows(list(ts.unbind(0)))
    elif isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                f"{name}: a dense tensor must have at least two dims, rows and their length; got "
                f"shape {list(ts.shape)}"
            )
        made = ragged(Rows.of_counts([ts.shape[1]] * ts.shape[0]), ts.flatten(0, 1))
    else:
        made = _joined(name, _rows_of(name, ts, dtype), layout)
    return made if dtype is None else made.to(dtype)


def _places(name: str, what: str, given: Any) -> Tensor:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: {what} must be a tensor; got {type(given).__name__}")
    if given.dtype not in (_C.int64, _C.int32) or given.dim() != 1:
        raise RuntimeError(
            f"{name}: {what} must be a vector of int64 or int32; got {given.dtype} of shape "
            f"{list(given.shape)}"
        )
    if given.is_meta:
        raise RuntimeError(f"{name}: {what} must be on the CPU, where they are read; got meta")
    return given.detach().long()


def _check_rows(name: str, offsets: np.ndarray, lengths: Any, total: int) -> None:
    if not len(offsets):
        raise RuntimeError(f"{name}: offsets must have at least one element")
    if offsets[0] < 0 or (lengths is None and offsets[0] != 0):
        raise RuntimeError(f"{name}: offsets[0] must be 0; got {offsets[0]}")
    if (np.diff(offsets) < 0).any():
        at = int(np.argmax(np.diff(offsets) < 0))
        raise RuntimeError(
            f"{name}: offsets must not decrease; got {offsets[at]} before {offsets[at + 1]}"
        )
    if lengths is None:
        if offsets[-1] != total:
            raise RuntimeError(
                f"{name}: offsets[-1] must be the size of values in the ragged dim, {total}; got "
                f"{offsets[-1]}"
            )
        return
    if len(lengths) != len(offsets) - 1:
        raise RuntimeError(
            f"{name}: lengths must have one element less than offsets; got {len(lengths)} and "
            f"{len(offsets)}"
        )
    if len(lengths) and lengths.min() < 0:
        raise RuntimeError(f"{name}: lengths must not be negative; got {lengths.min()}")
    over = offsets[:-1] + lengths > total
    if over.any():
        row = int(np.argmax(over))
        raise RuntimeError(
            f"{name}: row {row} begins at {offsets[row]}, has length {lengths[row]} and ends "
            f"beyond the values, of which there are {total}"
        )


def nested_tensor_from_jagged(
    values: Any,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A ragged tensor over values that lie one behind the other.

    Args:
        values: the elements of all rows, without a batch dim; gradients flow to it.
        offsets: (rows + 1) int64, where each row begins and the last one ends; default: the sums
            of lengths.
        lengths: (rows) int64, how long each row is; with offsets, rows may have gaps between them.
        jagged_dim: the ragged dim of the result; default 1.
        min_seqlen: the length of the shortest row, if known; it is checked.
        max_seqlen: the length of the longest row, if known; it is checked.

    Returns:
        a ragged tensor of shape (rows, *sizes of values, of which one is ragged).

    Raises:
        RuntimeError: offsets decrease, or do not begin at 0 or end at the end of values; lengths
            do not fit.

    >>> x = clew.nested.nested_tensor_from_jagged(clew.arange(5), clew.tensor([0, 2, 5]))
    >>> [row.tolist() for row in x.unbind()]
    [[0, 1], [2, 3, 4]]
    """
    name = "nested_tensor_from_jagged"
    if not isinstance(values, Tensor) or is_structured(values):
        raise TypeError(f"{name}: values must be a dense tensor; got {type(values).__name__}")
    at = 1 if jagged_dim is None else int(jagged_dim)
    if not 1 <= at <= values.dim():
        raise RuntimeError(
            f"{name}: jagged_dim must be in [1, {values.dim()}] for values of {values.dim()} dims; "
            f"got {at}"
        )
    if offsets is None and lengths is None:
        raise RuntimeError(f"{name}: offsets or lengths must be given")
    total = int(values.shape[at - 1])
    sizes = None if lengths is None else _places(name, "lengths", lengths)
    if offsets is None:
        assert sizes is not None
        if sizes.numel() and int(sizes.min()) < 0:
            raise RuntimeError(f"{name}: lengths must not be negative; got {int(sizes.min())}")
        if int(sizes.sum()) != total:
            raise RuntimeError(
                f"{name}: lengths must add up to the size of values in the ragged dim, {total}; "
                f"got {int(sizes.sum())}"
            )
        rows = Rows.of_counts(sizes.numpy())
    else:
        starts = _places(name, "offsets", offsets)
        _check_rows(name, starts.numpy(), None if sizes is None else sizes.numpy(), total)
        rows = Rows(starts, sizes)
    for what, said, found in (
        ("min_seqlen", min_seqlen, min(rows.counts, default=0)),
        ("max_seqlen", max_seqlen, rows.longest),
    ):
        if said is not None and int(said) != found:
            raise RuntimeError(f"{name}: {what} must be {found} for these rows; got {said}")
    return ragged(rows, values, at)


def _as_counts(name: str, what: str, given: Any, batch: int) -> np.ndarray:
    if isinstance(given, Tensor):
        flat = _places(name, what, given).numpy()
        if len(flat) != batch:
            raise RuntimeError(f"{name}: {what} must have {batch} elements; got {len(flat)}")
        return np.asarray(flat)
    return np.full(batch, int(given), np.int64)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """A part of each row of a dense tensor, as a ragged tensor over the same memory.

    Args:
        tensor: dense, (rows, length, ...).
        dim: 1.
        start: where each row's part begins: (rows) int64, or one number.
        length: how long it is: (rows) int64, or one number.
        layout: None or clew.jagged.

    Returns:
        a ragged tensor; its rows may have gaps between them (see `lengths()`).

    Raises:
        RuntimeError: another dim; a part lies outside its row.

    >>> x = clew.arange(6).reshape(2, 3)
    >>> rows = clew.nested.narrow(x, 1, clew.tensor([1, 0]), clew.tensor([2, 1])).unbind()
    >>> [row.tolist() for row in rows]
    [[1, 2], [3]]
    """
    name = "narrow"
    _check_options(name, layout, None)
    if not isinstance(tensor, Tensor) or is_structured(tensor):
        raise TypeError(f"{name}: expected a dense tensor; got {type(tensor).__name__}")
    if tensor.dim() < 2 or dim not in (1, 1 - tensor.dim()):
        raise RuntimeError(
            f"{name}: dim must be 1, that of the length of rows, in a tensor of at least two dims; "
            f"got dim {dim} of shape {list(tensor.shape)}"
        )
    batch, size = int(tensor.shape[0]), int(tensor.shape[1])
    starts = _as_counts(name, "start", start, batch)
    counts = _as_counts(name, "length", length, batch)
    if batch and (starts.min() < 0 or counts.min() < 0 or (starts + counts).max() > size):
        raise RuntimeError(
            f"{name}: start and length must name parts of rows of {size} elements; got "
            f"start {starts.tolist()[:8]} and length {counts.tolist()[:8]}"
        )
    offsets = np.append(starts + np.arange(batch) * size, batch * size).astype(np.int64)
    rows = Rows(clew.from_numpy(offsets), clew.from_numpy(counts))
    return ragged(rows, tensor.flatten(0, 1))


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row that a mask names, as a ragged tensor.

    Args:
        tensor: dense, (*, length); all dims but the last count rows.
        mask: bool, of its shape or one that is broadcast to it.

    Returns:
        a ragged tensor of shape (rows, elements); gradients flow to `tensor`.

    Raises:
        RuntimeError: the mask is not bool or does not fit, or the tensor has no dim.

    >>> x = clew.arange(4).reshape(2, 2)
    >>> rows = clew.nested.masked_select(x, x > 0).unbind()
    >>> [row.tolist() for row in rows]
    [[1], [2, 3]]
    """
    name = "masked_select"
    for what, given in (("tensor", tensor), ("mask", mask)):
        if not isinstance(given, Tensor):
            raise TypeError(f"{name}: {what} must be a tensor; got {type(given).__name__}")
    if is_ragged(tensor) or is_ragged(mask) or not tensor.dim():
        raise RuntimeError(f"{name}: expected a dense tensor of at least one dim")
    if mask.dtype is not _C.bool:
        raise RuntimeError(f"{name}: mask must be of dtype bool; got {mask.dtype}")
    shape = tuple(tensor.shape)
    if tuple(clew.broadcast_shapes(mask.shape, shape)) != shape:
        raise RuntimeError(
            f"{name}: mask must be broadcastable to the tensor's shape, {list(shape)}; got "
            f"{list(mask.shape)}"
        )
    mask = mask.expand(shape)
    rows = Rows.of_counts(mask.sum(-1).reshape(-1).numpy())
    return ragged(rows, tensor.masked_select(mask))


def pad(x: NestedTensor, padding: float, size: int) -> Tensor:
    """The rows at the size of one, (rows, ..., size, ...); what is missing is the padding."""
    dim = x._at - 1
    parts: list[Tensor] = []
    fill = None
    for row in x.row_values():
        parts.append(row)
        missing = size - int(row.shape[dim])
        if missing:
            if fill is None:
                shape = list(row.shape)
                shape[dim] = size - min(x._rows.counts)
                fill = row.new_full(tuple(shape), padding)
            parts.append(fill.narrow(dim, 0, missing))
    if not parts:
        return x._elements.new_full((*x._sizes()[: x._at], size, *x._sizes()[x._at + 1 :]), padding)
    return clew.cat(parts, dim).unflatten(dim, (len(x._rows.counts), size)).movedim(dim, 0)


def to_padded_tensor(
    input: Any, padding: float, output_size: Any = None, out: Any = None
) -> Tensor:
    """A dense tensor of the rows of a ragged one.

    Args:
        input: a ragged tensor.
        padding: what stands behind the end of rows that are shorter than others.
        output_size: the result's sizes, where they should be larger than needed. The size of the
            ragged dim may be smaller, too: longer rows are cut.
        out: not offered.

    Returns:
        a dense tensor of shape (rows, *sizes of a row), that of the ragged dim being the length
        of the longest row; gradients flow to `input`.

    Raises:
        RuntimeError: `input` is not ragged, or another size of output_size is too small.

    >>> x = clew.nested.nested_tensor([clew.ones(1), clew.ones(2)])
    >>> clew.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 0.],
            [1., 1.]])
    """
    name = "to_padded_tensor"
    if not (is_ragged(input) or is_nested_rows(input)):
        raise RuntimeError(f"{name}: expected a ragged tensor; a dense one needs no padding")
    if out is not None:
        raise NotImplementedError(f"{name}: out= is not offered; use the result that is returned")
    if is_nested_rows(input):
        made: Tensor = input.to_padded_tensor(padding, output_size)
        return made
    sizes = input._sizes()
    wanted = sizes if output_size is None else tuple(int(n) for n in output_size)
    at = input._at
    least = (*sizes[:at], 0, *sizes[at + 1 :])
    if len(wanted) != len(sizes) or any(w < n for w, n in zip(wanted, least)):
        raise RuntimeError(
            f"{name}: output_size must have {len(sizes)} sizes of at least {list(least)}; got "
            f"{list(wanted)}"
        )
    made = pad(input, padding, max(wanted[at], sizes[at])).narrow(at, 0, wanted[at])
    if tuple(made.shape) == wanted:
        return made
    grow = [n for w, s in zip(reversed(wanted), reversed(made.shape)) for n in (0, w - s)]
    return clew.nn.functional.pad(made, grow, value=padding)


constructors["jagged"] = nested_tensor_from_jagged
