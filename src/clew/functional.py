"""`clew.functional`: some top-level functions under the name that PyTorch also gives them."""

from __future__ import annotations

from typing import Any

import clew

_NAMES = (
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "norm",
    "pca_lowrank",
    "split",
    "stft",
    "svd_lowrank",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
)


def __dir__() -> list[str]:
    return sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(clew, name)
    from clew._namespace import missing_name

    raise missing_name(__name__, name, _NAMES)
