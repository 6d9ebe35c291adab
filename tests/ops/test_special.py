"""Special functions beyond single calls: special values, far derivatives, in-place forms."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.special as sp

import clew
from clew import special
from clew._ops import primitive as _primitive

INF = float("inf")
NAN = float("nan")


@pytest.mark.parametrize(
    "name, x, want",
    [
        ("airy_ai", [NAN, 0.0, 200.0, 1e10, INF], [NAN, 0.3550280538878172, 0.0, 0.0, NAN]),
        ("bessel_j0", [NAN, 0.0, INF, -INF], [NAN, 1.0, NAN, NAN]),
        ("bessel_j1", [NAN, 0.0, INF, 1e-320], [NAN, 0.0, NAN, 5e-321]),
        ("bessel_y0", [NAN, 0.0, -0.0, -1.0, -20.0, INF], [NAN, -INF, -INF, NAN, NAN, NAN]),
        ("bessel_y1", [NAN, 0.0, 1e-320, -1.0, -20.0, INF], [NAN, -INF, -INF, NAN, NAN, NAN]),
        ("modified_bessel_i0", [NAN, 0.0, INF, -INF], [NAN, 1.0, INF, INF]),
        ("modified_bessel_i1", [NAN, 0.0, 1e3, -1e3], [NAN, 0.0, INF, -INF]),
        ("modified_bessel_k0", [NAN, 0.0, INF, -1.0], [NAN, INF, 0.0, NAN]),
        ("modified_bessel_k1", [NAN, 0.0, INF, -1.0], [NAN, INF, 0.0, NAN]),
        ("scaled_modified_bessel_k0", [NAN, 0.0, INF, -1.0], [NAN, INF, 0.0, NAN]),
        ("scaled_modified_bessel_k1", [NAN, 0.0, INF, -1.0], [NAN, INF, 0.0, NAN]),
        ("spherical_bessel_j0", [NAN, 0.0, INF, -INF], [NAN, 1.0, 0.0, 0.0]),
    ],
)
def test_special_values(name: str, x: list[float], want: list[float]):
    got = getattr(special, name)(clew.tensor(x, dtype=clew.float64)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12)


# By mpmath, also beside zeros and where the forms change.
WAVES = {
    "bessel_j0": [
        (1e-3, 0.9999997500000156),
        (2.404825557695773, -6.10876525973673e-17),
        (5.5, -0.006843869417819197),
        (7.99, 0.17399001312793258),
        (8.01, 0.16929736911054297),
        (55.5, -0.028104074301152394),
        (100000.5, -0.002394121795089023),
        (1e9, 2.4687471886269195e-05),
    ],
    "bessel_j1": [
        (1e-3, 0.0004999999375000026),
        (3.8317059702075125, -6.149807356994906e-17),
        (7.0, -0.004682823482345833),
        (8.01, 0.236047103630834),
        (55.5, -0.10360300589593363),
        (100000.5, 0.0007964468940900655),
        (1e9, -5.210422641553878e-06),
    ],
    "bessel_y0": [
        (1e-300, -439.8351636227653),
        (1e-3, -4.471416611375923),
        (0.9, 0.005628306635205559),
        (3.9, 0.023375908198718962),
        (8.01, 0.22508990929357914),
        (55.5, -0.10334564480672326),
        (1e9, -5.2104226538976135e-06),
    ],
    "bessel_y1": [
        (1e-300, -6.366197723675813e299),
        (1e-3, -636.6221672311394),
        (2.2, 0.0014877892897633682),
        (5.4, 0.010127266682499378),
        (8.01, -0.15562145403809824),
        (55.5, 0.0271742478592964),
        (1e9, -2.4687471888874407e-05),
    ],
    "airy_ai": [
        (-5000.5, -0.027817660300508435),
        (-300.25, 0.1061463867046532),
        (-16.03, -0.11285577305951097),
        (-15.97, -0.17120265832239576),
        (-2.338107410459767, 2.743319340666283e-17),
        (-0.3, 0.43090309528558085),
        (0.1, 0.3292031299435381),
        (7.7, 1.0976168502027779e-07),
        (15.97, 4.688793757528868e-20),
        (16.03, 3.6849127083507325e-20),
        (100.25, 2.157793233204194e-292),
    ],
    "modified_bessel_k0": [
        (1e-300, 690.8914594138721),
        (0.001, 7.023688800562382),
        (0.5, 0.9244190712276659),
        (1.2, 0.31850822028659365),
        (1.98, 0.11672831439377142),
        (2.0, 0.11389387274953344),
        (2.02, 0.11113296775219438),
        (7.5, 0.00024917761635611437),
        (60.25, 1.0988671831029251e-27),
        (650.5, 1.523324475675588e-284),
    ],
    "modified_bessel_k1": [
        (1e-300, 9.999999999999999e299),
        (0.001, 999.9962381560856),
        (0.5, 1.656441120003301),
        (1.2, 0.43459239106071507),
        (1.98, 0.14359636526546382),
        (2.0, 0.13986588181652243),
        (2.02, 0.13624210839450016),
        (7.5, 0.0002652973901252895),
        (60.25, 1.1079491859981443e-27),
        (650.5, 1.524494913746167e-284),
    ],
    "scaled_modified_bessel_k0": [
        (1e-300, 690.8914594138721),
        (0.001, 7.030716002378251),
        (0.5, 1.5241093857739094),
        (1.2, 1.0574845322042197),
        (1.98, 0.8454331802451571),
        (2.0, 0.8415682150707714),
        (2.02, 0.8377564217582132),
        (7.5, 0.4505236991049157),
        (60.25, 0.16113420412604124),
        (650.5, 0.04913069391990584),
    ],
    "scaled_modified_bessel_k1": [
        (1e-300, 9.999999999999999e299),
        (0.001, 1000.9967345590684),
        (0.5, 2.731009708211786),
        (1.2, 1.4428975520532195),
        (1.98, 1.0400315672210565),
        (2.0, 1.0334768470686886),
        (2.02, 1.0270372827249308),
        (7.5, 0.4796689337910206),
        (60.25, 0.16246595861911767),
        (650.5, 0.04916844322119788),
    ],
    "spherical_bessel_j0": [
        (1e-3, 0.9999998333333416),
        (1.0, 0.8414709848078965),
        (20.5, 0.04862584362335606),
        (100000.5, -4.477443329355479e-06),
        (1e9, 5.458434494486995e-10),
    ],
}


@pytest.mark.parametrize("name", WAVES)
def test_values_of_waves(name: str):
    x, want = np.array(WAVES[name]).T
    for count in (len(x), 4001):  # all forms beside each other, and in vectors
        got = getattr(special, name)(clew.from_numpy(np.resize(x, count))).numpy()
        near_zeros = 1e-15 if "_y" in name else 1e-18 if name == "airy_ai" else 0.0
        np.testing.assert_allclose(got, np.resize(want, count), rtol=3e-15, atol=near_zeros)
    narrow = x[np.abs(x) < 1e6].astype(np.float32)
    wide = getattr(special, name)(clew.from_numpy(narrow.astype(np.float64))).float()
    assert clew.equal(getattr(special, name)(clew.from_numpy(narrow)), wide)


def test_slopes_of_airy():
    want = [-1.0363129919944605, -0.8993242539503824, -0.2405451272581546, -0.25713042190758617]
    want += [-1.8810281326437623e-19, -1.4810384777308174e-19, -2.161026559566748e-291]
    x = clew.tensor([-16.03, -15.97, -0.3, 0.1, 15.97, 16.03, 100.25], dtype=clew.float64)
    x.requires_grad_()
    special.airy_ai(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=3e-15)


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.float16])
def test_neighbours_of_another_kind_change_no_bit(name: str, dtype: clew.dtype):
    rng = np.random.default_rng(5)
    sizes = rng.choice([0.1, 7.0, 30.0, 3e3, 4e5], 1500)
    x = clew.from_numpy(rng.uniform(-1, 1, 1500) * sizes).to(dtype)
    x[::97] = clew.nan
    x[5::97] = clew.inf
    f = getattr(special, name)
    together = f(x)
    alone = clew.cat([f(v) for v in x.split(1)])
    in_order = f(x.sort().values)[x.argsort().argsort()]
    for other in (alone, in_order, f(x.repeat_interleave(2)[::2]), f(x.clone(), out=x)):
        assert clew.equal(together.nan_to_num(9.0), other.nan_to_num(9.0))


@pytest.mark.parametrize(
    "a, x, lower",
    [
        (0.0, 1.0, 1.0),
        (0.0, 0.0, NAN),
        (2.0, 0.0, 0.0),
        (2.0, INF, 1.0),
        (INF, 2.0, 0.0),
        (INF, INF, NAN),
        (-1.0, 2.0, NAN),
        (2.0, -1.0, NAN),
        (1e10, 1e10, 0.5),
    ],
)
def test_incomplete_gamma_values(a: float, x: float, lower: float):
    pair = [clew.tensor(v, dtype=clew.float64) for v in (a, x)]
    np.testing.assert_allclose(clew.igamma(*pair).item(), lower, rtol=1e-5)
    np.testing.assert_allclose(clew.igammac(*pair).item(), 1 - lower, rtol=1e-5)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_has_no_derivative_in_the_first_argument(name: str):
    a, x = (clew.tensor([1.5], requires_grad=True) for _ in range(2))
    y = getattr(clew, name)(a, x)
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match=f"the derivative for '{name}: input'"):
        y.sum().backward()
    getattr(clew, name)(a.detach(), x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize(
    "a, x, lower, upper",
    [
        (1e-10, 0.25, 0.9999999998955718, 1.0442826344499779e-10),
        (1e-10, 2.0, 0.9999999999951099, 4.890051071569974e-12),
        (0.015625, 0.75, 0.9946152850970194, 0.005384714902980605),
        (0.5, 1e-300, 1.1283791670955126e-150, 1.0),
        (0.5, 0.5, 0.6826894921370859, 0.3173105078629141),
        (0.25, 1.0625, 0.9380888140454896, 0.0619111859545104),
        (3.0, 1.0625, 0.09214929254681499, 0.907850707453185),
        (1.0, 1.1, 0.6671289163019205, 0.33287108369807955),
        (0.5, 5.0, 0.9984345977419975, 0.0015654022580025497),
        (0.5, 600.0, 1.0, 6.0995688148084334e-263),
        (19.5, 19.0, 0.4846554731677068, 0.5153445268322933),
        (19.5, 21.0, 0.6577941368839135, 0.3422058631160865),
        (20.5, 12.0, 0.015792370078999612, 0.9842076299210004),
        (59.0, 59.5, 0.5431190905243246, 0.45688090947567533),
        (60.0, 42.0, 0.005179176833427096, 0.9948208231665729),
        (60.0, 42.5, 0.006535433114423371, 0.9934645668855766),
        (60.0, 77.5, 0.9826926573501177, 0.017307342649882356),
        (60.0, 78.5, 0.986837286741882, 0.013162713258117973),
        (1000.0, 1010.0, 0.6276789447369947, 0.3723210552630053),
        (1000.0, 650.0, 2.957759012559303e-37, 1.0),
        (250000.0, 249000.0, 0.022642042198113287, 0.9773579578018867),
        (2.5, 1e-20, 3.0090111122547e-51, 1.0),
    ],
)
def test_shares_of_gamma(a: float, x: float, lower: float, upper: float):
    """By mpmath: both series, the continued fraction and Temme's expansion, and where they meet."""
    pair = [clew.tensor(v, dtype=clew.float64) for v in (a, x)]
    got = [clew.igamma(*pair).item(), clew.igammac(*pair).item()]
    np.testing.assert_allclose(got, [lower, upper], rtol=1e-13)
    narrow = [clew.tensor(v).expand(3, 2) for v in (a, x)]
    if all(np.float32(v) == v for v in (a, x)):
        got = [clew.igamma(*narrow)[2, 1].item(), clew.igammac(*narrow)[2, 1].item()]
        np.testing.assert_allclose(got, [lower, upper], rtol=1e-7, atol=1e-45)


