"""embedding and embedding_bag: rows of a table, and sums of them."""

from __future__ import annotations

import warnings
from typing import Any

import clew
from clew._base.arguments import need_bools, need_tensors
from clew._base.overriding import asks_classes
from clew._base.provenance import user_level

from ._core import private, vector_norm

_embedding = private("_embedding")
_embedding_bag = private("_embedding_bag")


@asks_classes
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> clew.Tensor:
    """Rows of a table: weight[input].

    Args:
        input: int32 or int64 row indices of any shape.
        weight: the table, (rows, E).
        padding_idx: a row that gets no gradient.
        max_norm: rows that are looked up are first scaled down to this norm, in place.
        norm_type: that norm's order.
        scale_grad_by_freq: divide gradients by how often a row was looked up.
        sparse: a table that is a leaf gets a sparse gradient, of the rows that were looked up.

    Returns:
        (..., E) for input (...).

    Example:
        >>> table = clew.tensor([[1., 2.], [3., 4.]])
        >>> clew.nn.functional.embedding(clew.tensor([1, 0]), table).tolist()
        [[3.0, 4.0], [1.0, 2.0]]
    """
    if scale_grad_by_freq is not False or sparse is not False:
        need_bools("embedding", scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"embedding: Padding_idx must be within num_embeddings, {rows}; got {padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    place = -1 if padding_idx is None else padding_idx
    if sparse:
        from clew.sparse._table import looked_up

        return looked_up(weight, input, place, scale_grad_by_freq)
    return _embedding(weight, input, place, scale_grad_by_freq)


@asks_classes
def embedding_renorm_(weight: Any, index: Any, max_norm: float, norm_type: float) -> clew.Tensor:
    """Scales the rows that an index names down to a norm, in place.

    Args:
        weight: the table, (rows, E).
        index: int32 or int64 row indices of any shape.
        max_norm: greatest norm that stays.
        norm_type: the norm's order.

    Returns:
        the table, (rows, E).

    Example:
        >>> table = clew.tensor([[6., 8.], [6., 8.]])
        >>> _ = clew.nn.functional.embedding_renorm_(table, clew.tensor([0]), 5.0, 2.0)
        >>> [round(x, 3) for x in table.flatten().tolist()]
        [3.0, 4.0, 6.0, 8.0]
    """
    with clew.no_grad():
        # A row that is named twice is written twice with the same values.
        rows = index.reshape(-1)
        picked = weight[rows]
        norms = vector_norm(picked, norm_type, 1, True)
        # In double: rounded twice, rows would be a little too long for the next call.
        scale = clew.where(norms > max_norm, max_norm / (norms.double() + 1e-7), 1.0)
        weight[rows] = picked * scale.to(picked.dtype)
    return weight


@asks_classes
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> clew.Tensor:
    """Sums, means or maxima of bags of rows of a table.

    Args:
        input: (N, L): N bags of L indices; or (L) with offsets; or ragged, (N, lengths). int32 or
            int64.
        weight: the table, (rows, E).
        offsets: (N), where in input each bag starts.
        max_norm: rows that are looked up are first scaled down to this norm, in place.
        norm_type: that norm's order.
        scale_grad_by_freq: divide gradients by how often a row was looked up.
        mode: "sum", "mean" or "max".
        sparse: a table that is a leaf gets a sparse gradient, of the rows that were looked up.
        per_sample_weights: a factor for each index, of input's shape, with mode "sum".
        include_last_offset: offsets ends with the total length.
        padding_idx: an index that counts nothing.

    Returns:
        (N, E), a row for each bag; an empty bag gives zeros.

    Example:
        >>> table = clew.tensor([[1., 2.], [3., 4.], [5., 6.]])
        >>> bags, starts = clew.tensor([0, 1, 2]), clew.tensor([0, 2])
        >>> clew.nn.functional.embedding_bag(bags, table, starts, mode="sum").tolist()
        [[4.0, 6.0], [5.0, 6.0]]
    """
    need_bools(
        "embedding_bag",
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
        include_last_offset=include_last_offset,
    )
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max; got {mode!r}")
    if weight.dtype is clew.int64 and input.is_floating_point():
        warnings.warn(
            "embedding_bag(weight, input) is the order of old releases; pass input first",
            stacklevel=user_level(),
        )
        weight, input = input, weight
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights works with mode='sum' only; got mode='{mode}'"
        )
    if scale_grad_by_freq and mode == "max":
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    factors = per_sample_weights
    try:
        ragged = input.is_nested
    except AttributeError:
        need_tensors("embedding_bag", input=input)
        raise
    if ragged:
        flat, edges, factors = _ragged_bags(input, offsets, factors)
    elif input.dim() == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: if input is 2D, then offsets has to be None")
        bags, per_bag = input.shape
        flat = input.reshape(-1)
        edges = clew.arange(bags + 1, device=input.device) * per_bag
        if factors is not None:
            factors = factors.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("embedding_bag: offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError(
                f"embedding_bag: offsets has to be a 1D Tensor; got {offsets.dim()} dims"
            )
        flat, edges = input, offsets
        if not include_last_offset:
            edges = clew.cat([offsets, offsets.new_full((1,), input.shape[0])])
        elif not offsets.shape[0]:
            raise RuntimeError(
                "embedding_bag: include_last_offset: number of offsets should be at least 1"
            )
        _check_first(edges)
    else:
        raise ValueError(
            f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{input.dim()}"
        )
    if padding_idx is not None:
        flat, edges, factors = _without_padding(flat, edges, factors, padding_idx, weight.shape[0])
    if max_norm is not None:
        embedding_renorm_(weight, flat, max_norm, norm_type)
    if sparse and mode == "max":
        raise ValueError("embedding_bag: max mode does not support sparse weights")
    if mode != "max" and not scale_grad_by_freq and weight.is_floating_point() and not sparse:
        return _embedding_bag(weight, flat, edges, factors, mode == "mean")
    return _composed_bags(weight, flat, edges, factors, mode, scale_grad_by_freq, sparse)


