"""How close vectorised functions come to the true values, over the whole range of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import clew

INF = float("inf")


def expit(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


# Function: units in the last place that a float32 result may be off, float64 reference.
BOUNDS: dict[str, tuple[float, Callable[[Any], Any]]] = {
    "exp": (1, np.exp),
    "exp2": (1, np.exp2),
    "expm1": (0.55, np.expm1),
    "log": (1, np.log),
    "log2": (1, np.log2),
    "log10": (1, np.log10),
    "log1p": (0.55, np.log1p),
    "sqrt": (0.5, np.sqrt),
    "rsqrt": (1.5, lambda x: 1 / np.sqrt(x)),
    "reciprocal": (0.5, lambda x: 1 / x),
    "tanh": (0.55, np.tanh),
    "sinh": (1, np.sinh),
    "cosh": (1, np.cosh),
    "asinh": (1, np.arcsinh),
    "acosh": (1, np.arccosh),
    "atanh": (1, np.arctanh),
    "sin": (0.6, np.sin),
    "cos": (0.6, np.cos),
    "tan": (1.4, np.tan),
    "asin": (1.25, np.arcsin),
    "acos": (2, np.arccos),
    "atan": (2, np.arctan),
    "sigmoid": (2.5, expit),
    "erf": (1, sp.erf),
    "erfc": (1, sp.erfc),
    "erfinv": (0.55, sp.erfinv),
    "special.ndtr": (1, sp.ndtr),
}
POW_BOUND = 1.25
SHORT_POW_BOUND = 1.0  # exponents that are small multiples of a half
CUBE_BOUND = 1.5  # two products, each rounded, as PyTorch's
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    INF,
    -INF,
    float("nan"),
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
]


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place of the float32 result; 0 for the same special values."""
    near = want.astype(np.float32)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(near), np.float32(3e38))).astype(np.float64)
        off = np.abs(got.astype(np.float64) - want) / unit
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    # A result may overflow where the true value is within rounding of the largest number.
    edge = np.isinf(got) & (np.abs(want) > 3.4028233e38)
    return np.where(same | edge, np.where(np.isfinite(near), np.minimum(off, 0.5), 0), off)


def worst(f: Any, reference: Callable[[Any], Any], bits: np.ndarray) -> tuple[float, float]:
    """The largest distance and where it is."""
    x = bits.astype(np.uint32).view(np.float32)
    got = f(clew.from_numpy(x)).numpy()
    with np.errstate(all="ignore"):
        off = ulps(got, np.asarray(reference(x.astype(np.float64))))
    at = int(np.argmax(np.where(np.isnan(off), INF, off)))
    return float(off[at]), float(x[at])


def function(name: str) -> Any:
    return clew.special.ndtr if name == "special.ndtr" else getattr(clew, name)


@pytest.mark.parametrize("name", BOUNDS)
def test_float32(name: str):
    bound, reference = BOUNDS[name]
    special = np.array(SPECIAL, dtype=np.float32).view(np.uint32)
    sample = np.arange(0, 1 << 32, 32771)
    for bits in (special, sample):
        off, x = worst(function(name), reference, bits)
        assert off <= bound, f"{name}({x!r}) is {off} ulp off"
    with np.errstate(all="ignore"):
        odd = reference(np.float64(0)) == 0
    if odd:
        zeros = function(name)(clew.tensor([0.0, -0.0])).numpy()
        np.testing.assert_array_equal(np.signbit(zeros), [False, True])


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_every_float32(name: str):
    bound, reference = BOUNDS[name]
    # Pieces that stay in the cache: the whole takes a minute or two a function.
    for begin in range(0, 1 << 32, 1 << 18):
        off, x = worst(function(name), reference, np.arange(begin, begin + (1 << 18)))
        assert off <= bound, f"{name}({x!r}) is {off} ulp off"


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu_is_precise_in_its_tail_too(form: str):
    x = np.concatenate([np.linspace(-12, 12, 200_001), np.geomspace(1e-30, 1, 1000)])
    x = np.concatenate([x, -x]).astype(np.float32)
    wide = x.astype(np.float64)
    k = np.sqrt(2 / np.pi)
    if form == "none":
        gate = sp.ndtr(wide)
        slope = gate + wide * np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    else:
        gate = expit(2 * k * (wide + 0.044715 * wide**3))
        slope = gate + wide * gate * (1 - gate) * 2 * k * (1 + 3 * 0.044715 * wide * wide)
    t = clew.from_numpy(x).requires_grad_()
    got = clew.nn.functional.gelu(t, approximate=form)
    got.backward(clew.ones(len(x)))
    # The exponent of a tail is as long as 87, and rounded to 24 bits.
    normal = gate > 1e-36
    np.testing.assert_allclose(got.detach().numpy()[normal], (wide * gate)[normal], rtol=1.4e-5)
    assert np.abs(got.detach().numpy()[~normal]).max(initial=0) < 1e-34
    np.testing.assert_allclose(t.grad.numpy(), slope, rtol=0, atol=4e-7)


