"""Samples of histograms, quantiles, covariances, membership, and numerical calculus."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import COMPLEX, FLOATS_32_64, E, Op, Rng, S

# ---- histograms ----------------------------------------------------------------------------------


def spread(r: Rng, shape: Any) -> np.ndarray:
    """Values between -2 and 2 that are far from multiples of a quarter: no rounding moves one over
    an edge.
    """
    x = r.integers(-8, 8, shape) / 4 + 0.125
    return np.asarray(x + r.uniform(shape, -0.05, 0.05))


def histc_samples(r: Rng) -> list[S]:
    with_nan = spread(r, (20,))
    with_nan[3] = np.nan
    return [
        S(spread(r, (40,)), 16, -2, 2),
        S(spread(r, (5, 6)), bins=4, min=-1, max=1),
        S(spread(r, (0,)), bins=3),
        S(np.zeros((4,)), bins=4),
        S(with_nan, 4, -1.0, 1.0),
        S(np.array([1.0, 1.0, 3.0, 2.6]), 2),
        S(spread(r, ()), 8, -2, 2),
    ]


def histc(x: np.ndarray, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    if min == max and x.size:
        min, max = x.min(), x.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(x[~np.isnan(x)], bins, (min, max))[0]


def histogram(
    x: np.ndarray, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    return np.histogram(
        x.ravel(),
        bins,
        range,
        weights=weight if weight is None else weight.ravel(),
        density=density,
    )


def histogramdd(
    x: np.ndarray, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    points = x.reshape(-1, x.shape[-1])
    pairs = None if range is None else list(zip(range[::2], range[1::2]))
    hist, edges = np.histogramdd(
        points, bins, pairs, weights=None if weight is None else weight.ravel(), density=density
    )
    return hist, tuple(np.asarray(e, dtype=float) for e in edges)


def histogram_samples(r: Rng) -> list[S]:
    edges = np.array([-1.0, -0.5, 0.75, 1.0])
    return [
        S(spread(r, (30,)), 4, range=(-1.0, 1.0)),
        S(spread(r, (5, 6)), edges),
        S(spread(r, (5, 6)), edges, weight=r.uniform((5, 6))),
        S(spread(r, (30,)), edges, density=True),
        S(spread(r, (30,)), 8, range=(-2.0, 2.0), density=True, weight=r.uniform((30,))),
        S(np.zeros((4,)), 2),
    ]


def histogramdd_samples(r: Rng) -> list[S]:
    edges = [np.array([-1.0, 0.0, 0.5]), np.array([-1.0, -0.5, 0.75, 1.0])]
    return [
        S(spread(r, (30, 2)), [4, 2], range=(-1.0, 1.0, -2.0, 2.0)),
        S(spread(r, (30, 2)), edges),
        S(spread(r, (3, 10, 2)), edges, weight=r.uniform((3, 10))),
        S(spread(r, (30, 2)), 4, range=(-1.0, 1.0, -2.0, 2.0), density=True),
        S(spread(r, (30, 3)), 2, range=(-2.0, 2.0, -1.0, 1.0, -2.0, 2.0)),
    ]


# ---- quantiles -----------------------------------------------------------------------------------


def quantile_samples(r: Rng) -> list[S]:
    q = np.array([0.13, 0.55, 0.9])
    with_nan = r.distinct((4, 5))
    with_nan[1, 2] = with_nan[3, 0] = np.nan
    return [
        S(r.distinct((7,)), 0.3),
        S(r.distinct((3, 4)), q),
        S(r.distinct((3, 4)), q, 1),
        S(r.distinct((3, 4)), q, -2, True),
        S(r.distinct((3, 4)), 0.45, keepdim=True),
        S(r.distinct((2, 3, 4)), 0.7, 1, interpolation="lower"),
        S(r.distinct((2, 3, 4)), 0.7, 1, interpolation="higher"),
        S(r.distinct((2, 3, 4)), q, 2, interpolation="midpoint"),
        S(r.distinct((2, 3, 4)), q, 0, interpolation="nearest"),
        S(r.distinct(()), 0.3),
        S(r.distinct(()), q, 0, True),
        S(with_nan, 0.55, 1),
        S(with_nan, 0.25),
    ]


def quantile_reference(f: Any) -> Any:
    def reference(
        x: np.ndarray, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
    ) -> Any:
        if x.ndim == 0:
            return f(x, q)
        return f(x, q, dim, keepdims=keepdim, method=interpolation)

    return reference


QUANTILE_ERRORS = [
    E(S(np.array([1, 2]), 0.5), RuntimeError, "float or double"),
    E(S(np.array([1.0]), 1.5), RuntimeError, r"range \[0, 1\]"),
    E(S(np.array([1.0]), np.array([0.5, -1.0])), RuntimeError, r"range \[0, 1\]"),
    E(S(np.array([1.0]), np.array([[0.5]])), RuntimeError, "scalar or 1D"),
    E(S(np.array([1.0]), np.array(1)), RuntimeError, "same dtype"),
    E(S(np.zeros((0,)), 0.5), RuntimeError, "non-empty"),
    E(S(np.array([1.0]), 0.5, 1), IndexError, "out of range"),
    E(S(np.array([1.0]), 0.5, interpolation="cubic"), RuntimeError, "must be one of"),
    E(S(np.array([1.0]), "half"), TypeError, "'q'"),
]


# ---- covariance ----------------------------------------------------------------------------------


def cov(x: np.ndarray, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def cov_samples(r: Rng) -> list[S]:
    f = np.array([1, 2, 3, 1])
    a = r.uniform((4,), 0.2, 1)
    return [
        S(r.normal((3, 4))),
        S(r.normal((5,))),
        S(r.normal((3, 4)), correction=0),
        S(r.normal((3, 4)), fweights=f),
        S(r.normal((3, 4)), aweights=a),
        S(r.normal((2, 4)), aweights=a, fweights=f, correction=2),
        S(r.normal((2, 4)), aweights=a, correction=0),
        S(r.complex((3, 4))),
    ]


def corrcoef_samples(r: Rng) -> list[S]:
    return [S(r.normal((3, 5))), S(r.normal((2, 4))), S(r.complex((2, 4))), S(r.normal((5,)))]


# ---- membership, norms ---------------------------------------------------------------------------


def isin_samples(r: Rng) -> list[S]:
    few, many = r.integers(0, 9, (3,)), r.integers(0, 40, (30,))
    return [
        S(r.integers(0, 9, (4, 5)), few),
        S(r.integers(0, 60, (4, 5)), many),
        S(r.integers(0, 60, (4, 5)), many, invert=True),
        S(r.integers(0, 9, (4,)), few, assume_unique=True),
        S(r.integers(0, 9, (4,)), 3),
        S(3, few),
        S(few, np.zeros((0,))),
        S(np.zeros((0, 2)), few),
        S(np.array([1.0, np.nan]), np.array([np.nan, 1.0])),
        S(np.array([1.0, np.nan]), np.concatenate([np.full(20, np.nan), [1.0]])),
        S(r.integers(0, 9, ()), few.astype(float)),
    ]


def renorm(x: np.ndarray, p: float, dim: int, maxnorm: float) -> Any:
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    a = np.abs(x)
    norms = (
        a.max(others, keepdims=True)
        if p == np.inf
        else (a**p).sum(others, keepdims=True) ** (1 / p)
    )
    return np.where(norms > maxnorm, x * maxnorm / np.maximum(norms, 1e-30), x)


def renorm_samples(r: Rng) -> list[S]:
    part = np.zeros((2, 3))
    part[1] = [3.0, 4.0, 1.0]
    return [
        S(r.normal((3, 4)), 2, 0, 1.0),
        S(r.normal((3, 4)), 1, 1, 2.0),
        S(r.normal((2, 3, 2)), 1.5, -1, 1.0),
        S(r.normal((3, 4)), np.inf, 0, 0.5),
        S(r.complex((3, 4)), 2, 0, 1.0),
        S(part, 2, 0, 1.0),
        S(r.normal((3, 4)), 2, 0, 100.0),
    ]


# ---- calculus ------------------------------------------------------------------------------------


def with_spacing(f: Any) -> Any:
    def reference(y: np.ndarray, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
        return f(y, x, 1.0 if dx is None else dx, dim)

    return reference


def trapezoid(y: np.ndarray, x: Any, dx: float, dim: int) -> Any:
    from scipy.integrate import trapezoid as scipy_trapezoid

    return scipy_trapezoid(y, x, dx=dx, axis=dim)


def cumulative_trapezoid(y: np.ndarray, x: Any, dx: float, dim: int) -> Any:
    from scipy.integrate import cumulative_trapezoid as scipy_cumulative

    if x is not None and x.ndim > 1:
        x = np.broadcast_to(x, y.shape)
    return scipy_cumulative(y, x, dx=dx, axis=dim)


def trapezoid_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((5,))),
        S(r.normal((3, 4)), dx=0.5),
        S(r.normal((3, 4)), dim=0),
        S(r.normal((3, 4)), r.normal((4,))),
        S(r.normal((3, 4)), r.normal((3,)), dim=0),
        S(r.normal((3, 4)), r.normal((3, 4)), dim=0),
        S(r.normal((2, 3, 4)), r.normal((3, 4)), dim=1),
        S(r.normal((1,))),
        S(r.complex((2, 3)), dim=-2),
    ]


TRAPEZOID_ERRORS = [
    E(S(np.array([True, False])), RuntimeError, "bool"),
    E(S(np.ones((3,)), np.ones((2,))), RuntimeError, "one `x` value for each sample"),
    E(S(np.ones((3,)), np.ones((3,)), dx=2), TypeError, "not both"),
    E(S(np.ones(())), IndexError, "no dimensions"),
    E(S(np.ones((3,)), dim=1), IndexError, "out of range"),
]


def gradient(x: np.ndarray, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    return tuple(np.gradient(x, s, axis=a, edge_order=edge_order) for s, a in zip(steps, axes))


def gradient_samples(r: Rng) -> list[S]:
    at = [np.array([0.0, 0.5, 2.0]), np.array([1.0, 1.5, 3.0, 3.25])]
    return [
        S(r.normal((5,))),
        S(r.normal((3, 4)), spacing=0.5),
        S(r.normal((3, 4)), spacing=[0.5, 2.0]),
        S(r.normal((3, 4)), dim=1, edge_order=2),
        S(r.normal((3, 4)), spacing=at),
        S(r.normal((3, 4)), spacing=at, edge_order=2),
        S(r.normal((3, 4)), spacing=at[::-1], dim=(1, 0)),
        S(r.normal((2, 2)), dim=(0, -1)),
        S(r.complex((3,))),
    ]


OPS = [
    Op(
        "histc",
        histc,
        histc_samples,
        grad=False,
        errors=[
            E(S(np.ones((3,)), 0), RuntimeError, "bins must be > 0"),
            E(S(np.ones((3,)), 2, 2, 1), RuntimeError, "max must be larger"),
            E(S(np.array([1.0, np.nan])), RuntimeError, "not finite"),
            E(S(np.ones((3,)), 2, 0, np.inf), RuntimeError, "not finite"),
            E(S(np.array([1, 2])), NotImplementedError, "floating point"),
            E(S(np.ones((3,)), 1.5), TypeError, "'bins'"),
        ],
    ),
    Op(
        "histogram",
        histogram,
        histogram_samples,
        grad=False,
        why="data",
        errors=[
            E(S(np.ones((3,)), 0), RuntimeError, "bins must be > 0"),
            E(S(np.ones((3,)), 2, range=(3.0, 1.0)), RuntimeError, "min should not exceed max"),
            E(S(np.ones((3,)), np.ones((2,)), range=(0.0, 1.0)), TypeError, "range"),
            E(S(np.ones((3,)), 2, weight=np.ones((2,))), RuntimeError, "same shape"),
            E(S(np.ones((3,)), "auto"), TypeError, "'bins'"),
        ],
    ),
    Op(
        "histogramdd",
        histogramdd,
        histogramdd_samples,
        grad=False,
        why="data",
        errors=[
            E(S(np.ones((3,)), 2), RuntimeError, "at least 2 dimensions"),
            E(S(np.ones((3, 2)), [2]), RuntimeError, "expected 2 bins"),
            E(S(np.ones((3, 2)), 2, range=(0.0, 1.0)), RuntimeError, "4 elements"),
        ],
    ),
    Op(
        "quantile",
        quantile_reference(np.quantile),
        quantile_samples,
        errors=QUANTILE_ERRORS,
    ),
    Op(
        "nanquantile",
        quantile_reference(np.nanquantile),
        quantile_samples,
        errors=QUANTILE_ERRORS,
    ),
    Op(
        "cov",
        cov,
        cov_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=[
            E(S(np.ones((2, 2, 2))), RuntimeError, "two or fewer"),
            E(S(np.array([True])), RuntimeError, "bool"),
            E(S(np.ones((2, 2)), fweights=np.ones((2,))), RuntimeError, "integral"),
            E(S(np.ones((2, 2)), fweights=np.array([-1, 2])), RuntimeError, "negative"),
            E(S(np.ones((2, 2)), fweights=np.array([1])), RuntimeError, "each of the 2"),
            E(S(np.ones((2, 2)), fweights=np.array([0, 0])), RuntimeError, "sum to zero"),
            E(S(np.ones((2, 2)), aweights=np.array([1, 1])), RuntimeError, "floating"),
        ],
    ),
    Op(
        "corrcoef",
        np.corrcoef,
        corrcoef_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=[E(S(np.ones((2, 2, 2))), RuntimeError, "two or fewer")],
    ),
    Op(
        "isin",
        np.isin,
        isin_samples,
        grad=False,
        errors=[
            E(S(1, 2), TypeError, "must be a Tensor"),
            E(S(np.array([1j]), 2), RuntimeError, "real numbers"),
            E(S(np.array([True]), 2), RuntimeError, "real numbers"),
        ],
    ),
    Op(
        "renorm",
        renorm,
        renorm_samples,
        FLOATS_32_64 + COMPLEX,
        rtol=1e4,  # the divisor is the norm and a little more: 1e-7, as in PyTorch
        errors=[
            E(S(np.ones((3,)), 2, 0, 1.0), RuntimeError, "at least 2 dimensions"),
            E(S(np.ones((3, 2)), 0, 0, 1.0), RuntimeError, "non-positive-norm"),
            E(S(np.ones((3, 2)), 2, 0, -1.0), RuntimeError, "maxnorm"),
            E(S(np.ones((3, 2)), 2, 2, 1.0), IndexError, "out of range"),
            E(S(np.array([[1, 2]]), 2, 0, 1.0), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "trapezoid",
        with_spacing(trapezoid),
        trapezoid_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=TRAPEZOID_ERRORS,
    ),
    Op(
        "trapz",
        with_spacing(trapezoid),
        trapezoid_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=TRAPEZOID_ERRORS,
    ),
    Op(
        "cumulative_trapezoid",
        with_spacing(cumulative_trapezoid),
        trapezoid_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=TRAPEZOID_ERRORS,
    ),
    Op(
        "gradient",
        gradient,
        gradient_samples,
        FLOATS_32_64 + COMPLEX,
        out=False,
        errors=[
            E(S(np.ones((2,)), edge_order=2), RuntimeError, "edge_order"),
            E(S(np.ones((2,)), edge_order=3), RuntimeError, "edge_order"),
            E(S(np.ones((2, 2)), spacing=[1.0]), RuntimeError, "list of length 2"),
            E(S(np.ones((2, 2)), dim=(0, 0)), RuntimeError, "multiple times"),
            E(S(np.ones((2,)), spacing=[np.ones((3,))]), RuntimeError, "one coordinate"),
        ],
    ),
]
