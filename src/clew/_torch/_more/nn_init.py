"""Initialisation outside the graph, by names that libraries use."""

from __future__ import annotations

from typing import Any

import clew
from clew import Tensor


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    """Fills with numbers from a to b."""
    with clew.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    """Fills with normal numbers."""
    with clew.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """Fills with normal numbers that lie from a to b."""
    return clew.nn.init.trunc_normal_(tensor, mean, std, a, b, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    """Fills with a number."""
    with clew.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    with clew.no_grad():
        return tensor.zero_()