def test_incomplete_gamma_derivative_at_zero():
    """The exponential distribution's density at 0 is 1."""
    x = clew.zeros(1, requires_grad=True)
    clew.igamma(clew.ones(1), x).sum().backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_in_place(name: str):
    a, x = clew.tensor([0.5, 2.0]), clew.tensor([1.0, 3.0])
    want = getattr(clew, name)(a, x)
    assert clew.equal(getattr(a, name)(x), want)
    version = a._version
    assert getattr(a, name + "_")(x) is a
    assert clew.equal(a, want) and a._version > version
    with pytest.raises(RuntimeError, match="broadcast shape"):
        getattr(a, name + "_")(clew.ones(3, 2))
    with pytest.raises(RuntimeError, match="can't be cast"):
        getattr(clew.ones(2, dtype=clew.int64), name + "_")(clew.ones(2))
    leaf = clew.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(leaf, name + "_")(x)


def test_in_place_gradient_reaches_the_second_argument():
    x = clew.tensor([1.0, 3.0], requires_grad=True)
    y = clew.tensor([2.0, 2.0])
    y.igamma_(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 * np.exp(-1), 3 * np.exp(-3)], rtol=1e-6)


def derivatives(f, x: float, order: int) -> list[float]:
    t = clew.tensor(x, dtype=clew.float64, requires_grad=True)
    y = f(t)
    found = [y.item()]
    for _ in range(order):
        (y,) = clew.autograd.grad(y, t, create_graph=True)
        found.append(y.item())
    return found