def test_gelu_of_every_bfloat16():
    """Shorter polynomials are enough: nearly all results are the nearest ones."""
    x = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
    x = x[np.isfinite(x)]
    t = clew.from_numpy(x).to(clew.bfloat16)
    want = x.astype(np.float64) * np.exp(sp.log_ndtr(x.astype(np.float64)))
    nearest = clew.from_numpy(want.astype(np.float32)).to(clew.bfloat16)
    got = clew.nn.functional.gelu(t)
    normal = np.abs(want) > 1.2e-38
    off = np.abs(got.view(clew.int16).long() - nearest.view(clew.int16).long()).numpy()[normal]
    assert off.max() <= 1 and (off > 0).sum() <= 5


def test_gelu_of_the_ends():
    ends = clew.tensor([INF, 3e38, -3e38, float("nan"), 0.0, -0.0])
    got = clew.nn.functional.gelu(ends).numpy()
    np.testing.assert_array_equal(got, np.float32([INF, 3e38, 0, np.nan, 0, 0]))
    assert np.signbit(got).tolist()[4:] == [False, True]


@pytest.mark.parametrize("name, reference", [("lgamma", sp.gammaln), ("digamma", sp.digamma)])
def test_gamma_functions(name: str, reference: Any):
    r = np.random.default_rng(0)
    x = np.concatenate(
        [
            r.integers(0, 1 << 32, 100_000).astype(np.uint32).view(np.float32),
            r.uniform(-12, 12, 100_000).astype(np.float32),
            1 + r.uniform(-1, 1, 20_000).astype(np.float32) ** 9,
            2 + r.uniform(-1, 1, 20_000).astype(np.float32) ** 9,
            np.float32([*SPECIAL, -3, -7, 8, 1e30, -1e30, 0.5, -0.5]),
        ]
    ).astype(np.float32)
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
        got = getattr(clew, name)(clew.from_numpy(x)).numpy()
        off = ulps(got, want)
        near_root = np.abs(got - want) <= 2e-12
    if name == "digamma":
        assert got[x == 0].tolist() == np.where(np.signbit(x[x == 0]), INF, -INF).tolist()
    bad = (off > 1) & ~near_root & ~((name == "digamma") & (x == 0))
    assert not bad.any(), (x[bad][:5], got[bad][:5], want[bad][:5])


def pairs() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    x = r.integers(0, 1 << 32, 100_000).astype(np.uint32).view(np.float32)
    y = r.integers(0, 1 << 32, 100_000).astype(np.uint32).view(np.float32)
    mild = r.uniform(-4, 4, (2, 100_000)).astype(np.float32)
    whole = np.stack([mild[0], np.round(mild[1] * 5)]).astype(np.float32)
    edges = np.array([*SPECIAL, 0.5, -2.0, -3.0, 7.0, 1e30, -1e30], dtype=np.float32)
    a, b = (g.ravel() for g in np.meshgrid(edges, edges))
    return np.concatenate([x, mild[0], whole[0], a]), np.concatenate([y, mild[1], whole[1], b])


