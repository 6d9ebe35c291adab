"""A number gives the same bits wherever in a tensor it stands, in whatever company."""

from __future__ import annotations

import pytest

import clew

F = clew.nn.functional
N = 1200
UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh asin acos atan asinh acosh "
    "atanh sigmoid sqrt rsqrt reciprocal erf erfc lgamma digamma square sinc gelu silu softplus "
    "mish elu selu hardswish logsigmoid softsign"
).split()
BINARY = "mul div pow atan2 fmod remainder hypot floor_divide logaddexp".split()
SLOPES = "gelu exp log sin tan tanh sigmoid sqrt rsqrt erf silu softplus mish".split()
SLOPES += "asinh log1p cosh".split()


def numbers(dtype: clew.dtype) -> clew.Tensor:
    """Common and far numbers among each other."""
    rare = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, 88.8, -104.0, 710.0]
    x = clew.cat([clew.randn(N - 140) * 2, clew.randn(95) * 1e3, clew.tensor(rare * 5)])
    return x[clew.randperm(len(x))].to(dtype)


def same(a: clew.Tensor, b: clew.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())


def check(f, *args: clew.Tensor) -> None:
    whole = f(*args)
    for start in (1, 3, 7, 13):
        assert same(f(*[a[start:] for a in args]), whole[start:])
    for k in range(0, len(args[0]), 7):
        assert same(f(*[a[k : k + 1].clone() for a in args]), whole[k : k + 1])


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_functions(name, dtype):
    f = getattr(clew, name, None) or getattr(F, name)
    check(f, *[numbers(dtype) for _ in range(2 if name in BINARY else 1)])


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name, dtype):
    f = getattr(clew, name, None) or getattr(F, name)

    def slope(x, g):
        x = x.clone().requires_grad_()
        return clew.autograd.grad(f(x), x, g)[0]

    check(slope, numbers(dtype), numbers(dtype))