@pytest.mark.parametrize("x", [0.0, 1.5, -2.5])
@pytest.mark.parametrize("order", [0, 1])
def test_bessel_derivatives_of_high_order(order: int, x: float):
    f = special.bessel_j1 if order else special.bessel_j0
    want = [sp.jvp(order, x, k) for k in range(5)]
    np.testing.assert_allclose(derivatives(f, x, 4), want, atol=1e-13)


@pytest.mark.parametrize("x", [0.7, 3.0])
def test_modified_and_second_kind_derivatives(x: float):
    np.testing.assert_allclose(
        derivatives(special.bessel_y1, x, 3), [sp.yvp(1, x, k) for k in range(4)], rtol=1e-10
    )
    np.testing.assert_allclose(
        derivatives(special.modified_bessel_k0, x, 3), [sp.kvp(0, x, k) for k in range(4)]
    )


@pytest.mark.parametrize("x", [0.5, 2.0, 9.0])
def test_spherical_bessel_satisfies_its_equation(x: float):
    # x y'' + 2 y' + x y = 0, and the same differentiated once more
    value, first, second, third = derivatives(special.spherical_bessel_j0, x, 3)
    np.testing.assert_allclose(x * second + 2 * first + x * value, 0, atol=1e-13)
    np.testing.assert_allclose(x * third + 3 * second + x * first + value, 0, atol=1e-13)