def test_pow():
    x, y = pairs()
    got = clew.pow(clew.from_numpy(x), clew.from_numpy(y)).numpy()
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    off = ulps(got, want)
    assert off.max() <= POW_BOUND, (x[off.argmax()], y[off.argmax()])
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def test_pow_where_the_logarithm_is_small():
    # Its error grows with the exponent, which is greatest where x is near 1.
    r = np.random.default_rng(1)
    x = np.concatenate([r.uniform(0.9, 1.2, 300_000), 1 + r.uniform(-1, 1, 100_000) ** 9])
    x = x.astype(np.float32)[x > 0]
    with np.errstate(all="ignore"):
        top = np.minimum(150 / np.abs(np.log2(x.astype(np.float64))), 3e38)
        y = (r.uniform(-1, 1, len(x)) * top).astype(np.float32)
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    off = ulps(clew.pow(clew.from_numpy(x), clew.from_numpy(y)).numpy(), want)
    assert off.max() <= POW_BOUND, (x[off.argmax()], y[off.argmax()])


@pytest.mark.parametrize("at", [0, 5, 511, 700])
@pytest.mark.parametrize("unlike", [0.0, -2.0, 1e-40, 3e38, INF, float("nan")])
def test_neighbours_change_no_bit_of_a_power(at: int, unlike: float):
    x = np.random.default_rng(2).uniform(0.01, 3, 701).astype(np.float32)
    alone = (clew.from_numpy(x) ** 2.7).numpy()
    x[at] = unlike
    for got in (clew.from_numpy(x) ** 2.7, clew.from_numpy(np.stack([x, x], 1))[:, 0] ** 2.7):
        np.testing.assert_array_equal(np.delete(got.numpy(), at), np.delete(alone, at))
        np.testing.assert_array_equal(got.numpy()[at], (clew.tensor([unlike]) ** 2.7).numpy()[0])


EXPONENTS = [*(h / 2 for h in range(-10, 11)), 2.7, -0.3, 1e30]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_pow_of_a_constant(exponent: float):
    bits = np.concatenate([np.arange(0, 1 << 32, 32771), np.float32(SPECIAL).view(np.uint32)])
    x = bits.astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(len(x), np.float32(exponent), np.float64))
    for got in (
        clew.from_numpy(x) ** exponent,
        clew.from_numpy(np.stack([x, x], 1))[:, 1] ** exponent,  # every other number
        clew.from_numpy(x.copy()).pow_(exponent),
    ):
        off = ulps(got.numpy(), want)
        short = abs(exponent) <= 4 and 2 * exponent == round(2 * exponent)
        bound = CUBE_BOUND if exponent == 3 else SHORT_POW_BOUND if short else POW_BOUND
        assert off.max() <= bound, x[off.argmax()]
        exact = (want == 0) | np.isinf(want)
        np.testing.assert_array_equal(np.signbit(got.numpy()[exact]), np.signbit(want[exact]))


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("recorded", [False, True])
def test_slope_of_pow(exponent: float, dtype: Any, recorded: bool):
    r = np.random.default_rng(2)
    x, g = r.uniform(-3, 3, (2, 700)).astype(dtype)
    x[:5] = [0, -0.0, INF, -INF, float("nan")]
    exponent = float(np.float32(exponent))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        want = (g * (exponent * np.power(wide, np.full(700, exponent - 1)))).astype(dtype)
        if exponent in (0, 1):
            want = g * dtype(exponent)
    t = clew.from_numpy(x).requires_grad_()
    (t**exponent).backward(clew.from_numpy(g), create_graph=recorded)
    rtol = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(t.grad.detach().numpy(), want, rtol=rtol)
    # From numbers that do not lie side by side.
    s = clew.from_numpy(np.stack([x, x], 1)).requires_grad_()
    (s[:, 0] ** exponent).backward(clew.from_numpy(g), create_graph=recorded)
    np.testing.assert_allclose(s.grad.detach().numpy()[:, 0], want, rtol=rtol)
    t.grad = s.grad = None  # recorded ones hold their leaves, which hold them


