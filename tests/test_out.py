"""out=: results are written where they belong, and nothing else is made where they fit."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def test_a_fitting_out_is_written_without_a_temporary():
    x, y, out = clew.rand(1000, 1000), clew.rand(1000, 1000), clew.empty(1000, 1000)
    w = clew.rand(64, 1000)
    small = clew.empty(1000, 64)
    before = out.data_ptr()
    assert clew.add(x, y, alpha=2, out=out) is out
    assert out.data_ptr() == before
    np.testing.assert_allclose(out.numpy(), x.numpy() + 2 * y.numpy(), rtol=1e-6)
    assert clew.mm(x, w.t(), out=small) is small
    np.testing.assert_allclose(small.numpy(), x.numpy() @ w.numpy().T, rtol=1e-4)
    assert clew.cat([x, y], out=clew.empty(2000, 1000)).shape == (2000, 1000)


def test_writing_counts_as_a_change():
    x = clew.rand(3)
    out = clew.empty(3)
    version = out._version
    clew.exp(x, out=out)
    assert out._version == version + 1


@pytest.mark.parametrize("shift", [0, 1])
def test_out_may_overlap_an_input(shift: int):
    base = clew.arange(10.0)
    want = base[:8].clone() * 3
    out = base[shift : shift + 8]
    clew.mul(base[:8], 3, out=out)
    assert clew.equal(base[shift : shift + 8], want)


def test_out_may_be_an_input_of_a_reduction_or_product():
    a = clew.rand(4, 4)
    want = a @ a
    clew.mm(a, a, out=a)
    assert clew.allclose(a, want)
    b = clew.rand(4, 4)
    want = b.cumsum(0)
    clew.cumsum(b, 0, out=b)
    assert clew.allclose(b, want)
    t = clew.rand(4, 4)
    want = clew.add(t, t.t())
    clew.add(t, t.t(), out=t)
    assert clew.equal(t, want)


def test_out_of_another_layout_or_dtype():
    x, y = clew.rand(4, 6), clew.rand(4, 6)
    turned = clew.empty(6, 4).t()
    clew.add(x, y, out=turned)
    assert clew.equal(turned, x + y)
    wide = clew.empty(4, 6, dtype=clew.float64)
    clew.add(x, y, out=wide)
    assert clew.equal(wide, (x + y).double())
    every_other = clew.zeros(4, 12)
    clew.sub(x, y, out=every_other[:, ::2])
    assert clew.equal(every_other[:, ::2], x - y) and every_other[:, 1::2].abs().sum() == 0
    resized = clew.empty(0)
    clew.add(x, y, out=resized)
    assert clew.equal(resized, x + y)


def test_out_keeps_the_sum_of_rows_and_the_softmax():
    x = clew.rand(5, 7)
    s, p = clew.empty(5), clew.empty(5, 7)
    clew.sum(x, 1, out=s)
    clew.softmax(x, 1, out=p)
    assert clew.equal(s, x.sum(1)) and clew.equal(p, x.softmax(1))


def test_large_results_are_the_same_streamed():
    # Larger than what stays in a cache: such results go past it, block by block.
    n = (9 << 20) + 37
    x, y = clew.rand(n), clew.rand(n)
    np.testing.assert_array_equal((x + y).numpy(), x.numpy() + y.numpy())
    np.testing.assert_array_equal((x < 0.5).numpy(), x.numpy() < 0.5)
    shifted = clew.empty(n + 3)[3:]
    clew.mul(x, 2, out=shifted)
    np.testing.assert_array_equal(shifted.numpy(), x.numpy() * 2)
    x.mul_(3)
    square = clew.rand(3001, 3003)
    np.testing.assert_array_equal(square.t().contiguous().numpy(), square.numpy().T)


@pytest.mark.parametrize(
    "dtype", [clew.uint8, clew.bfloat16, clew.float32, clew.float64, clew.complex128]
)
@pytest.mark.parametrize("shape", [(130, 67), (64, 64), (5, 200), (3, 4, 33, 70), (2, 37, 5, 6)])
def test_transposed_copies(shape: tuple[int, ...], dtype: clew.dtype):
    x = (clew.rand(shape) * 200).to(dtype)
    n = len(shape)
    orders = [tuple(reversed(range(n)))]
    if n == 4:
        orders += [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (2, 3, 0, 1)]
    for order in orders:
        moved = x.permute(order)
        got = moved.contiguous()
        assert got.is_contiguous()
        assert got.tolist() == moved.tolist()
        back = clew.empty(shape, dtype=dtype).permute(order)
        back.copy_(got)
        assert clew.equal(back, moved)
