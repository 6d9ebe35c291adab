"""The weight and the bias that normalisations scale and shift by."""

from __future__ import annotations

from typing import Any

import clew

from ..parameter import Parameter

__all__ = ["add_affine"]


def add_affine(module: Any, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
    """Gives a module a weight and a bias without values yet, or None for those it is not to have.

    Args:
        module: the module.
        shape: of either.
        weight: whether it scales.
        bias: whether it shifts, too.
        device: where they lie.
        dtype: their dtype.
    """
    for name, wanted in (("weight", weight), ("bias", weight and bias)):
        if wanted:
            setattr(module, name, Parameter(clew.empty(shape, device=device, dtype=dtype)))
        else:
            module.register_parameter(name, None)