@pytest.mark.parametrize(
    "name, reference, bound",
    [
        ("atan2", np.arctan2, 1),
        ("hypot", np.hypot, 1),
        ("fmod", np.fmod, 0),
        ("remainder", np.remainder, 1),
        ("logaddexp", np.logaddexp, None),
        ("logaddexp2", np.logaddexp2, None),
    ],
)
def test_two_numbers(name: str, reference: Any, bound: float | None):
    x, y = pairs()
    got = getattr(clew, name)(clew.from_numpy(x), clew.from_numpy(y)).numpy()
    with np.errstate(all="ignore"):
        wide = np.float32 if name in ("fmod", "remainder") else np.float64
        want = reference(x.astype(wide), y.astype(wide)).astype(np.float64)
    if bound is None:
        # Where terms of opposite signs cancel, the bound is relative to the larger one.
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-6, atol=2e-6)
    else:
        off = ulps(got, want)
        assert off.max() <= bound, (x[off.argmax()], y[off.argmax()])


WIDE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atanh": np.arctanh,
}
# The others are within 3.5 units.
WIDE_BELOW_1 = ("exp", "exp2", "expm1", "log", "log1p", "tanh", "sinh", "cosh", "atanh")
# Where products are not rounded, what they would lose is put back.
WIDE_CLOSE = {"tanh": 0.75, "log1p": 0.8, "sin": 0.65, "cos": 0.65}
if clew.backends.cpu.get_cpu_capability() == "DEFAULT":
    WIDE_CLOSE = {}


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider")
@pytest.mark.parametrize("name", WIDE)
def test_float64(name: str):
    r = np.random.default_rng(1)
    bits = r.integers(0, 1 << 63, 20_000).view(np.float64) * r.choice([-1, 1], 20_000)
    x = np.concatenate([bits, r.normal(size=20_000), r.uniform(-1e5, 1e5, 20_000), SPECIAL])
    x = np.concatenate([x, r.uniform(-0.6, 0.6, 40_000)])
    x = x[~np.isnan(x)]
    got = getattr(clew, name)(clew.from_numpy(x)).numpy()
    with np.errstate(all="ignore"):
        want = WIDE[name](x.astype(np.longdouble))
        near = want.astype(np.float64)
        off = np.abs(got - want) / np.spacing(np.minimum(np.abs(near), 1e308))
    off = np.where((got == near) | (np.isnan(got) & np.isnan(near)), 0, off)
    bound = WIDE_CLOSE.get(name, 1 if name in WIDE_BELOW_1 else 3.5)
    assert off.max() <= bound, (name, x[off.argmax()])
    zero = near == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(near[zero]))


def wide_pairs() -> tuple[Any, Any]:
    r = np.random.default_rng(2)
    bits = r.integers(0, 1 << 63, (2, 20_000)).view(np.float64) * r.choice([-1, 1], (2, 20_000))
    near = r.normal(size=(2, 40_000))
    sizes = np.exp2(r.integers(-40, 40, 40_000))
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    return tuple(np.concatenate([bits, near, near * [np.ones(40_000), sizes], special], 1))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider")
@pytest.mark.parametrize(
    ("name", "reference", "bound"),
    [("atan2", np.arctan2, 2.5), ("hypot", np.hypot, 1.5), ("fmod", np.fmod, 0)],
)
def test_two_float64(name: str, reference: Any, bound: float):
    x, y = wide_pairs()
    got = getattr(clew, name)(clew.from_numpy(x), clew.from_numpy(y)).numpy()
    with np.errstate(all="ignore"):
        # Remainders are exact numbers of 64 bits.
        wide = np.float64 if name == "fmod" else np.longdouble
        want = reference(x.astype(wide), y.astype(wide))
        near = want.astype(np.float64)
        off = np.abs(got - want) / np.spacing(np.minimum(np.abs(near), 1e308))
    off = np.where((got == near) | (np.isnan(got) & np.isnan(near)), 0, off)
    assert off.max() <= bound, (x[off.argmax()], y[off.argmax()])
    np.testing.assert_array_equal(
        np.signbit(got), np.where(np.isnan(near), np.signbit(got), np.signbit(near))
    )