@pytest.mark.parametrize("x", [-1e5, -1e8, -1e12])
def test_waves_of_airy_far_from_zero(x: float):
    value, slope = derivatives(special.airy_ai, x, 1)
    size = np.sqrt(-x)
    np.testing.assert_allclose(np.pi * (value**2 * size + slope**2 / size), 1, rtol=1e-6)


def test_airy_satisfies_its_equation():
    for x in (-3.0, 0.0, 2.0):
        value, _, second, third = derivatives(special.airy_ai, x, 3)
        np.testing.assert_allclose(second, x * value, atol=1e-14)
        np.testing.assert_allclose(third, value + x * sp.airy(x)[1], atol=1e-14)


@pytest.mark.parametrize("x", [-1.0, 0.0, 0.4, 1.0, 3.0])
def test_polynomial_derivatives_are_those_of_the_coefficients(x: float):
    cases = {
        "chebyshev_polynomial_t": sp.chebyt(6),
        "chebyshev_polynomial_u": sp.chebyu(6),
        "hermite_polynomial_h": sp.hermite(6),
        "hermite_polynomial_he": sp.hermitenorm(6),
        "laguerre_polynomial_l": sp.laguerre(6),
        "legendre_polynomial_p": sp.legendre(6),
        "shifted_chebyshev_polynomial_t": sp.sh_chebyt(6),
    }
    for name, p in cases.items():
        f = getattr(special, name)
        want = [np.polyder(np.poly1d(p.coefficients), k)(x) for k in range(4)]
        got = derivatives(lambda t, f=f: f(t, 6), x, 3)
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7, err_msg=name)


def test_polynomial_degrees_are_cut_to_integers():
    x = clew.tensor([0.5])
    assert special.legendre_polynomial_p(x, 2.9).item() == -0.125
    assert special.legendre_polynomial_p(x, -0.5).item() == 1
    assert special.legendre_polynomial_p(x, -3).item() == 0
    assert np.isnan(special.legendre_polynomial_p(x, NAN).item())


