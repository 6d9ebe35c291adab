"""What operations do with ragged tensors."""

from __future__ import annotations

from typing import Any

from clew.nested import (
    _along,
    _attention,
    _by_row,
    _construct,
    _einsum,
    _places,
    _pointwise,
    _products,
    _reductions,
    _shapes,
)
from clew.nested._tensor import NestedTensor

__all__ = ["RULES"]


def _unbind(x: Any, dim: int = 0) -> Any:
    if dim not in (0, -len(x._sizes())):
        raise RuntimeError(f"unbind: dim must be 0, that of the rows of a ragged tensor; got {dim}")
    return tuple(x.row_values())


RULES: dict[str, Any] = {
    "unbind": _unbind,
    "to_padded_tensor": _construct.to_padded_tensor,
    **_pointwise.RULES,
    **_reductions.RULES,
    **_along.RULES,
    **_shapes.RULES,
    **_products.RULES,
    **_attention.RULES,
    **_by_row.RULES,
    **_places.RULES,
    "einsum": _einsum.einsum,
}
NestedTensor._rules = RULES
NestedTensor._whole = _by_row.WHOLE