@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_float64_remainders_of_one_sign(name: str):
    x, y = wide_pairs()
    got = getattr(clew, name)(clew.from_numpy(x), clew.from_numpy(y)).numpy()
    with np.errstate(all="ignore"):
        want = (np.remainder if name == "remainder" else np.floor_divide)(x, y)
    usual = np.isfinite(x) & np.isfinite(y) & (y != 0)
    np.testing.assert_array_equal(got[usual], want[usual])


def wide_erf(x: Any) -> Any:
    """In long double: a series of positive terms."""
    z = np.abs(x.astype(np.longdouble))
    term, total = z, z.copy()
    for k in range(1, 180):
        term = term * 2 * z * z / (2 * k + 1)
        total += term
    return np.copysign(2 / np.sqrt(np.arccos(np.longdouble(-1))) * np.exp(-z * z) * total, x)


def wide_erfc(x: Any) -> Any:
    """In long double: from 1.5 on a continued fraction, below that what erf leaves."""
    z = np.maximum(x.astype(np.longdouble), 1.5)
    below = z
    for k in range(300, 0, -1):
        below = z + np.longdouble(k) / 2 / below
    far = np.exp(-z * z) / (np.sqrt(np.arccos(np.longdouble(-1))) * below)
    return np.where(x < 1.5, 1 - wide_erf(np.clip(x, -7, 1.5)), far)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider")
@pytest.mark.parametrize(
    ("name", "reference", "least", "most"),
    [("erf", wide_erf, -6, 6), ("erfc", wide_erfc, -7, 26)],
)
def test_error_functions_of_float64(name: str, reference: Any, least: float, most: float):
    r = np.random.default_rng(3)
    tiny = np.exp2(r.uniform(-1000, 0, 5_000)) * r.choice([-1, 1], 5_000)
    x = np.concatenate([r.normal(size=20_000), r.uniform(least, most, 20_000), tiny])
    x = np.concatenate([x, np.arange(-1000, 1000) / 256, np.nextafter(np.arange(1000) / 256, 9)])
    got, want = getattr(clew, name)(clew.from_numpy(x)).numpy(), reference(x)
    off = np.abs(got - want) / np.spacing(np.abs(want.astype(np.float64)))
    assert off.max() <= (1 if name == "erf" else 1.1), x[off.argmax()]


def test_ends_of_error_functions():
    x = clew.tensor([INF, -INF, float("nan"), -0.0, 30.0, -30.0], dtype=clew.float64)
    np.testing.assert_array_equal(clew.erf(x).numpy(), [1, -1, np.nan, 0, 1, -1])
    np.testing.assert_array_equal(clew.erfc(x).numpy(), [0, 2, np.nan, 1, 0, 2])
    assert np.signbit(clew.erf(x).numpy()[3])


def test_erfinv_of_float64():
    y = np.concatenate([np.linspace(-5.8, 5.8, 40_001), np.geomspace(1e-300, 1, 20_000)])
    x = sp.erf(y)
    tail = sp.erfc(np.abs(y))
    got = clew.erfinv(clew.from_numpy(x)).numpy()
    # Where erf is flat, x says less about y; ours must fit the x that it was given.
    want = np.where(np.abs(x) < 0.5, sp.erfinv(x), np.copysign(sp.erfcinv(1 - np.abs(x)), x))
    with np.errstate(all="ignore"):
        off = np.abs(got - want) / np.spacing(np.abs(want))
    off = np.where((got == want) | (tail == 0), 0, off)
    assert off.max() <= 8, y[off.argmax()]  # the reference is off by 4 or so itself
    if np.finfo(np.longdouble).nmant >= 63:
        # What erf() says of the result, in long double, and the slope say how far off it is.
        few = np.abs(got[(got != 0) & (np.abs(y) < 5.5)][::40])
        given = np.abs(x[(got != 0) & (np.abs(y) < 5.5)][::40])
        wide = few.astype(np.longdouble)
        slope = 2 / np.sqrt(np.arccos(np.longdouble(-1))) * np.exp(-wide * wide)
        beyond = np.where(few < 1.5, wide_erf(few) - given, (1 - given) - wide_erfc(few))
        assert (np.abs(beyond / slope) / np.spacing(few)).max() <= 0.7
    ends = clew.erfinv(clew.tensor([1.0, -1.0, 1.5, INF, float("nan"), -0.0], dtype=clew.float64))
    np.testing.assert_array_equal(ends.numpy(), [INF, -INF, np.nan, np.nan, np.nan, 0])
    assert np.signbit(ends.numpy()[5])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "special.sinc"])
