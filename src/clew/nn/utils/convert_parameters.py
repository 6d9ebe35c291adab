"""Parameters as one vector and back."""

from __future__ import annotations

from typing import Any

import clew

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Any) -> Any:
    """All parameters one after the other.

    Args:
        parameters: an iterable of tensors.

    Returns:
        a 1-d tensor.
    """
    return clew.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Sets parameters to the slices of a vector.

    Args:
        vec: a 1-d tensor.
        parameters: an iterable of tensors.
    """
    if not isinstance(vec, clew.Tensor):
        raise TypeError(f"expected clew.Tensor, but got: {type(vec).__name__}")
    at = 0
    for param in parameters:
        n = param.numel()
        param.data = vec[at : at + n].view_as(param).data
        at += n
