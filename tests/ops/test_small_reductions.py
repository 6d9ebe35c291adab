"""Sums, softmax and selections of a few elements, which have loops of their own."""

from __future__ import annotations

import numpy as np
import pytest

import clew


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")


@pytest.mark.parametrize("shape", [(1,), (8,), (8, 8), (3, 5, 7), (2, 1, 4, 3), (512,), (513,)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_and_means_of_every_dim(shape, keepdim):
    x = numbers(*shape)
    for dim in range(-len(shape), len(shape)):
        for name in ("sum", "mean"):
            found = getattr(clew.tensor(x), name)(dim=dim, keepdim=keepdim)
            wanted = getattr(x.astype("f8"), name)(axis=dim, keepdims=keepdim)
            assert found.dtype == clew.float32
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (8,), (8, 8), (3, 5, 7)])
def test_extremes_of_every_dim(shape):
    for place in (None, 0, -1):
        x = numbers(*shape)
        if place is not None:
            x.reshape(-1)[place] = np.nan
        for dim in range(-len(shape), len(shape)):
            for name in ("amax", "amin"):
                found = getattr(clew.tensor(x), name)(dim, keepdim=dim == 0).numpy()
                wanted = getattr(np, name)(x, axis=dim, keepdims=dim == 0)
                np.testing.assert_array_equal(found, wanted)
    inf = clew.tensor([[clew.inf, -clew.inf], [-clew.inf, -clew.inf]])
    assert inf.amax(1).tolist() == [clew.inf, -clew.inf]


@pytest.mark.parametrize("shape", [(8,), (8, 8), (3, 5, 7), (256, 2)])
def test_variances_of_every_dim(shape):
    x = numbers(*shape) * 1e20 + 3e20
    for dim in range(-len(shape), len(shape)):
        for correction in (0, 1, 1.5, 8):
            wide = x.astype("f8")
            with np.errstate(divide="ignore", invalid="ignore"):
                sums = wide.var(dim, keepdims=True) * shape[dim]
                wanted = np.where(sums > -1, sums / max(0.0, shape[dim] - correction), 0)
            t = clew.tensor(x)
            root = t.std(dim, correction=correction, keepdim=True).numpy()
            np.testing.assert_allclose(root, np.sqrt(wanted), rtol=1e-5)
    small = clew.tensor(numbers(*shape))
    assert clew.tensor([[1.0]]).var(0).isnan().all()
    np.testing.assert_allclose(
        small.var(0).numpy(), small.double().numpy().var(0, ddof=1), rtol=1e-5, atol=1e-7
    )


def test_casts():
    for name in ("float64", "bfloat16", "float16", "int32", "uint8", "bool", "complex64"):
        x = clew.arange(24).reshape(4, 6).float()
        for part in (x, x[1:, 2:], x.T, x[:0], x[2, 3]):
            found = part.to(getattr(clew, name))
            assert found.dtype == getattr(clew, name)
            assert found.shape == part.shape
            real = found.real if name == "complex64" else found
            wanted = (part != 0) if name == "bool" else part
            assert real.tolist() == wanted.tolist()
    y = clew.ones(2, 3, requires_grad=True)
    (y.to(clew.float64) * 2).sum().backward()
    assert y.grad.tolist() == [[2.0] * 3] * 2


def test_dims_that_are_not_there_still_raise():
    for name in ("sum", "mean"):
        with pytest.raises(IndexError, match="out of range"):
            getattr(clew.ones(8, 8), name)(2)
        assert getattr(clew.tensor(3.0), name)(0).item() == 3.0
    assert clew.ones(0, 8).sum(0).tolist() == [0.0] * 8
    assert clew.ones(8, 8).sum(1, dtype=clew.float64).dtype == clew.float64


@pytest.mark.parametrize("shape", [(1,), (8,), (8, 8), (3, 5, 7), (2, 300), (9, 1)])
def test_softmax_of_rows(shape):
    x = 20 * numbers(*shape)
    shifted = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    wanted = shifted / shifted.sum(-1, keepdims=True)
    np.testing.assert_allclose(clew.tensor(x).softmax(-1).numpy(), wanted, rtol=2e-5, atol=1e-7)
    with np.errstate(divide="ignore"):
        logs = x - x.max(-1, keepdims=True) - np.log(shifted.sum(-1, keepdims=True))
    found = clew.tensor(x).log_softmax(len(shape) - 1).numpy()
    np.testing.assert_allclose(found, logs, rtol=1e-5, atol=1e-5)


def test_softmax_of_what_is_no_number():
    inf, nan = float("inf"), float("nan")
    rows = clew.tensor([[0.0, -inf], [-inf, -inf], [inf, 0.0], [nan, 1.0], [1.0, nan]])
    found = rows.softmax(1)
    assert found[0].tolist() == [1.0, 0.0]
    assert found[1:].isnan().all()
    assert rows.log_softmax(1)[0].tolist() == [0.0, -inf]
    assert rows.log_softmax(1)[1:].isnan().all()


def test_gradients():
    x = clew.randn(3, 4, requires_grad=True)
    (x.softmax(1) * x.sum(0) + x.mean(1, keepdim=True) * x.log_softmax(-1)).sum().backward()
    y = x.detach().double().requires_grad_()
    (y.softmax(1) * y.sum(0) + y.mean(1, keepdim=True) * y.log_softmax(-1)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [clew.float32, clew.bool, clew.int16, clew.complex128])