def test_large_angles_beside_small_ones(name: str):
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    x[[7, 500]] = [3e8, -1e30]
    f = clew.special.sinc if name == "special.sinc" else getattr(clew, name)
    reference = np.sinc if name == "special.sinc" else getattr(np, name)
    keep = slice(None) if name != "special.sinc" else np.abs(x) < 10
    got = f(clew.from_numpy(x)).numpy()
    np.testing.assert_allclose(
        got[keep], reference(x.astype(np.float64))[keep], rtol=1e-5, atol=2e-7
    )


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "special.sinc"])
@pytest.mark.parametrize("at", [0, 300, 1023, 2999])
def test_same_bits_in_every_layout_beside_nan(name: str, at: int):
    f = clew.special.sinc if name == "special.sinc" else getattr(clew, name)
    x = clew.linspace(-3, 3, 3000)
    x[at] = float("nan")
    dense = f(x)
    spread = clew.zeros(6000)
    spread[::2] = x
    for other in (f(spread[::2]), getattr(x.clone(), name.split(".")[-1] + "_")()):
        np.testing.assert_array_equal(other.numpy(), dense.numpy())


# Gradients in one pass against those composed of operations, which create_graph makes.
SLOPES = """exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh asinh
acosh atanh square reciprocal abs erf""".split()


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16, clew.float16])
@pytest.mark.parametrize("name", [*SLOPES, "pow2", "pow3", "pow.5", "pow-1", "pow2.7", "div"])
def test_fused_gradients(name: str, dtype: Any):
    high = 1.0 if name in ("asin", "acos", "atanh") else 2.5
    low = 1.01 if name == "acosh" else 0.05
    x = clew.linspace(low, high, 700, dtype=clew.float64)[:-1].to(dtype).requires_grad_()
    y = clew.linspace(2, 1, 699, dtype=clew.float64).to(dtype).requires_grad_()
    inputs = [x]
    if name == "div":
        out, inputs = x / y, [x, y]
    elif name.startswith("pow"):
        out = x ** float(name[3:])
    else:
        out = getattr(clew, name)(x)
    g = clew.linspace(-1, 2, 699).to(dtype)
    fused = clew.autograd.grad(out, inputs, g, retain_graph=True)
    composed = clew.autograd.grad(out, inputs, g, create_graph=True)
    rtol = {clew.float64: 1e-13, clew.float32: 1e-5, clew.float16: 1e-2, clew.bfloat16: 4e-2}[dtype]
    for a, b in zip(fused, composed, strict=True):
        assert a.dtype == dtype and not a.requires_grad
        a, b = a.double().numpy(), b.detach().double().numpy()
        finite = np.isfinite(b)
        np.testing.assert_array_equal(np.isfinite(a), finite)
        np.testing.assert_allclose(a[finite], b[finite], rtol=rtol, atol=rtol / 10)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="nothing more precise to compare to")