def test_polynomials_of_large_degree():
    """cos(n acos x) within what the recurrence loses; nan ends the recurrence at once."""
    x = np.linspace(-1, 1, 11)
    got = special.chebyshev_polynomial_t(clew.tensor(x), 1000).numpy()
    np.testing.assert_allclose(got, np.cos(1000 * np.arccos(x)), atol=1e-10)
    assert np.isnan(special.hermite_polynomial_h(clew.tensor([NAN, 2.0]), 10**15).numpy()).all()


def test_degrees_get_no_gradient():
    x, n = (clew.tensor([v], requires_grad=True) for v in (0.5, 2.0))
    special.chebyshev_polynomial_t(x, n).sum().backward()
    assert x.grad.item() == 2 and n.grad is None


def test_promotion():
    assert special.bessel_j0(clew.tensor([1, 2])).dtype is clew.float32
    assert special.bessel_j0(clew.tensor([True])).dtype is clew.float32
    assert special.bessel_j0(clew.ones(1, dtype=clew.bfloat16)).dtype is clew.bfloat16
    double, single = clew.ones(1, dtype=clew.float64), clew.ones(1)
    assert special.gammainc(single, double).dtype is clew.float64
    assert special.legendre_polynomial_p(single, 2.5).dtype is clew.float32
    assert special.legendre_polynomial_p(2, clew.tensor([1, 2])).dtype is clew.float32


def test_names_in_both_places():
    assert special.gammainc is clew.igamma and special.gammaincc is clew.igammac


def test_without_scipy(monkeypatch):
    monkeypatch.setattr(_primitive, "_scipy", {})  # what was loaded before
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=r"needs SciPy: pip install scipy"):
        special.bessel_j1(clew.ones(1, requires_grad=True)).backward()  # wants order 2
    assert special.modified_bessel_k0(clew.ones(1)).item() == pytest.approx(0.42102444)
    assert special.bessel_j0(clew.zeros(1)).item() == 1
    assert special.legendre_polynomial_p(clew.ones(1), 3).item() == 1


def test_argument_names():
    t = clew.tensor([0.5])
    for name in special.__all__:
        if "polynomial" in name:
            assert getattr(special, name)(x=t, n=1).shape == t.shape
        elif name.startswith(("airy", "scaled", "spherical")):
            assert getattr(special, name)(x=t).shape == t.shape
        elif "bessel" in name:
            assert getattr(special, name)(input=t).shape == t.shape
    assert special.gammainc(input=t, other=t).shape == t.shape


@pytest.mark.parametrize("degree", [65, 1000, 10**6 + 1])
def test_chebyshev_polynomials_by_their_angle(degree: int):
    angle = np.array([0.3, 1.0, 2.0, 3.0])
    x = clew.tensor(np.cos(angle))
    half = (degree + 0.5) * angle
    want = {
        "t": np.cos(degree * angle),
        "u": np.sin((degree + 1) * angle) / np.sin(angle),
        "v": np.cos(half) / np.cos(angle / 2),
        "w": np.sin(half) / np.sin(angle / 2),
    }
    for kind, values in want.items():
        got = getattr(special, f"chebyshev_polynomial_{kind}")(x, degree).numpy()
        np.testing.assert_allclose(got, values, atol=1e-13 * degree)
        moved = getattr(special, f"shifted_chebyshev_polynomial_{kind}")((x + 1) / 2, degree)
        np.testing.assert_allclose(moved.numpy(), values, atol=1e-12 * degree)
    ends = clew.tensor([1.0, -1.0, 1.001, -1.001], dtype=clew.float64)
    got = {k: getattr(special, f"chebyshev_polynomial_{k}")(ends, 65).numpy() for k in want}
    grown = 65 * np.arccosh(1.001)
    np.testing.assert_allclose(got["t"], [1, -1, np.cosh(grown), -np.cosh(grown)])
    np.testing.assert_allclose(got["u"][:2], [66, -66])
    np.testing.assert_allclose(got["v"][:2], [1, -131])
    np.testing.assert_allclose(got["w"][:2], [131, -1])
    np.testing.assert_allclose(got["v"][3], -got["w"][2])


