"""Reductions, sorts and scans along a dim of one element, and of a few lines side by side."""

from __future__ import annotations

import pytest

import clew

INF, NAN = float("inf"), float("nan")
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "any", "all", "nansum", "logsumexp")


@pytest.mark.parametrize(
    "dtype", [clew.float32, clew.float64, clew.bfloat16, clew.int64, clew.bool]
)
@pytest.mark.parametrize("where", [-1, 0, 1])
def test_one_element(dtype, where):
    x = clew.tensor([0.0, -0.0, 1.5, -2.0, INF, -INF, NAN] * 40)
    x = (x.nan_to_num(7, 3, -3) if not dtype.is_floating_point else x).to(dtype)
    x = clew.cat([x, clew.randn(20).to(dtype)]).reshape(15, 20)
    y = x.unsqueeze(where)
    for name in REDUCTIONS:
        if name in ("mean", "logsumexp") and not dtype.is_floating_point:
            continue
        if name == "logsumexp":
            want = x
        else:
            want = getattr(x.reshape(-1, 1, 1), name)(2).reshape(x.shape)
        got = getattr(y, name)(where)
        assert got.shape == x.shape
        clew.testing.assert_close(got, want, equal_nan=True)
    if dtype is clew.bool:
        return
    for name in ("max", "min", "sort", "median", "mode", "cummax", "cummin"):
        values, places = getattr(y, name)(where)
        clew.testing.assert_close(values.reshape(x.shape), x, equal_nan=True, rtol=0, atol=0)
        assert places.numel() == x.numel() and not places.any()
    values, places = y.topk(1, where)
    clew.testing.assert_close(values.squeeze(where), x, equal_nan=True)
    assert not y.argmax(where).any() and not places.any() and not y.argsort(where).any()
    assert not y.kthvalue(1, where)[1].any()
    for name in ("cumsum", "cumprod"):
        got = getattr(y, name)(where)
        clew.testing.assert_close(got.squeeze(where), x.to(got.dtype), equal_nan=True)


def test_parts_of_others():
    x = clew.randn(30, 8, 40)[:, 3:4, ::2]
    for name in ("max", "sort", "cummax"):
        values, places = getattr(x, name)(1)
        assert clew.equal(values.reshape(30, 20), x[:, 0]) and not places.any()
    assert clew.equal(x.transpose(0, 2).argmax(1), clew.zeros(20, 30, dtype=clew.int64))


@pytest.mark.parametrize("inner", [1, 2, 3, 7, 8, 9])
@pytest.mark.parametrize("length", [1, 2, 5, 16, 17, 50])
def test_scans_of_a_few_lines_side_by_side(inner, length):
    x = clew.randn(5, length, inner, dtype=clew.float64)
    x[0, length // 2] = NAN
    want = clew.stack([x[:, : r + 1].sum(1) for r in range(length)], 1)
    clew.testing.assert_close(x.cumsum(1), want, equal_nan=True)
    want = clew.stack([x[:, : r + 1].prod(1) for r in range(length)], 1)
    clew.testing.assert_close(x.cumprod(1), want, equal_nan=True)
    for name, pick in (("cummax", "amax"), ("cummin", "amin")):
        values, places = getattr(x, name)(1)
        want = clew.stack([getattr(x[:, : r + 1], pick)(1) for r in range(length)], 1)
        assert clew.equal(values.nan_to_num(99), want.nan_to_num(99))
        assert clew.equal(x.gather(1, places).nan_to_num(99), values.nan_to_num(99))
    ties = clew.ones(3, length, inner).cummax(1)[1]
    assert clew.equal(ties, clew.arange(length)[None, :, None].expand(3, length, inner))
