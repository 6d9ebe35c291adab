"""Samples of sums, means, extrema, variances, norms and logsumexp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import COMPLEX, FLOATS, INTS, E, Op, Rng, S

NUMBERS = FLOATS + COMPLEX


def axes(x: np.ndarray, dim: Any) -> Any:
    """dim as NumPy's axis: None and an empty tuple mean all; a 0-d array has one of its own."""
    if x.ndim == 0 or dim is None:
        return None
    if isinstance(dim, int):
        return dim
    return tuple(dim) or None


def over(f: Callable[..., Any]) -> Callable[..., Any]:
    """A reference with (input, dim, keepdim, dtype) from a NumPy reduction."""

    def reference(
        x: np.ndarray, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Any:
        return np.asarray(f(x, axis=axes(x, dim), keepdims=keepdim))

    return reference


def wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """Bool and integers summed as int64."""
    return over(lambda x, **k: f(x.astype(np.int64) if x.dtype.kind in "bui" else x, **k))


def dims(r: Rng, make: Callable[..., np.ndarray] | None = None) -> list[S]:
    make = make or r.normal
    return [
        S(make((3, 4))),
        S(make((3, 4)), 0),
        S(make((3, 4)), -1, True),
        S(make((2, 3, 4)), (0, 2)),
        S(make((2, 3, 4)), dim=(-1, 0), keepdim=True),
        S(make((2, 3)), ()),
        S(make(())),
        S(make(()), 0),
        S(make((1, 5)), 0),
    ]


def numbers(r: Rng) -> list[S]:
    empty = [S(np.zeros((0, 3)), 0), S(np.zeros((0, 3)), 1), S(np.zeros(0))]
    return [*dims(r), S(r.complex((2, 3)), 1), S(r.complex((2, 3))), *empty]


def with_nan(r: Rng) -> list[S]:
    x = r.normal((3, 4))
    x[0, 1] = x[2, 3] = np.nan
    return [*dims(r), S(x), S(x, 1), S(x, (0, 1), True)]


BAD_DIMS = [
    E(S(np.zeros((2, 3)), 2), IndexError, "[Dd]imension"),
    E(S(np.zeros((2, 3)), (0, -2)), RuntimeError, "multiple times"),
]


def prod(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    return np.asarray(np.prod(x, axis=axes(x, dim), keepdims=keepdim))


def prods(r: Rng) -> list[S]:
    x = r.normal((3, 4))
    x[0, 1] = x[2, 1] = x[2, 3] = 0
    y = r.normal((2, 3))
    y[1, 2] = 0
    return [
        S(r.normal((3, 4))),
        S(r.normal((3, 4)), 1),
        S(r.normal((3, 4)), dim=0, keepdim=True),
        S(r.normal(())),
        S(r.normal(()), -1),
        S(x, 0),
        S(x, 1),
        S(x),
        S(y),
        S(y, 0),
        S(r.complex((2, 2)), 1),
        S(r.complex(3)),
        S(np.zeros((0, 2)), 0),
        S(r.normal((1, 3)), 0),
    ]


def boolean(f: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        axis = None if dim is None or x.ndim == 0 else dim
        got = np.asarray(f(x != 0, axis=axis, keepdims=keepdim))
        return got.astype(np.uint8) if x.dtype == np.uint8 else got

    return reference


def boolean_samples(r: Rng) -> list[S]:
    x = r.integers(0, 2, (3, 4)).astype(float)
    return [
        S(x),
        S(x, 0),
        S(x, -1, True),
        S(x, (0, 1)),
        S(x, ()),
        S(r.bools((2, 3)), 1),
        S(np.array(True)),
        S(np.array(0.0), 0),
        S(r.integers(0, 2, (3, 4)).astype(np.uint8), 1),
        S(np.array([np.nan, 0.0])),
        S(np.zeros(0)),
        S(np.zeros((0, 2)), 0),
        S(r.integers(0, 2, (2, 3)) * (1 + 1j), 1),
    ]


def extrema(r: Rng) -> list[S]:
    x = r.distinct((3, 4))
    nan = r.distinct((2, 3))
    nan[0, 1] = np.nan
    return [
        S(x),
        S(x, 0),
        S(x, -1, True),
        S(r.distinct((2, 3, 2)), (0, 2)),
        S(r.distinct((2, 3, 2)), dim=(1,), keepdim=True),
        S(x, ()),
        S(np.array(1.5)),
        S(np.array(1.5), 0),
        S(nan, 1),
        S(nan),
        S(np.zeros((0, 2)), 1),
        S(r.distinct((40, 70)), 1),
    ]


def max_reference(
    f: Callable[..., Any], arg: Callable[..., Any], pair: Callable[..., Any]
) -> Callable[..., Any]:
    def reference(
        x: np.ndarray, dim: Any = None, keepdim: bool = False, *, other: Any = None
    ) -> Any:
        if isinstance(dim, np.ndarray) or other is not None:
            return pair(x, dim if other is None else other)
        if dim is None:
            return np.asarray(f(x))
        if x.ndim == 0:
            return x, np.asarray(0)
        return f(x, axis=dim, keepdims=keepdim), arg(x, axis=dim, keepdims=keepdim)

    return reference


def max_samples(r: Rng) -> list[S]:
    x = r.distinct((3, 4))
    nan = r.distinct((3, 4))
    nan[1, 1] = nan[1, 3] = np.nan
    ties = np.array([[1, 2, 2], [0, 0, 0]])
    return [
        S(x),
        S(x, 0),
        S(x, -1, True),
        S(x, dim=1, keepdim=True),
        S(np.array(2.0)),
        S(np.array(2.0), 0),
        S(nan, 1),
        S(nan, 0),
        S(nan),
        S(ties, 1),
        S(x, r.distinct((3, 4)) + 0.05),
        S(x, r.distinct((4,)) + 0.05),
        S(r.distinct((2, 3)), other=r.distinct((2, 1)) + 0.05),
        S(r.distinct((3, 100, 2)), 1),
        S(np.zeros((0, 3)), 1),
        S(r.distinct((2, 300)), 1),
    ]


def arg(f: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return np.asarray(0)
        if dim is None:
            got = np.asarray(f(x))
            return got.reshape((1,) * x.ndim) if keepdim else got
        return f(x, axis=dim, keepdims=keepdim)

    return reference


def arg_samples(r: Rng) -> list[S]:
    x = r.distinct((3, 4))
    ties = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 1.0]])
    nan = np.array([1.0, np.nan, 3.0, np.nan])
    return [
        S(x),
        S(x, 0),
        S(x, 1, True),
        S(x, keepdim=True),
        S(np.array(1.0)),
        S(np.array(1.0), 0),
        S(ties, 1),
        S(ties),
        S(nan),
        S(r.distinct((5, 200)), 1),
        S(r.distinct((5, 200)).T.copy(), 0),
        S(np.zeros((0, 3)), 1),
    ]


def no_elements(**kwargs: Any) -> E:
    return E(
        S(np.zeros((2, 0)), **kwargs), RuntimeError if not kwargs else IndexError, "reduction dim"
    )


def var(
    x: np.ndarray,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    take = int(unbiased) if correction is None else correction
    axis = axes(x, dim)
    n = x.size if axis is None else np.prod([x.shape[a] for a in np.atleast_1d(axis)])
    centre = x.mean(axis=axis, keepdims=True)
    return np.asarray((np.abs(x - centre) ** 2).sum(axis=axis, keepdims=keepdim) / max(0, n - take))


def mean(
    x: np.ndarray,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> Any:
    dim = None if isinstance(dim, bool) else dim
    return np.asarray(x.mean(axis=axes(x, dim), keepdims=keepdim))


def var_samples(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4))),
        S(r.normal((3, 4)), 0),
        S(r.normal((3, 4)), 1, False),
        S(r.normal((3, 4)), -1, True, True),
        S(r.normal((3, 4)), False),
        S(r.normal((3, 4)), unbiased=True),
        S(r.normal((3, 4)), correction=0),
        S(r.normal((2, 3, 4)), dim=(0, 2), correction=2, keepdim=True),
        S(r.normal((3, 4)), dim=None, correction=0.5),
        S(r.normal((3, 4)) + 1000.0, 1),
        S(r.complex((3, 4)), 1),
        S(r.normal((3, 4)), ()),
        S(r.normal((2, 3)), dim=1, keepdim=True),
    ]


