"""Small matrix products of 16-bit floats, of every stride, against float64."""

from __future__ import annotations

import itertools

import pytest

import clew


def laid_out(x, how):
    """The same elements of [B, rows, columns] with other strides."""
    if how == "rows":
        return x.contiguous()
    if how == "columns":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if how == "apart":
        wide = x.new_zeros(x.shape[0], x.shape[1] * 2, x.shape[2] * 3)
        wide[:, ::2, ::3] = x
        return wide[:, ::2, ::3]
    return x[:1].expand(x.shape)  # one for the whole batch


@pytest.mark.parametrize("dtype", [clew.bfloat16, clew.float16])
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1),
        (8, 16, 8),
        (1, 33, 5),
        (5, 64, 2),
        (32, 128, 64),
        (7, 129, 3),
        (33, 8, 9),
        (3, 0, 4),
    ],
)
def test_every_layout(dtype, sizes):
    m, k, n = sizes
    clew.manual_seed(0)
    x, y = clew.randn(3, m, k).to(dtype), clew.randn(3, k, n).to(dtype)
    unit = 2.0**-8 if dtype is clew.bfloat16 else 2.0**-11
    for first, second in itertools.product(("rows", "columns", "apart", "one"), repeat=2):
        a, b = laid_out(x, first), laid_out(y, second)
        got, want = a @ b, a.double() @ b.double()
        assert got.dtype is dtype and got.shape == want.shape
        terms = a.double().abs() @ b.double().abs()
        assert ((got.double() - want).abs() <= unit * want.abs() + 1e-6 * terms).all()
        out = clew.empty(3, n, m, dtype=dtype).transpose(1, 2)
        clew.bmm(a, b, out=out)
        assert clew.equal(out, got)


def test_what_is_not_finite_stays_in_its_row():
    x, y = clew.ones(2, 4, 40, dtype=clew.bfloat16), clew.ones(2, 40, 4, dtype=clew.bfloat16)
    x[0, 1, 39] = float("inf")
    z = x @ y
    assert z[0, 1].isinf().all() and z.isfinite().sum() == z.numel() - 4