def _ragged_bags(input: Any, offsets: Any, factors: Any) -> tuple[Any, Any, Any]:
    if offsets is not None or input.dim() != 2 or input.layout is not clew.jagged:
        raise ValueError(
            "embedding_bag: a ragged input must have two dims, bags and their indices, and "
            "offsets must be None"
        )
    packed = input.packed()
    return packed.values(), packed.offsets(), None if factors is None else factors.packed().values()


def _without_padding(
    flat: Any, edges: Any, factors: Any, padding_idx: int, rows: int
) -> tuple[Any, Any, Any]:
    """The same bags without the indices that count nothing."""
    if not -rows <= padding_idx < rows:
        raise ValueError(
            f"embedding_bag: padding_idx must be within the number of embeddings, {rows}; got "
            f"{padding_idx}"
        )
    _check_edges(edges, flat.shape[0])
    kept = flat != padding_idx % rows
    if factors is not None:
        factors = factors[kept]
    return flat[kept], clew.cat([edges.new_zeros(1), kept.cumsum(0)])[edges], factors


def _check_first(edges: Any) -> None:
    if edges.shape[0] > 1 and not edges.is_meta and int(edges[0]) != 0:
        raise RuntimeError(
            f"embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch "
            f"has to start "
            f"from position 0. However, got {int(edges[0])}"
        )


def _check_edges(edges: Any, length: int) -> None:
    if edges.shape[0] > 1 and (int(edges[-1]) > length or int(edges.diff().min()) < 0):
        raise RuntimeError(
            f"embedding_bag: offsets must not decrease and not pass input's length {length}; "
            f"got {edges.tolist()}"
        )


def _composed_bags(
    weight: Any,
    flat: Any,
    edges: Any,
    factors: Any,
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Any:
    """embedding_bag made of other operations: bag b is flat[edges[b] : edges[b + 1]]."""
    for x in (flat, edges):
        if x.dtype not in (clew.int64, clew.int32):
            raise RuntimeError(
                f"embedding_bag: indices and offsets must be int64 or int32 vectors; got {x.dtype}"
            )
    lengths = edges.diff()
    bags, width = lengths.shape[0], weight.shape[1]
    _check_edges(edges, flat.shape[0])
    which = clew.arange(bags).repeat_interleave(lengths)
    flat = flat[: which.shape[0]]
    try:
        picked = embedding(flat, weight, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    except IndexError as error:
        raise RuntimeError(f"embedding_bag: {str(error).removeprefix('embedding: ')}") from None
    if mode == "max":
        index = which.unsqueeze(1).expand(-1, width)
        start = clew.zeros(bags, width, dtype=weight.dtype)
        return start.scatter_reduce(0, index, picked, "amax", include_self=False)
    if factors is not None:
        picked = picked * factors[: which.shape[0]].unsqueeze(1)
    total = clew.zeros(bags, width, dtype=weight.dtype).index_add(0, which, picked)
    if mode == "sum":
        return total
    return total / lengths.clamp(min=1).to(weight.dtype).unsqueeze(1)


__all__ = ["embedding", "embedding_bag", "embedding_renorm_"]