def norm(
    x: np.ndarray, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    p = 2 if p in ("fro", None) else p
    a, axis = np.abs(x), axes(x, dim)
    if p == 0:
        return np.asarray((a != 0).sum(axis=axis, keepdims=keepdim).astype(float))
    if np.isinf(p):
        return np.asarray((a.max if p > 0 else a.min)(axis=axis, keepdims=keepdim))
    return np.asarray((a**p).sum(axis=axis, keepdims=keepdim) ** (1 / p))


def norms(r: Rng) -> list[S]:
    return [
        S(r.normal((3, 4))),
        S(r.normal((3, 4)), 1, 0),
        S(r.normal((3, 4)), 2.0, (0, 1), True),
        S(r.normal((3, 4)), 3, 1),
        S(r.distinct((3, 4)), float("inf"), 1),
        S(r.distinct((3, 4)), float("-inf"), 0),
        S(r.normal((3, 4)), 0, 1),
        S(r.uniform((3, 4), 0.2, 1), 0.5, dim=-1),
        S(r.uniform((3, 4), 0.2, 1), -1.5, dim=0, keepdim=True),
        S(r.complex((3, 4)), 2, 1),
        S(r.complex((3, 4)), 1, 1),
        S(r.complex((2, 3)), 3, 1),
        S(r.complex((2, 3)), float("inf"), 1),
        S(np.array(-2.0)),
        S(np.zeros(0)),
        S(np.zeros((0, 2)), 1, 0),
    ]


def logsumexp(x: np.ndarray, dim: Any, keepdim: bool = False) -> Any:
    axis = axes(x, dim)
    x = x.astype(float)
    if x.size == 0:
        return np.log(np.exp(x).sum(axis=axis, keepdims=keepdim))
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    got = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return got if keepdim else np.asarray(got.squeeze(axis=axis))


def logsumexps(r: Rng) -> list[S]:
    big = r.normal((2, 3)) + 1000
    inf = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [np.inf, 0.0]])
    return [
        S(r.normal((3, 4)), 0),
        S(r.normal((3, 4)), (0, 1)),
        S(r.normal((2, 3, 4)), dim=(0, -1), keepdim=True),
        S(big, 1),
        S(inf, 1),
        S(np.array(2.0), 0),
        S(r.normal((3, 300)), 1),
        S(np.zeros((0, 2)), 0),
    ]


