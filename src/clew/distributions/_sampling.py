"""Samplers that NumPy provides, seeded from clew's generator so that manual_seed repeats them."""

from __future__ import annotations

import numpy as np

import clew
from clew import Tensor


def numpy_generator() -> np.random.Generator:
    """A NumPy generator whose seed is drawn from clew's default generator."""
    low, high = clew.randint(0, 2**62, (2,)).tolist()
    return np.random.Generator(np.random.PCG64([low, high]))


def _float64(x: Tensor) -> np.ndarray:
    return x.detach().to(clew.float64).cpu().numpy()


def _like(values: np.ndarray, x: Tensor) -> Tensor:
    return clew.from_numpy(np.ascontiguousarray(values)).reshape(x.shape).to(x)


def log_gamma_numbers(concentration: np.ndarray) -> np.ndarray:
    """Logarithms of gamma distributed numbers; they do not underflow for small concentrations."""
    generator = numpy_generator()
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
    """Dirichlet distributed vectors along the last dim."""
    logs = log_gamma_numbers(_float64(concentration))
    weights = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    return _like(weights / weights.sum(-1, keepdims=True), concentration)


def draw_binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Binomially distributed numbers; ``count`` and ``probs`` have one shape."""
    n = count.detach().to(clew.int64).cpu().numpy()
    p = _float64(probs)
    wrong = ~((p >= 0) & (p <= 1)) | (n < 0)
    drawn = numpy_generator().binomial(np.where(wrong, 0, n), np.where(wrong, 0.0, p))
    return _like(np.where(wrong, np.nan, drawn.astype(np.float64)), probs)
