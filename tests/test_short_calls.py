"""Calls of few elements whose Python takes a shorter way: they give what the long way gives."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import clew
from clew._base.sizes import broadcast_sizes


def test_broadcast_sizes_are_numpys() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        shapes = [
            tuple(rng.choice([0, 1, 1, 2, 3]) for _ in range(rng.randrange(4)))
            for _ in range(rng.randint(1, 4))
        ]
        try:
            want = list(np.broadcast_shapes(*shapes))
        except ValueError:
            assert broadcast_sizes(shapes) is None
            with pytest.raises(RuntimeError, match="Shape mismatch"):
                clew.broadcast_shapes(*(clew.empty(s).shape for s in shapes))
            continue
        assert broadcast_sizes(shapes) == want
        tensors = [clew.empty(s) for s in shapes]
        assert clew.broadcast_shapes(*(t.shape for t in tensors)) == tuple(want)
        assert all(t.shape == tuple(want) for t in clew.broadcast_tensors(*tensors))


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.int64, clew.complex64])
def test_cross_products_of_few_and_of_many(dtype: clew.dtype) -> None:
    a, b = ((clew.randn(4, 3, 200) * 9).to(dtype) for _ in range(2))
    many = clew.linalg.cross(a, b, dim=1)  # too many elements for the short way
    for cut in (slice(0, 5), slice(3, 40, 7)):
        x, y = a[..., cut], b[..., cut]
        assert clew.equal(clew.linalg.cross(x, y, dim=1), many[..., cut])
        assert clew.linalg.cross(x, y, dim=1).is_contiguous()
        turned = clew.cross(x.transpose(0, 2), y.transpose(0, 2), dim=1)
        assert clew.equal(turned, many[..., cut].transpose(0, 2)) and turned.is_contiguous()
    for few, one in ((a[:, :, :5], b[:1, :, :5]), (a[:1, :, :5], b[:, :, :5])):
        whole = clew.broadcast_tensors(few, one)
        assert clew.equal(clew.linalg.cross(few, one, dim=1), clew.linalg.cross(*whole, dim=1))


def test_cross_products_of_few_have_gradients() -> None:
    a, b = (clew.randn(2, 3, dtype=clew.float64, requires_grad=True) for _ in range(2))
    assert clew.autograd.gradcheck(clew.linalg.cross, (a, b))
    assert clew.autograd.gradgradcheck(clew.linalg.cross, (a, b))


def test_chains_of_few_matrices() -> None:
    rng = random.Random(0)
    for _ in range(60):
        sizes = [rng.randint(1, 9) for _ in range(rng.randint(3, 7))]
        chain = [clew.randn(m, n, dtype=clew.float64) for m, n in pairwise(sizes)]
        want = np.linalg.multi_dot([t.numpy() for t in chain])
        np.testing.assert_allclose(clew.linalg.multi_dot(chain).numpy(), want, atol=1e-12)
        np.testing.assert_allclose(clew.chain_matmul(*chain).numpy(), want, atol=1e-12)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_distances_without_and_with_a_batch(p: float) -> None:
    a, b = clew.randn(4, 3), clew.randn(3, 5).t()
    assert clew.equal(clew.cdist(a, b, p), clew.cdist(a.unsqueeze(0), b.unsqueeze(0), p)[0])
    assert clew.cdist(a[:0], b, p).shape == (0, 5)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64, clew.float16])
def test_histograms_over_their_own_range(dtype: clew.dtype) -> None:
    for x in (clew.randn(7, 3).to(dtype), clew.full((4,), 2.5, dtype=dtype)):
        low, high = x.min().item(), x.max().item()
        if low == high:
            low, high = low - 1, high + 1
        assert clew.equal(clew.histc(x, 5), clew.histc(x, 5, low, high))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="is not finite"):
            clew.histc(clew.tensor([1.0, bad], dtype=dtype), 5)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("points", [0, 1, 2, 9])
def test_kaiser_windows_of_either_dtype(points: int, dtype: clew.dtype) -> None:
    made = clew.signal.windows.kaiser(points, beta=8.5, dtype=dtype)
    want = np.kaiser(points, 8.5)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-6 if dtype is clew.float32 else 1e-14)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
def test_parts_of_numbers(dtype: clew.dtype) -> None:
    rare = clew.tensor([0.0, -0.0, 1e-320, -1e-40, float("inf"), float("nan")], dtype=dtype)
    wide = clew.randn(50, dtype=dtype) * clew.tensor(10.0).pow(clew.randn(50) * 9).to(dtype)
    cases = [wide, wide[:0], wide[0], wide.reshape(5, 10).t(), wide[::3], clew.relu(wide)]
    cases += [clew.cat([wide[:3], rare[: k + 1]]) for k in range(len(rare))]
    for x in cases:
        mantissa, exponent = clew.frexp(x)
        want, power = np.frexp(x.numpy())
        assert mantissa.numpy().tobytes() == np.asarray(want).tobytes()  # -0.0 too
        np.testing.assert_array_equal(exponent.numpy(), np.where(np.isfinite(want), power, 0))
        assert mantissa.dtype is dtype and exponent.dtype is clew.int32
        recorded = clew.frexp(x.detach().requires_grad_())
        assert mantissa.stride() == exponent.stride() == recorded.mantissa.stride()
