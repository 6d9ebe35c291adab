"""States whose sequences come in another order."""

from __future__ import annotations

import warnings

from clew import Tensor
from clew._base.provenance import user_level


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The parts of a dim in another order."""
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The parts of a dim in another order; PyTorch deprecated it."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
        "instead",
        FutureWarning,
        stacklevel=user_level(),
    )
    return _apply_permutation(tensor, permutation, dim)
