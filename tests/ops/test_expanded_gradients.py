"""Gradients that repeat their elements at a stride of 0, as sum().backward() passes them on."""

from __future__ import annotations

from typing import Any

import machinery as m
import numpy as np
import pytest

import clew
from samples import Op, load

WITH_GRAD = sorted((op for op in load().values() if op.grad), key=lambda op: op.name)


def seeds_of(out: clew.Tensor) -> Any:
    """One number for all elements, and one slice for all along each of the first three dims."""
    value = clew.arange(1, 1 + out.numel(), dtype=out.dtype).sin().reshape(out.shape)
    yield (value.sum() + 0.5).expand(out.shape)
    for dim in range(min(3, out.ndim)):
        yield value.narrow(dim, 0, 1).expand(out.shape)


@pytest.mark.parametrize("op", WITH_GRAD, ids=lambda op: op.name)
def test_gradients_of_repeated_elements(op: Op):
    checked = 0
    for sample, problem in m.derivative_samples(op):
        inputs = [t.detach().clone().requires_grad_() for t in problem.inputs]
        clew.manual_seed(0)
        outputs = [o for o in problem(*inputs) if o.requires_grad and o.numel()]
        for out in outputs:
            for seed in seeds_of(out):
                got, want = (
                    clew.autograd.grad(out, inputs, s, retain_graph=True, allow_unused=True)
                    for s in (seed, seed.contiguous())
                )
                for g, w in zip(got, want, strict=True):
                    assert (g is None) == (w is None)
                    if g is None or w is None:
                        continue
                    checked += 1
                    np.testing.assert_allclose(
                        *m.to_numpy([g, w]),
                        rtol=1e-9,
                        atol=1e-9,
                        equal_nan=True,
                        err_msg=f"{op.name}{sample}, gradient with strides {seed.stride()}",
                    )
    assert checked or not any(True for _ in m.derivative_samples(op))


ROWS = {
    "softmax": lambda x: x.softmax(-1),
    "softmax over columns": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "log_softmax over columns": lambda x: x.log_softmax(0),
    "pow": lambda x: x.abs().pow(1.5),
    "square": lambda x: x**2,
    "repeat": lambda x: x.repeat(2, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "flip": lambda x: x.flip(0, 1),
    "index": lambda x: x[clew.arange(x.shape[0]).flip(0) // 2],
    "gather": lambda x: x.gather(1, (clew.arange(x.numel()) % 7).reshape(x.shape)),
    "sort": lambda x: x.sort(1).values,
    "bias": lambda x: x[0] + x,
    "product": lambda x: x @ (x.detach().mT / 8),
    "column": lambda x: x[:, :1] - x,
}


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.bfloat16])
@pytest.mark.parametrize("shape", [(3, 7), (65, 33), (40, 600), (300, 16)])
@pytest.mark.parametrize("name", ROWS)
def test_many_elements(name: str, shape: tuple[int, int], dtype: Any):
    generator = clew.Generator().manual_seed(0)
    x = clew.randn(shape, generator=generator).to(dtype).requires_grad_()
    out = ROWS[name](x)
    grads = {
        "one number": clew.tensor(0.75, dtype=dtype).expand(out.shape),
        "rows alike": clew.randn(out.shape[1:], generator=generator).to(dtype).expand(out.shape),
        "one a row": clew.randn(len(out), 1, generator=generator).to(dtype).expand(out.shape),
    }
    for kind, grad in grads.items():
        (got,) = clew.autograd.grad(out, x, grad, retain_graph=True)
        (want,) = clew.autograd.grad(out, x, grad.contiguous(), retain_graph=True)
        tolerance = {clew.float32: 2e-5, clew.float64: 1e-12, clew.bfloat16: 0.02}[dtype]
        scale = max(1.0, float(want.abs().max()))
        assert float((got - want).abs().max()) <= tolerance * scale, kind


@pytest.mark.parametrize("p", [0.3, 0.9])
def test_dropout_of_one_gradient(p: float):
    x = clew.randn(70, 1000, requires_grad=True)
    out = clew.nn.functional.dropout(x, p)
    one = clew.tensor(1.5).expand(out.shape)
    (got,) = clew.autograd.grad(out, x, one, retain_graph=True)
    (want,) = clew.autograd.grad(out, x, one.contiguous())
    assert clew.equal(got, want)


def test_second_derivatives_of_a_sum():
    x = clew.randn(6, 9, dtype=clew.float64, requires_grad=True)
    for name in ("softmax", "log_softmax over columns", "square", "flip", "index", "gather"):
        f = ROWS[name]
        assert clew.autograd.gradgradcheck(lambda x, f=f: (f(x) ** 2).sum(), (x,))


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "nansum", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("dim", [0, 1, 2, (0, 1), (0, 2), (1, 2)])
def test_reductions_of_what_is_repeated(op: str, dim: Any):
    x = clew.randn(5, 1, 7) * (clew.rand(5, 1, 7) > 0.3)
    y = clew.randn(1, 4, 1)
    f = getattr(clew, op)
    if op in ("prod", "any", "all") and isinstance(dim, tuple):
        dim = dim[-1]
    for spread in (x.expand(5, 4, 7), y.expand(5, 4, 7), y.expand(5, 4, 7).mT, y.expand(0, 4, 7)):
        got, want = f(spread, dim), f(spread.contiguous(), dim)
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        assert clew.allclose(got, want, rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float32])
def test_products_of_nothing(dtype):
    shapes = [((0, 5, 4), (0, 4, 3)), ((0, 4), (4, 3)), ((5, 0), (0, 3)), ((2, 5, 4), (2, 4, 0))]
    for sizes in shapes:
        a, b = (clew.zeros(size, dtype=dtype, requires_grad=True) for size in sizes)
        (a @ b).sum().backward()
        assert a.grad is not None
        assert b.grad is not None
        assert (a.grad.shape, b.grad.shape) == sizes
        assert not a.grad.any() and not b.grad.any()
    repeated = clew.zeros(1, 1, dtype=dtype).expand(4, 0)
    assert (repeated @ clew.zeros(0, 3, dtype=dtype)).tolist() == [[0.0] * 3] * 4