OPS = [
    Op("sum", wide(np.sum), numbers, dtypes=NUMBERS, integers=INTS, errors=BAD_DIMS),
    Op("nansum", wide(np.nansum), with_nan, dtypes=FLOATS, integers=INTS, errors=BAD_DIMS),
    Op(
        "mean",
        over(np.mean),
        numbers,
        dtypes=NUMBERS,
        errors=[*BAD_DIMS, E(S(np.arange(3)), RuntimeError, "floating point")],
    ),
    Op(
        "nanmean",
        over(np.nanmean),
        with_nan,
        errors=[E(S(np.arange(3)), RuntimeError, "floating point")],
    ),
    Op(
        "prod",
        prod,
        prods,
        dtypes=("float32", "float64", *COMPLEX),
        integers=("int64",),
        errors=[BAD_DIMS[0]],
    ),
    Op("any", boolean(np.any), boolean_samples, dtypes=NUMBERS, grad=False, errors=BAD_DIMS),
    Op("all", boolean(np.all), boolean_samples, dtypes=NUMBERS, grad=False, errors=BAD_DIMS),
    Op(
        "count_nonzero",
        lambda x, dim=None: np.asarray(np.count_nonzero(x, axis=axes(x, dim))),
        lambda r: [
            S(r.integers(0, 2, (3, 4)) * 1.0),
            S(r.integers(0, 2, (3, 4)) * 1.0, 1),
            S(r.bools((2, 3, 4)), (0, 2)),
            S(np.array(3.0)),
            S(np.zeros(0)),
        ],
        dtypes=FLOATS,
        grad=False,
        errors=BAD_DIMS,
    ),
    Op(
        "amax",
        over(np.max),
        extrema,
        dtypes=FLOATS,
        integers=INTS,
        errors=[*BAD_DIMS, no_elements(), no_elements(dim=1)],
    ),
    Op(
        "amin",
        over(np.min),
        extrema,
        dtypes=FLOATS,
        integers=INTS,
        errors=[*BAD_DIMS, no_elements(), no_elements(dim=1)],
    ),
    Op(
        "aminmax",
        lambda x, *, dim=None, keepdim=False: (
            over(np.min)(x, dim, keepdim),
            over(np.max)(x, dim, keepdim),
        ),
        lambda r: [
            S(r.distinct((3, 4))),
            S(r.distinct((3, 4)), dim=0),
            S(r.distinct((3, 4)), dim=-1, keepdim=True),
            S(np.array(1.0)),
        ],
        dtypes=FLOATS,
        integers=INTS,
        errors=[no_elements(), no_elements(dim=1)],
    ),
    Op(
        "max",
        max_reference(np.max, np.argmax, np.maximum),
        max_samples,
        dtypes=FLOATS,
        integers=INTS,
        errors=[
            BAD_DIMS[0],
            no_elements(),
            no_elements(dim=1),
            E(S(np.zeros(2) * 1j), NotImplementedError, "complex"),
        ],
    ),
    Op(
        "min",
        max_reference(np.min, np.argmin, np.minimum),
        max_samples,
        dtypes=FLOATS,
        integers=INTS,
        errors=[BAD_DIMS[0], no_elements(), no_elements(dim=1)],
    ),
    Op(
        "argmax",
        arg(np.argmax),
        arg_samples,
        dtypes=FLOATS,
        integers=INTS,
        grad=False,
        errors=[
            E(S(np.zeros((2, 0))), IndexError, "reduction dim"),
            E(S(np.array([True])), RuntimeError, "bool"),
        ],
    ),
    Op(
        "argmin",
        arg(np.argmin),
        arg_samples,
        dtypes=FLOATS,
        integers=INTS,
        grad=False,
        errors=[E(S(np.zeros((2, 0)), 1), IndexError, "reduction dim")],
    ),
    Op(
        "var",
        var,
        var_samples,
        dtypes=("float32", "float64", *COMPLEX),
        rtol=10,
        errors=[*BAD_DIMS, E(S(np.arange(3)), RuntimeError, "floating point")],
    ),
    Op(
        "std",
        lambda *a, **k: np.sqrt(var(*a, **k)),
        var_samples,
        dtypes=("float32", "float64", *COMPLEX),
        rtol=10,
        errors=BAD_DIMS,
    ),
    Op(
        "var_mean",
        lambda *a, **k: (var(*a, **k), mean(*a, **k)),
        var_samples,
        dtypes=("float32", "float64"),
        rtol=10,
        errors=BAD_DIMS,
    ),
    Op(
        "std_mean",
        lambda *a, **k: (np.sqrt(var(*a, **k)), mean(*a, **k)),
        var_samples,
        dtypes=("float32", "float64"),
        rtol=10,
        errors=BAD_DIMS,
    ),
    Op(
        "norm",
        norm,
        lambda r: [
            *norms(r),
            S(r.normal((2, 3)), "fro"),
            S(r.normal((2, 3)), dim=1),
            S(r.normal((2, 3)), None),
            S(r.normal((2, 3)), p="fro", dim=(0, 1)),
        ],
        dtypes=("float32", "float64", *COMPLEX),
        errors=[
            E(S(np.zeros(2), "x"), RuntimeError, "fro"),
            E(S(np.arange(2)), RuntimeError, "floating point"),
        ],
    ),
    Op(
        "linalg.vector_norm",
        norm,
        norms,
        dtypes=("float32", "float64", *COMPLEX),
        errors=[
            *[
                E(S(np.zeros((2, 0)), p, 1), RuntimeError, "no elements")
                for p in (float("inf"), -1.0)
            ],
            E(S(np.arange(2)), RuntimeError, "floating point"),
        ],
    ),
    Op("logsumexp", logsumexp, logsumexps, dtypes=FLOATS, integers=("int64",), errors=BAD_DIMS),
]
