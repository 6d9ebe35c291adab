"""Fourier transforms, linear algebra, special functions and grid sampling: what each call takes,
all threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench.timer import nanoseconds

UNIT = "us"
BETTER = "lower"

Cases = dict[str, Callable[[], object]]


def transforms(t: Any) -> Cases:
    """Lines, batches of lines and images, both ways."""
    cases: Cases = {}
    fft = t.fft
    for n in (64, 256, 1000, 1024, 1080, 4096, 4097, 65536, 2**20):
        line = t.randn(n, dtype=t.complex64)
        wave = t.randn(n)
        half = fft.rfft(wave)
        cases[f"fft of {n}"] = partial(fft.fft, line)
        cases[f"rfft of {n}"] = partial(fft.rfft, wave)
        cases[f"irfft of {n}"] = partial(fft.irfft, half, n=n)
    for n in (256, 1009, 4096, 65536, 2**20):
        double = t.randn(n, dtype=t.complex128)
        cases[f"fft of {n}, complex128"] = partial(fft.fft, double)
    for rows, n in ((1000, 16), (1000, 30), (1000, 64), (100, 1024)):
        lines, waves = t.randn(rows, n, dtype=t.complex64), t.randn(rows, n)
        cases[f"fft of {rows} lines of {n}"] = partial(fft.fft, lines)
        cases[f"rfft of {rows} lines of {n}"] = partial(fft.rfft, waves)
    for n in (256, 1024):
        image = t.randn(n, n)
        pairs, half = image.to(t.complex64), fft.rfft2(image)
        cases[f"fft2 {n}x{n}"] = partial(fft.fft2, pairs)
        cases[f"rfft2 {n}x{n}"] = partial(fft.rfft2, image)
        cases[f"irfft2 {n}x{n}"] = partial(fft.irfft2, half)
    sound, window = t.randn(4, 16000), t.hann_window(512)
    spectrum = t.stft(sound, 512, 128, window=window, return_complex=True)
    cases["stft 4x16000"] = lambda: t.stft(sound, 512, 128, window=window, return_complex=True)
    cases["istft 4x16000"] = lambda: t.istft(spectrum, 512, 128, window=window)
    return cases


def matrices(t: Any) -> Cases:
    """Factorizations, systems and decompositions, single and in batches."""
    la = t.linalg
    cases: Cases = {}
    shapes = ((4, 4), (32, 32), (128, 128), (512, 512), (1000, 4, 4), (500, 8, 8), (100, 32, 32))
    for shape in shapes:
        n = shape[-1]
        a = t.randn(*shape)
        even = a + a.mT
        positive = a @ a.mT + n * t.eye(n)
        sides = t.randn(*shape[:-1], 4)
        factors, upper = la.lu_factor(a), a.triu() + n * t.eye(n)
        low, ldl, reflections = la.cholesky(positive), la.ldl_factor(even), t.geqrf(a)
        calls: dict[str, Callable[[], object]] = {
            "solve": partial(la.solve, a, sides),
            "inv": partial(la.inv, a),
            "det": partial(la.det, a),
            "slogdet": partial(la.slogdet, a),
            "lu": partial(la.lu, a),
            "lu_factor_ex": partial(la.lu_factor_ex, a),
            "lu_solve": partial(la.lu_solve, *factors, sides),
            "cholesky": partial(la.cholesky, positive),
            "cholesky_solve": partial(t.cholesky_solve, sides, low),
            "solve_triangular": partial(la.solve_triangular, upper, sides, upper=True),
            "qr": partial(la.qr, a),
            "geqrf": partial(t.geqrf, a),
            "ormqr": partial(t.ormqr, *reflections, sides),
            "eigh": partial(la.eigh, even),
            "svd": partial(la.svd, a, full_matrices=False),
            "svdvals": partial(la.svdvals, a),
        }
        if n < 512:
            calls |= {
                "ldl_factor": partial(la.ldl_factor, even),
                "ldl_solve": partial(la.ldl_solve, *ldl, sides),
                "eigvalsh": partial(la.eigvalsh, even),
                "eig": partial(la.eig, a),
                "pinv": partial(la.pinv, a),
                "lstsq": partial(la.lstsq, a, sides),
                "matrix_exp": partial(la.matrix_exp, a),
            }
        where = "x".join(map(str, shape))
        cases |= {f"{name} {where}": call for name, call in calls.items()}
    return cases


def special(t: Any) -> Cases:
    """100,000 elements each."""
    x = t.rand(100_000) * 2 - 1
    degrees = t.randint(0, 12, (100_000,)).float()
    s = t.special
    return {
        "chebyshev_polynomial_t, degree 5": lambda: s.chebyshev_polynomial_t(x, 5),
        "chebyshev_polynomial_u, degree 30": lambda: s.chebyshev_polynomial_u(x, 30),
        "hermite_polynomial_h, degree 5": lambda: s.hermite_polynomial_h(x, 5),
        "laguerre_polynomial_l, degree 5": lambda: s.laguerre_polynomial_l(x, 5),
        "legendre_polynomial_p, degree 5": lambda: s.legendre_polynomial_p(x, 5),
        "legendre_polynomial_p, degrees of a tensor": lambda: s.legendre_polynomial_p(x, degrees),
        "bessel_j0": lambda: s.bessel_j0(x),
        "modified_bessel_i0": lambda: s.modified_bessel_i0(x),
        "gammainc": lambda: s.gammainc(x.abs() + 0.1, degrees),
        "zeta": lambda: s.zeta(x.abs() + 2, degrees + 1),
        "polygamma 1": lambda: s.polygamma(1, x.abs() + 0.1),
        **{
            name: partial(getattr(s, name), x)
            for name in ("erfcx", "log_ndtr", "i0e", "i1", "i1e", "airy_ai", "spherical_bessel_j0")
        },
        "ndtri": lambda: s.ndtri(x.abs()),
        "ndtr of float64": partial(s.ndtr, x.double()),
        "erfinv of float64": partial(s.erfinv, x.double()),
    }


def samples(t: Any) -> Cases:
    """Images of three channels, with places inside and outside."""
    f = t.nn.functional
    image, places = t.randn(4, 3, 64, 64), t.rand(4, 64, 64, 2) * 2.6 - 1.3
    return {
        f"grid_sample, {mode}, {padding}": partial(
            f.grid_sample, image, places, mode, padding, align_corners=False
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
    }


FAMILIES = (transforms, matrices, special, samples)
PARTS = 8


def run(t: Any, part: int) -> dict[str, float]:
    """Microseconds of every call of a part."""
    t.manual_seed(0)
    cases = {name: call for family in FAMILIES for name, call in family(t).items()}
    names = list(cases)
    each = -(-len(names) // PARTS)
    chosen = names[part * each : (part + 1) * each]
    for name in chosen[:3]:  # threads and libraries of a fresh process settle
        nanoseconds(cases[name], repeats=5)
    return {name: nanoseconds(cases[name], repeats=5) / 1e3 for name in chosen}