def test_polynomials_of_huge_degree_end():
    x = clew.tensor([0.5, 1.0, -0.3], dtype=clew.float64)
    for name in ("chebyshev_polynomial_t", "shifted_chebyshev_polynomial_w"):
        assert getattr(special, name)(x.abs(), 2**62).isfinite().all()
    assert special.hermite_polynomial_h(x, 2**62).isnan().all()
    for name in ("legendre_polynomial_p", "laguerre_polynomial_l"):
        with pytest.raises(RuntimeError, match="degrees up to 16777216"):
            getattr(special, name)(x, 2**62)
    degrees = clew.tensor([3.0, 2.0**62, np.inf], dtype=clew.float64)
    made = special.hermite_polynomial_he(clew.full((3,), 2.0, dtype=clew.float64), degrees)
    assert made[0] == 2 and made[1:].isnan().all()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100])
def test_polynomials_of_any_number_of_elements(size: int):
    x = np.linspace(-1, 1, size)
    n = np.arange(size) % 7 - 1.0
    got = special.legendre_polynomial_p(clew.tensor(x), clew.tensor(n)).numpy()
    want = np.where(n < 0, 0, [sp.eval_legendre(int(max(k, 0)), v) for k, v in zip(n, x)])
    np.testing.assert_allclose(got, want, atol=1e-14)


_UNARY = [n for n in special.__all__ if n.startswith(("airy", "bessel", "modified", "spherical"))]
_BINARY = ["gammainc", "gammaincc", *(n for n in special.__all__ if "_polynomial_" in n)]


def _layouts(dtype: clew.dtype) -> list[clew.Tensor]:
    whole = clew.rand(4, 3, 2, dtype=dtype) + 0.5
    return [
        whole,
        whole.permute(2, 0, 1),
        whole[::2, :, 1],
        whole[:0],
        whole[0, 0, 0],
        whole[:1, :, :1].expand(4, 3, 2),
        whole[:, :1, :].transpose(0, 2),
    ]


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.float16])
@pytest.mark.parametrize("name", _UNARY)
def test_the_short_way_of_one_argument(name: str, dtype: clew.dtype):
    function = getattr(special, name)
    for x in _layouts(dtype):
        short, long = function(x), function(x.detach().requires_grad_()).detach()
        assert clew.equal(short, long) and short.dtype is long.dtype
        assert short.stride() == long.stride()


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.float16])
@pytest.mark.parametrize("name", _BINARY)
def test_the_short_way_of_two_arguments(name: str, dtype: clew.dtype):
    function = getattr(special, name)
    wants = (False, True) if name.startswith("gamma") else (True, False)
    rows = [clew.rand(s, dtype=dtype) + 0.5 for s in [(), (2,), (3, 1), (1, 3, 2), (4, 1, 1)]]
    pairs = [(x, x.flip(0) if x.dim() else x) for x in _layouts(dtype)]
    pairs += [(a, b) for a in rows for b in rows]
    pairs += [(rows[3], rows[1].double()), (rows[3].int() + 1, rows[1])]
    if not name.startswith("gamma"):
        pairs += [(x, n) for x in _layouts(dtype) for n in (3, 2.5, True, -1)]
        pairs += [(2, x) for x in _layouts(dtype)]
    for pair in pairs:
        short = function(*pair)
        leaves = [
            x.detach().requires_grad_()
            if w and isinstance(x, clew.Tensor) and x.is_floating_point()
            else x
            for x, w in zip(pair, wants)
        ]
        long = function(*leaves).detach()
        assert clew.equal(short, long) and short.dtype is long.dtype
        assert short.stride() == long.stride()


@pytest.mark.parametrize("name", _BINARY)
def test_the_short_way_raises_what_the_long_one_does(name: str):
    function = getattr(special, name)
    with pytest.raises(RuntimeError, match=f"{name}: the batch dimensions do not broadcast"):
        function(clew.ones(2), clew.ones(3))
    with pytest.raises(RuntimeError, match=f"{name}: expected all tensors to be on one device"):
        function(clew.ones(2), clew.ones(2, device="meta"))
    assert function(clew.ones(2, 1, device="meta"), clew.ones(3, device="meta")).shape == (2, 3)
