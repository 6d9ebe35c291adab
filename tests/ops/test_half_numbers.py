"""Numbers beside float16 and bfloat16: not rounded to these types where they multiply or divide."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew

HALVES = [clew.float16, clew.bfloat16]
NUMBERS = [1.0039, -1 / 3, 257, 1e-5, 100000.0]
OPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "x * s": (lambda x, s: x * s, lambda x, s: x * s),
    "s * x": (lambda x, s: s * x, lambda x, s: s * x),
    "x / s": (lambda x, s: x / s, lambda x, s: x / s),
    "s / x": (lambda x, s: s / x, lambda x, s: s / x),
    "mul_": (lambda x, s: x.clone().mul_(s), lambda x, s: x * s),
    "div_": (lambda x, s: x.clone().div_(s), lambda x, s: x / s),
    "out": (lambda x, s: clew.mul(x, s, out=clew.empty_like(x)), lambda x, s: x * s),
    "0-d": (lambda x, s: x * clew.tensor(s), lambda x, s: x * s),
    "0-d divisor": (lambda x, s: x / clew.tensor(float(s), dtype=clew.float64), lambda x, s: x / s),
    "lerp": (lambda x, s: clew.lerp(x, x * 2, s), lambda x, s: x + s * x),
    "xlogy": (lambda x, s: clew.xlogy(s, x.abs()), lambda x, s: s * np.log(np.abs(x))),
    "xlog1py": (lambda x, s: clew.special.xlog1py(s, x.abs()), lambda x, s: s * np.log1p(abs(x))),
}


def wide(t: Any) -> np.ndarray:
    return t.detach().to(clew.float64).numpy()


def rounded(x: np.ndarray, dtype: Any) -> np.ndarray:
    return wide(clew.from_numpy(np.asarray(x, np.float64)).to(clew.float32).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("number", NUMBERS)
def test_one_rounding(dtype: Any, name: str, number: float) -> None:
    operation, exact = OPS[name]
    whole = (clew.rand(6, 700, generator=clew.Generator().manual_seed(0)) * 6 - 3).to(dtype)
    views = {
        "dense": whole,
        "one": whole[:1, :1],
        "0-d": whole[0, 0],
        "columns": whole[:, ::3],
        "transposed": whole.t(),
        "expanded": whole[:, :1].expand(6, 5),
        "one column": whole[:, :1],
    }
    tie = 1e-5  # what lies in the middle may go either way
    for what, x in views.items():
        # A 0-d tensor is no number beside another one; what is expanded cannot be written to.
        if (what == "0-d" and name.startswith("0-d")) or (name == "out" and what == "expanded"):
            continue
        got = operation(x, number)
        assert got.dtype == dtype, what
        with np.errstate(all="ignore"):
            want = exact(wide(x), np.float64(number))
        low, high = rounded(want * (1 - tie), dtype), rounded(want * (1 + tie), dtype)
        found = wide(got)
        assert ((found == low) | (found == high)).all(), what


@pytest.mark.parametrize("dtype", HALVES)
def test_whole_quotients(dtype: Any) -> None:
    x = (clew.rand(999, generator=clew.Generator().manual_seed(0)) * 6 - 3).to(dtype)
    for number in NUMBERS:
        near = wide(x).astype(np.float32) / np.float32(number)
        got = wide(clew.div(x, number, rounding_mode="trunc"))
        np.testing.assert_array_equal(got, rounded(np.trunc(near), dtype))
        # That rounded down is the exact one.
        want = rounded(np.floor(wide(x) / np.float64(np.float32(number))), dtype)
        np.testing.assert_array_equal(wide(clew.div(x, number, rounding_mode="floor")), want)
        np.testing.assert_array_equal(wide(x // number), want)


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_of_numbers(dtype: Any) -> None:
    x = clew.full((8,), 3.0, dtype=dtype, requires_grad=True)
    (x * 1e-5 * 4096).sum().backward()
    np.testing.assert_allclose(wide(x.grad), np.full(8, 1e-5 * 4096), rtol=1e-2)
    y = clew.full((8,), 4096.0, dtype=dtype, requires_grad=True)
    (y / 100000).backward(clew.full((8,), 1000.0, dtype=dtype))
    np.testing.assert_allclose(wide(y.grad), np.full(8, 0.01), rtol=1e-2)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("dims", [(), (0,)])
def test_means_of_many(dtype: Any, dims: tuple[int, ...]) -> None:
    # More elements than the largest float16.
    x = clew.ones(70000, 2, dtype=dtype, requires_grad=True)
    (x.mean(*dims) * 4096).sum().backward()
    want = 4096 / (70000 if dims else 140000)
    np.testing.assert_allclose(wide(x.grad), np.full((70000, 2), want), rtol=1e-2)


def test_logit_of_a_limit() -> None:
    x = clew.tensor([2.5, 0.5, -1.0], dtype=clew.float16, requires_grad=True)
    got = clew.logit(x, 0.1)
    np.testing.assert_array_equal(wide(got), rounded(np.log([9, 1, 1 / 9]), clew.float16))
    got.sum().backward()
    np.testing.assert_array_equal(wide(x.grad), [0, 4, 0])
