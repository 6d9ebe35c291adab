"""Special functions through SciPy: Bessel, Airy, incomplete gamma; orthogonal polynomials."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from samples import FLOATS, E, Op, Rng, S, reduction, softmax

NOT_COMPLEX = E(S(np.ones(2) + 1j), NotImplementedError, "not implemented for complex")
NOT_TENSOR = [E(S("x"), TypeError, "must be Tensor"), E(S(1.0), TypeError, "must be Tensor")]


def bessel(name: str, reference: Callable[..., Any], low: float, high: float, **more: Any) -> Op:
    def samples(r: Rng) -> list[S]:
        found = [S(r.uniform(shape, low, high)) for shape in [(3, 4), (), (0, 3), (2, 1, 3)]]
        return found + ([S(np.array([0.0, 1e-3, 8.5, -8.5]))] if low < 0 else [])

    return Op(
        f"special.{name}",
        lambda x: reference(np.asarray(x, np.float64)),
        samples,
        dtypes=FLOATS,
        integers=("int32",) if low < 0 else (),
        errors=[NOT_COMPLEX, *NOT_TENSOR],
        **more,
    )


def polynomial(name: str, reference: Callable[..., Any]) -> Op:
    exact = np.vectorize(lambda x, n: reference(int(n), x) if n >= 0 else 0.0, otypes=[float])

    def evaluate(x: Any, n: Any) -> np.ndarray:
        return exact(x, n) if np.broadcast(x, n).size else np.zeros(np.broadcast(x, n).shape)

    return Op(
        f"special.{name}",
        evaluate,
        lambda r: [
            S(r.uniform((3, 4), -1.5, 2.0), r.integers(0, 6, (3, 4))),
            S(r.uniform((2, 1), 0.0, 1.0), np.array([-1, 0, 1, 7, 8])),
            S(r.uniform((3,), 0.0, 1.0), 4),
            S(r.uniform((), 0.0, 1.0), np.array(3)),
            S(0.25, r.integers(0, 3, (3,))),
            S(r.uniform((0, 2)), 2),
            S(np.array([-1.0, 0.0, 1.0]), 5),
        ],
        dtypes=FLOATS,
        rtol=30.0,
        errors=[
            E(S(1.0, 2), TypeError, "at least one must be a Tensor"),
            E(S(np.ones(2), "n"), TypeError, "Tensor or number"),
            E(S(np.ones(2), 1j), NotImplementedError, "complex"),
            E(S(np.ones(2), np.ones(3)), RuntimeError, "do not broadcast"),
        ],
    )


def shifted(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, x: f(n, 2 * x - 1)


def third(n: int, x: float) -> float:
    """V_n = U_n - U_{n-1}"""
    return sp.eval_chebyu(n, x) - (sp.eval_chebyu(n - 1, x) if n else 0)


def fourth(n: int, x: float) -> float:
    """W_n = U_n + U_{n-1}"""
    return sp.eval_chebyu(n, x) + (sp.eval_chebyu(n - 1, x) if n else 0)


def incomplete(name: str, reference: Callable[..., Any], *, derivatives: bool) -> Op:
    """With whole numbers first, of which no derivative is asked, or with any."""

    def samples(r: Rng) -> list[S]:
        if derivatives:
            return [
                S(r.integers(1, 6, (3, 1)), r.uniform((4,), 0.2, 5.0)),
                S(r.integers(1, 6, ()), r.uniform((), 0.2, 5.0)),
                S(r.integers(1, 6, (2, 3)), r.uniform((2, 3), 0.2, 9.0)),
                S(r.integers(1, 6, (0, 3)), r.uniform((3,), 0.2, 5.0)),
            ]
        return [
            S(r.uniform((3, 1), 0.1, 6.0), r.uniform((4,), 0.0, 9.0)),
            S(r.uniform((), 20.0, 30.0), r.uniform((5,), 15.0, 40.0)),
            S(np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0])),
        ]

    return Op(
        name,
        reference,
        samples,
        dtypes=FLOATS,
        grad=derivatives,
        rtol=2.0,
        errors=[
            E(S(np.ones(2), 1.0), TypeError, "must be Tensor"),
            E(S(1.0, np.ones(2)), TypeError, "must be Tensor"),
            E(S(np.ones(2), np.ones(3)), RuntimeError, "do not broadcast"),
            E(S(np.ones(2), np.ones(2) * 1j), NotImplementedError, "complex"),
        ],
    )


OPS = [
    *(
        dataclasses.replace(op, name=f"special.{op.name}")
        for op in (*softmax.OPS, *reduction.OPS)
        if op.name in ("softmax", "log_softmax", "logsumexp")
    ),
    bessel("airy_ai", lambda x: sp.airy(x)[0], -6.0, 6.0),
    bessel("bessel_j0", sp.j0, -9.0, 9.0),
    bessel("bessel_j1", sp.j1, -9.0, 9.0),
    bessel("bessel_y0", sp.y0, 0.3, 9.0),
    bessel("bessel_y1", sp.y1, 0.3, 9.0),
    bessel("modified_bessel_i0", sp.i0, -4.0, 4.0, rtol=3.0),
    bessel("modified_bessel_i1", sp.i1, -4.0, 4.0, rtol=3.0),
    bessel("modified_bessel_k0", sp.k0, 0.3, 6.0),
    bessel("modified_bessel_k1", sp.k1, 0.3, 6.0),
    bessel("scaled_modified_bessel_k0", sp.k0e, 0.3, 30.0),
    bessel("scaled_modified_bessel_k1", sp.k1e, 0.3, 30.0),
    bessel("spherical_bessel_j0", lambda x: np.sinc(x / np.pi), -9.0, 9.0),
    polynomial("chebyshev_polynomial_t", sp.eval_chebyt),
    polynomial("chebyshev_polynomial_u", sp.eval_chebyu),
    polynomial("chebyshev_polynomial_v", third),
    polynomial("chebyshev_polynomial_w", fourth),
    polynomial("shifted_chebyshev_polynomial_t", shifted(sp.eval_chebyt)),
    polynomial("shifted_chebyshev_polynomial_u", shifted(sp.eval_chebyu)),
    polynomial("shifted_chebyshev_polynomial_v", shifted(third)),
    polynomial("shifted_chebyshev_polynomial_w", shifted(fourth)),
    polynomial("hermite_polynomial_h", sp.eval_hermite),
    polynomial("hermite_polynomial_he", sp.eval_hermitenorm),
    polynomial("laguerre_polynomial_l", sp.eval_laguerre),
    polynomial("legendre_polynomial_p", sp.eval_legendre),
    incomplete("igamma", sp.gammainc, derivatives=True),
    incomplete("igammac", sp.gammaincc, derivatives=True),
    incomplete("special.gammainc", sp.gammainc, derivatives=False),
    incomplete("special.gammaincc", sp.gammaincc, derivatives=False),
]
