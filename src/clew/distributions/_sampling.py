"""Samplers that NumPy provides, seeded from clew's generator so that manual_seed repeats them."""

from __future__ import annotations

import numpy as np

import clew
from clew import Tensor
from clew._lazy.random import numpy_generator


def _float64(x: Tensor) -> np.ndarray:
    return x.detach().to(clew.float64).cpu().numpy()


def _like(values: np.ndarray, x: Tensor) -> Tensor:
    return clew.from_numpy(np.ascontiguousarray(values)).reshape(x.shape).to(x)


def log_gamma_numbers(concentration: np.ndarray) -> np.ndarray:
    """Logarithms of gamma distributed numbers; they do not underflow for small concentrations."""
    generator = numpy_generator(all_samples=True)
    small = concentration < 1
    drawn = np.log(generator.standard_gamma(np.where(small, concentration + 1, concentration)))
    uniform = 1.0 - generator.random(concentration.shape)  # in (0, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, drawn + np.log(uniform) / concentration, drawn)


def draw_gamma(concentration: Tensor) -> Tensor:
    """Gamma distributed numbers of rate 1, at least the least normal number of their dtype."""
    drawn = np.exp(log_gamma_numbers(_float64(concentration)))
    return _like(drawn, concentration).clamp(min=clew.finfo(concentration.dtype).tiny)


def draw_dirichlet(concentration: Tensor) -> Tensor:
    """Dirichlet distributed vectors along the last dim, their elements inside (0, 1)."""
    logs = log_gamma_numbers(_float64(concentration))
    weights = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    drawn = _like(weights / weights.sum(-1, keepdims=True), concentration)
    if concentration.shape[-1] < 2:
        return drawn
    info = clew.finfo(concentration.dtype)
    return drawn.clamp(min=info.tiny, max=1 - info.eps / 2)