def test_where_of_alike_and_of_numbers(dtype):
    rng = np.random.default_rng(3)
    mask = rng.random((4, 6)) > 0.5
    a, b = (
        rng.integers(0, 9, (4, 6)).astype(clew.empty(0, dtype=dtype).numpy().dtype) for _ in "ab"
    )
    t, u, m = clew.tensor(a), clew.tensor(b), clew.tensor(mask)
    np.testing.assert_array_equal(clew.where(m, t, u).numpy(), np.where(mask, a, b))
    np.testing.assert_array_equal(clew.where(m, t, u[0, 0]).numpy(), np.where(mask, a, b[0, 0]))
    np.testing.assert_array_equal(clew.where(m, t[:1, :1], u).numpy(), np.where(mask, a[0, 0], b))
    np.testing.assert_array_equal(clew.where(m[0, 0], t, u).numpy(), a if mask[0, 0] else b)
    np.testing.assert_array_equal(clew.where(m, t[0], u).numpy(), np.where(mask, a[0], b))
    np.testing.assert_array_equal(clew.where(m.T, t.T, u.T).numpy(), np.where(mask, a, b).T)
    both = clew.where(m[:1, :1], t[0, :1], u[None, :1, :1])
    assert both.shape == (1, 1, 1)
    assert clew.where(m[:0], t[:0], u[:0]).shape == (0, 6)


def by_eights(row: np.ndarray) -> np.float32:
    """The sum in the order of vectors of eight: the rest first, then what the lanes hold."""
    whole = len(row) // 8 * 8
    lanes = np.zeros(8, "f4")
    for at in range(0, whole, 8):
        lanes += row[at : at + 8]
    total = np.float32(0)
    for term in [*row[whole:], *lanes]:
        total += term
    return total


@pytest.mark.parametrize("width", [8, 9, 15, 16, 23, 31])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16])
def test_sums_of_rows_side_by_side_keep_their_order(rows, width):
    x = numbers(rows, width) * np.float32(10) ** (numbers(rows, width) * 3)
    wanted = [by_eights(row) for row in x]
    np.testing.assert_array_equal(clew.tensor(x).sum(1).numpy(), wanted)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9, 13])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_rows_that_share_a_vector(name, rows, width):
    x = numbers(rows, width) * 4
    found = getattr(clew, name)(clew.tensor(x), -1).numpy()
    wide = x.astype("f8")
    shifted = wide - wide.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    wanted = logs if name == "log_softmax" else np.exp(logs)
    np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-6 * (name == "log_softmax"))
    # One row's infinity or NaN does not reach its neighbours.
    for value in (np.nan, np.inf):
        spoilt = x.copy()
        spoilt[rows // 2, width - 1] = value
        rest = getattr(clew, name)(clew.tensor(spoilt), -1).numpy()
        assert np.isnan(rest[rows // 2]).any()
        np.testing.assert_array_equal(np.delete(rest, rows // 2, 0), np.delete(found, rows // 2, 0))
    masked = x.copy()
    masked[0, 1:] = -np.inf
    assert getattr(clew, name)(clew.tensor(masked), -1)[0, 0].item() == float(name == "softmax")
    masked[0] = -np.inf
    assert getattr(clew, name)(clew.tensor(masked), -1)[0].isnan().all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "uint8"])
def test_short_rows_side_by_side_have_the_bits_of_each_alone(dtype):
    for n in (1, 3, 8, 9, 13, 16, 17, 20, 31, 64, 65, 100, 127, 128, 131, 300, 1023, 1024):
        x = clew.tensor(numbers(70, n) * 3).to(getattr(clew, dtype))
        if x.is_floating_point():
            x[1, n // 2], x[2, 0], x[3, -1], x[4] = clew.nan, clew.inf, -clew.inf, -0.0
        wide = clew.zeros(70, n + 5, dtype=x.dtype)
        wide[:, 2 : n + 2] = x
        for f in (clew.sum, clew.amax, clew.amin, clew.prod, clew.nansum):
            each = clew.stack([f(row.unsqueeze(0).expand(2, -1), 1)[0] for row in x])
            for rows in (x, wide[:, 2 : n + 2], x.expand(2, 70, n)[1]):
                found = f(rows, 1)
                # Shorter rows may be taken as columns, few sums of float32 have another order.
                if n < 16 or (f is clew.sum and dtype == "float32"):
                    near = 1e-2 if x.dtype.itemsize == 2 else 1e-5
                    same = clew.allclose(found, each, rtol=near, atol=near, equal_nan=True)
                else:
                    same = clew.equal(found.nan_to_num(7.5), each.nan_to_num(7.5))
                assert same, (f, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_many_short_rows_is_that_of_few(dtype):
    for n in (1, 2, 4, 5, 8, 10, 16, 31, 32, 33, 48, 50, 64, 65):
        x = clew.tensor(numbers(300, n) * 20).to(getattr(clew, dtype))
        x[5, 0], x[6, n // 2], x[7], x[8] = clew.nan, clew.inf, -clew.inf, 1e30
        for f in (clew.softmax, clew.log_softmax):
            found, wanted = f(x, 1), f(x.double().t().contiguous().t(), 1)
            near = 1e-5 if dtype == "float32" else 1e-12
            assert clew.allclose(found.double(), wanted, rtol=near, atol=near, equal_nan=True)
            few = clew.cat([f(rows, 1) for rows in x.split(max(512 // n, 1))])
            assert clew.allclose(found, few, rtol=near, atol=near, equal_nan=True)
            for given in (x.t().contiguous().t(), x.expand(2, 300, n)[1]):
                assert clew.allclose(f(given, 1), found, rtol=near, atol=near, equal_nan=True)
