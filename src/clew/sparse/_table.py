"""Embeddings whose tables get sparse gradients."""

from __future__ import annotations

from typing import Any

import clew
from clew import _C
from clew._C import Tensor
from clew._tensor.structured import Structured, parts_of
from clew.autograd.function import Function
from clew.sparse._tensor import coo

__all__ = ["looked_up", "places_of"]


class _Rows(Function):
    """Rows of a table; the gradient has an element for each index."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, indices: Tensor, padding_idx: int, by_freq: bool
    ) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.table_shape = tuple(table.shape)
        ctx.padding_idx, ctx.by_freq = padding_idx, by_freq
        # What exports record of it is this call, which has a dense gradient of the same values.
        return _C.ops._embedding(table, indices, padding_idx, by_freq)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad: Tensor = grads[0]
        (indices,) = ctx.saved_tensors
        flat = indices.reshape(-1).long()
        rows = grad.reshape(flat.shape[0], ctx.table_shape[1])
        if ctx.by_freq:
            rows = rows / clew.bincount(flat)[flat].to(rows.dtype).unsqueeze(1)
        if ctx.padding_idx >= 0:
            kept = (flat != ctx.padding_idx).nonzero()[:, 0]
            flat, rows = flat[kept], rows[kept]
        return coo(flat.unsqueeze(0), rows, ctx.table_shape, False), None, None, None


def looked_up(table: Any, indices: Any, padding_idx: int = -1, by_freq: bool = False) -> Any:
    """Rows of a table. Where it is a leaf, backward gives it a sparse gradient; where another
    operation made it, the gradient is dense, which that operation can read.
    """
    leaf = table.requires_grad and table.is_leaf and _C.is_grad_enabled()
    if not leaf or _C._vmap_depth() or table.dim() != 2 or not isinstance(indices, Tensor):
        return _C.ops._embedding(table, indices, padding_idx, by_freq)
    found = _Rows.apply(table, *parts_of([indices]), padding_idx, by_freq)
    return indices._with(found) if isinstance(indices, Structured) else found


def places_of(name: str, grad: Any) -> Any:
    """A sparse gradient's places, each once: (an index of them in a dense tensor, their values).

    Raises:
        RuntimeError: none of its dims is sparse.
    """
    grad = grad.coalesce()
    if grad.sparse_dim() == 0:
        raise RuntimeError(
            f"{name}: a sparse gradient must have a sparse dim; got none; give its to_dense()"
        )
    return tuple(grad._ind), grad._elements
