"""Discrete Fourier transforms, frequencies and shifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samples import COMPLEX, FLOATS, FLOATS_32_64, E, Op, Rng, S

BAD_NORM = E(S(np.ones((2, 3)), norm="half"), RuntimeError, "normalization")
NOT_TENSOR = E(S([1.0, 2.0]), TypeError, "must be Tensor")


def reference(name: str) -> Callable[..., Any]:
    """NumPy's function with PyTorch's argument names."""
    numpy = getattr(np.fft, name)

    def line(x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return numpy(x, n, dim, norm or "backward")

    return line


def whole(one: str) -> Callable[..., Any]:
    """An n-dimensional transform, dim by dim, the halved one where it belongs."""
    half = getattr(np.fft, one)
    other = {"rfft": np.fft.fft, "irfft": np.fft.ifft, "hfft": np.fft.fft, "ihfft": np.fft.ifft}

    def grid(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        norm = norm or "backward"
        given = [s] if isinstance(s, int) else list(s or [])
        dims = list(range(-(len(given) or x.ndim), 0) if dim is None else dim)
        sizes = [None if v == -1 else v for v in given] or [None] * len(dims)
        steps = list(zip([other.get(one, half)] * (len(dims) - 1) + [half], sizes, dims))
        # A half spectrum comes first or last: c2r after all others, r2c before them.
        for f, n, d in steps[::-1] if one in ("rfft", "ihfft") else steps:
            n = x.shape[d] if n is None and f is not half else n
            if n is None and one in ("irfft", "hfft"):
                n = 2 * (x.shape[d] - 1)
            x = f(x, n, d, norm)
        return x

    return grid


def numbers(r: Rng, kind: str, shape: Any) -> np.ndarray:
    return r.complex(shape) if kind == "complex" else r.normal(shape)


def line(name: str, *kinds: str) -> Op:
    def samples(r: Rng) -> list[S]:
        return [
            s
            for k in kinds
            for s in (
                S(numbers(r, k, (3, 4))),
                S(numbers(r, k, (5,))),
                S(numbers(r, k, (0, 3))),
                S(numbers(r, k, (2, 3)), n=5, dim=0, norm="ortho"),
                S(numbers(r, k, (2, 5)), 4, norm="forward"),
                S(numbers(r, k, (2, 4, 2)), 7, 1, "backward"),
                S(numbers(r, k, (3,)), n=1),
                S(numbers(r, k, (3,)), n=2),
            )
        ]

    return Op(
        f"fft.{name}",
        reference(name),
        samples,
        dtypes=(FLOATS_32_64 if "real" in kinds else ()) + (COMPLEX if "complex" in kinds else ()),
        integers=("int32", "uint8") if "real" in kinds else (),
        rtol=3.0,
        errors=[
            BAD_NORM,
            NOT_TENSOR,
            E(S(np.ones((2, 3)), n=0), RuntimeError, "data points"),
            E(S(np.ones((2, 3)), n=2.0), TypeError, "must be int"),
            E(S(np.ones((2, 3)), dim=2), IndexError, "out of range"),
            E(S(np.ones(())), IndexError, "no dimensions"),
            E(S(np.ones((2, 3), np.float16)), RuntimeError, "float16"),
        ],
    )


def grid(name: str, *kinds: str) -> Op:
    def samples(r: Rng) -> list[S]:
        found = []
        for k in kinds:
            found += [
                S(numbers(r, k, (3, 4))),
                S(numbers(r, k, (3, 2, 5))),
                S(numbers(r, k, (3, 3)), s=(2, 4), norm="ortho"),
                S(numbers(r, k, (3, 2, 4)), s=(4, -1), dim=(0, 2), norm="forward"),
                S(numbers(r, k, (3, 4, 2)), dim=(1, 0)),
                S(numbers(r, k, (0, 2, 3)), dim=(1, 2)),
            ]
            if name.endswith("n"):
                found += [S(numbers(r, k, (3, 4)), s=3), S(numbers(r, k, (3, 4)), dim=(0,))]
                found += [S(numbers(r, k, (3, 2, 4)))]
        return found

    def fixed(x: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None) -> Any:
        return whole(name[:-1])(x, s, dim, norm)

    return Op(
        f"fft.{name}",
        whole(name[:-1]) if name.endswith("n") else fixed,
        samples,
        dtypes=(FLOATS_32_64 if "real" in kinds else ()) + (COMPLEX if "complex" in kinds else ()),
        integers=("int64",) if "real" in kinds else (),
        rtol=5.0,
        errors=[
            BAD_NORM,
            NOT_TENSOR,
            E(S(np.ones((2, 3)), s=(0, 2)), RuntimeError, "data points"),
            E(S(np.ones((2, 3)), s=(2, 2.0)), TypeError, "tuple of ints"),
            E(S(np.ones((2, 3)), dim=(1, 1)), RuntimeError, "unique"),
            E(S(np.ones((2, 3)), dim=(0, 2)), IndexError, "out of range"),
            E(S(np.ones((2, 3)), s=(2,), dim=(0, 1)), RuntimeError, "same length"),
        ],
    )


def moved(name: str) -> Callable[..., Any]:
    return lambda x, dim=None: getattr(np.fft, name)(x, dim)


def shift(name: str) -> Op:
    return Op(
        f"fft.{name}",
        moved(name),
        lambda r: [
            S(r.normal((3, 4))),
            S(r.normal((5,))),
            S(r.normal((2, 3, 5)), dim=(0, 2)),
            S(r.normal((2, 3)), 1),
            S(r.complex((4, 3))),
            S(r.normal((0, 3))),
        ],
        dtypes=FLOATS + COMPLEX,
        integers=("uint8", "int64"),
        out=False,
        errors=[
            NOT_TENSOR,
            E(S(np.ones((2, 3)), 2), IndexError, "out of range"),
            E(S(np.ones(())), RuntimeError, "at least one dim"),
        ],
    )


def frequencies(name: str) -> Op:
    return Op(
        f"fft.{name}",
        getattr(np.fft, name),
        lambda r: [S(5), S(8), S(1), S(6, 0.25), S(7, d=3)],
        dtypes=("float32",),
        grad=False,
        errors=[
            E(S(-1), RuntimeError, "negative"),
            E(S(2.5), TypeError, "must be int"),
            E(S(3, "a"), TypeError, "must be float"),
        ],
    )


OPS = [
    line("fft", "real", "complex"),
    line("ifft", "real", "complex"),
    line("rfft", "real"),
    line("ihfft", "real"),
    line("irfft", "real", "complex"),
    line("hfft", "real", "complex"),
    *(grid(name + suffix, "real", "complex") for name in ("fft", "ifft") for suffix in "2n"),
    *(grid(name + suffix, "real") for name in ("rfft", "ihfft") for suffix in "2n"),
    *(grid(name + suffix, "real", "complex") for name in ("irfft", "hfft") for suffix in "2n"),
    shift("fftshift"),
    shift("ifftshift"),
    frequencies("fftfreq"),
    frequencies("rfftfreq"),
]
