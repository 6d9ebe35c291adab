"""Gamma and Dirichlet numbers, in the order in which PyTorch draws them."""

from __future__ import annotations

import clew
from clew import _C, Tensor


def _log_draws(concentration: Tensor) -> Tensor:
    """Logarithms, in float64: they do not underflow for small concentrations."""
    return _C.ops._log_gamma_draws(concentration.detach().to(clew.float64))


def draw_gamma(concentration: Tensor) -> Tensor:
    """Gamma distributed numbers of rate 1, at least the least normal number of their dtype."""
    drawn = _log_draws(concentration).exp().to(concentration.dtype)
    return drawn.clamp(min=clew.finfo(concentration.dtype).tiny)


def draw_dirichlet(concentration: Tensor) -> Tensor:
    """Dirichlet distributed vectors along the last dim, their elements inside (0, 1)."""
    drawn = _log_draws(concentration).softmax(-1).to(concentration.dtype)
    if concentration.shape[-1] < 2:
        return drawn
    info = clew.finfo(concentration.dtype)
    return drawn.clamp(min=info.tiny, max=1 - info.eps / 2)
