"""`clew.functional`: some top-level functions under the name that PyTorch also gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import clew

if TYPE_CHECKING:
    from clew import atleast_1d as atleast_1d
    from clew import atleast_2d as atleast_2d
    from clew import atleast_3d as atleast_3d
    from clew import block_diag as block_diag
    from clew import broadcast_shapes as broadcast_shapes
    from clew import broadcast_tensors as broadcast_tensors
    from clew import cartesian_prod as cartesian_prod
    from clew import cdist as cdist
    from clew import chain_matmul as chain_matmul
    from clew import einsum as einsum
    from clew import istft as istft
    from clew import lu as lu
    from clew import meshgrid as meshgrid
    from clew import norm as norm
    from clew import pca_lowrank as pca_lowrank
    from clew import split as split
    from clew import stft as stft
    from clew import svd_lowrank as svd_lowrank
    from clew import tensordot as tensordot
    from clew import unique as unique
    from clew import unique_consecutive as unique_consecutive
    from clew import unravel_index as unravel_index

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


if not TYPE_CHECKING:  # else checkers take any name to be there

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            return getattr(clew, name)
        from clew._namespace import missing_name

        raise missing_name(__name__, name, _NAMES)