@pytest.mark.parametrize(
    "x, y",
    [
        (lambda r, n: r.uniform(0.5, 2, n), lambda r, n: r.uniform(-1000, 1000, n)),
        (lambda r, n: np.exp(r.uniform(-700, 700, n)), lambda r, n: r.uniform(-1.01, 1.01, n)),
        (lambda r, n: 1 + r.uniform(-1e-3, 1e-3, n), lambda r, n: r.uniform(-6e5, 6e5, n)),
        (lambda r, n: 1 + r.uniform(-1e-10, 1e-10, n), lambda r, n: r.uniform(-6e12, 6e12, n)),
        (lambda r, n: r.uniform(0, 9, n), lambda r, n: r.integers(-40, 40, n) / 2),
    ],
)
def test_power_of_doubles(x, y):
    r = np.random.default_rng(0)
    a, b = x(r, 300_001), y(r, 300_001)
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.longdouble), b.astype(np.longdouble))
    near = want.astype(float)
    kept = np.isfinite(near) & (near > 1e-307)
    for got in (clew.tensor(a) ** clew.tensor(b), clew.tensor(a[:, None])[:, 0] ** clew.tensor(b)):
        off = np.abs(got.numpy()[kept] - want[kept]) / np.spacing(near[kept])
        assert off.max() <= 1


def test_power_of_doubles_at_the_edges():
    numbers = [*SPECIAL, 5e-324, 2.3e-308, 1.7e308, 2.0, -2.0, 0.5, 3.0, -3.0, 1e-300]
    a, b = (v.reshape(-1) for v in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    np.testing.assert_allclose((clew.tensor(a) ** clew.tensor(b)).numpy(), want, rtol=3e-16)


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "i0", "i0e", "i1", "i1e"])
def test_special_functions_of_floats(name: str):
    size = np.concatenate([np.linspace(0, 30, 100_001), np.logspace(-30, 30, 20_001), [INF]])
    x = np.concatenate([size, -size, [np.nan]]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = getattr(sp, name)(x.astype(np.float64))
        got = getattr(clew.special, name)(clew.from_numpy(x)).numpy()
        assert ulps(got, want).max() <= 1


def test_special_functions_of_doubles():
    r = np.random.default_rng(2)
    p = np.concatenate([r.uniform(0, 1, 20_000), 10 ** r.uniform(-300, -1, 5_000)])
    x = np.concatenate([r.uniform(-26, 60, 20_000), 10 ** r.uniform(-20, 10, 5_000)])
    y = np.concatenate([r.uniform(-60, 8, 20_000), -(10 ** r.uniform(-20, 6, 5_000))])
    for name, given, close in (("ndtri", p, 1e-14), ("erfcx", x, 1e-13), ("log_ndtr", y, 2e-14)):
        got = getattr(clew.special, name)(clew.from_numpy(given)).numpy()
        kept = np.abs(given - 0.5) > 1e-3  # where SciPy's ndtri() keeps its digits
        want = getattr(sp, name)(given)
        np.testing.assert_allclose(got[kept], want[kept], rtol=close, err_msg=name)
    # By mpmath, where they change from one form to another.
    for name, at, want in (
        ("ndtri", 0.03125, -1.8627318674216515),
        ("ndtri", 0.031249999999999997, -1.8627318674216515),
        ("ndtri", 0.5 + 2**-30, 2.3344794983332983e-09),
        ("ndtri", 1e-300, -37.0470962993612),
        ("erfcx", 27.5, 0.0205024473846148),
        ("erfcx", 27.500000000000004, 0.020502447384614795),
        ("erfcx", -26.0, 7.657724931490568e293),
        ("log_ndtr", -1.0, -1.8410216450092636),
        ("log_ndtr", -38.0, -726.5572160188201),
        ("log_ndtr", -38.00000000000001, -726.5572160188204),
    ):
        got = getattr(clew.special, name)(clew.tensor(at, dtype=clew.float64)).item()
        np.testing.assert_allclose(got, want, rtol=2e-15, err_msg=f"{name} of {at}")


def test_ends_of_special_functions_of_doubles():
    def of(name, *x):
        return getattr(clew.special, name)(clew.tensor(x, dtype=clew.float64)).numpy()

    nan = np.nan
    np.testing.assert_array_equal(
        of("ndtri", 0, 1, -0.5, 2, nan, 0.5), [-INF, INF, nan, nan, nan, 0]
    )
    np.testing.assert_array_equal(of("erfcx", INF, -INF, nan, 0, -27), [0, INF, nan, 1, INF])
    np.testing.assert_array_equal(of("log_ndtr", INF, -INF, nan), [0, -INF, nan])
