"""Parameters as one vector and back."""

from __future__ import annotations

from typing import Any

import clew

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Any) -> clew.Tensor:
    """All parameters one after the other.

    Args:
        parameters: an iterable of tensors of any shapes.

    Returns:
        a 1-d tensor of all their elements.

    Example:
        >>> clew.nn.utils.parameters_to_vector([clew.tensor([[1., 2.]]), clew.tensor(3.)]).tolist()
        [1.0, 2.0, 3.0]
    """
    return clew.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Sets parameters to the slices of a vector.

    Args:
        vec: a 1-d tensor of as many elements as the parameters have.
        parameters: an iterable of tensors; each takes its part in order.

    Returns:
        None; the parameters' data are changed.

    Example:
        >>> layer = clew.nn.Linear(2, 1)
        >>> clew.nn.utils.vector_to_parameters(clew.tensor([1., 2., 3.]), layer.parameters())
        >>> layer.weight.tolist(), layer.bias.tolist()
        ([[1.0, 2.0]], [3.0])
    """
    if not isinstance(vec, clew.Tensor):
        raise TypeError(f"expected clew.Tensor, but got: {type(vec).__name__}")
    at = 0
    for param in parameters:
        n = param.numel()
        param.data = vec[at : at + n].view_as(param).data
        at += n
