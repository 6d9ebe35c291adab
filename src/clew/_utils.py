"""Many tensors as one vector, and back."""

from __future__ import annotations

from collections.abc import Sequence

import clew
from clew import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one vector.

    Args:
        tensors: of one dtype.
    """
    parts = [t.reshape(-1) for t in tensors]
    return parts[0] if len(parts) == 1 else clew.cat(parts)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Parts of a vector as views with the tensors' shapes.

    Args:
        flat: the vector.
        tensors: what the parts look like.
    """
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors))
