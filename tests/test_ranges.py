"""arange, range, linspace and logspace: spacing, dtypes, every argument, bad input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import clew


@pytest.mark.parametrize(
    "args",
    [
        (5,),
        (2, 7),
        (7, 2, -2),
        (0, 10, 3),
        (10, 0, -3),
        (0,),
        (3, 3),
        (-4, 4, 5),
        (0.5, 3.2, 0.25),
        (1.0,),
        (0, 1, 0.1),
        (5, 1, -0.5),
        (2**40, 2**40 + 3),
    ],
)
def test_arange(args):
    got = clew.arange(*args)
    want = np.arange(*args)
    assert got.dtype is (clew.int64 if want.dtype.kind == "i" else clew.float32)
    np.testing.assert_allclose(got.tolist(), want, rtol=1e-6, atol=1e-7)
    got = clew.arange(*args, dtype=clew.float64)
    np.testing.assert_allclose(got.tolist(), want, rtol=1e-15, atol=1e-15)


def test_arange_arguments():
    assert clew.arange(end=3).tolist() == [0, 1, 2]
    assert clew.arange(1, end=3).tolist() == [1, 2]
    assert clew.arange(start=1, end=6, step=2).tolist() == [1, 3, 5]
    assert clew.arange(5, step=2).tolist() == [0, 2, 4]
    assert clew.arange(clew.tensor(3)).tolist() == [0, 1, 2]
    assert clew.arange(3, dtype=clew.uint8, requires_grad=False).dtype is clew.uint8
    assert clew.arange(3.0, requires_grad=True).requires_grad
    assert clew.arange(0.5, 5.7, dtype=clew.int64).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((0, 10, 0), "step must be nonzero"),
        ((0, 10, -1), "inconsistent with step sign"),
        ((5, 1), "inconsistent with step sign"),
        ((0, math.inf), "unsupported range"),
        ((math.nan,), "unsupported range"),
        ((0, 1, math.nan), "nonzero"),
        ((0, 1, 1e-300), "too many"),
        ((1j,), "must be real"),
    ],
)
def test_arange_errors(args, match):
    with pytest.raises(RuntimeError, match=match):
        clew.arange(*args)
    with pytest.raises(TypeError):
        clew.arange()
    with pytest.raises(TypeError):
        clew.arange("a")


def test_range_includes_its_end():
    with pytest.warns(UserWarning, match="includes its end"):
        assert clew.range(0, 3).tolist() == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert clew.range(1, 2, 0.5).tolist() == [1, 1.5, 2]
        assert clew.range(2).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 101])
@pytest.mark.parametrize(("start", "end"), [(0, 1), (-3, 7), (2.5, -2.5), (1, 1), (0, 1 + 2j)])
def test_linspace(start, end, n):
    want = np.linspace(start, end, n)
    got = clew.linspace(start, end, n)
    assert got.dtype is (clew.complex64 if want.dtype.kind == "c" else clew.float32)
    np.testing.assert_allclose(np.asarray(got.tolist(), want.dtype), want, rtol=1e-6, atol=1e-6)
    wide = clew.complex128 if want.dtype.kind == "c" else clew.float64
    got = clew.linspace(start, end, n, dtype=wide)
    np.testing.assert_allclose(np.asarray(got.tolist(), want.dtype), want, rtol=1e-14, atol=1e-15)
    if n > 1:
        assert got.tolist()[0] == start and got.tolist()[-1] == end


def test_linspace_of_integers_and_errors():
    assert clew.linspace(0, 10, 5, dtype=clew.int64).tolist() == [0, 2, 5, 7, 10]
    assert clew.linspace(clew.tensor(0.0), clew.tensor(1.0), steps=3).tolist() == [0, 0.5, 1]
    with pytest.raises(RuntimeError, match="non-negative"):
        clew.linspace(0, 1, -1)
    with pytest.raises(TypeError):
        clew.linspace(0, 1)
    with pytest.raises(RuntimeError, match="can't be safely cast"):
        clew.linspace(0, 1j, 3, dtype=clew.float32)


def test_logspace():
    np.testing.assert_allclose(clew.logspace(-2, 2, 5).tolist(), np.logspace(-2, 2, 5), rtol=1e-6)
    got = clew.logspace(0, 3, 4, base=2, dtype=clew.int64)
    assert got.tolist() == [1, 2, 4, 8]
    assert clew.logspace(1, 5, 1).tolist() == [10]
    assert clew.logspace(1, 5, 0).shape == (0,)


def test_whole_numbers_are_spaced_as_pytorch_spaces_them():
    # The ends of a whole-number result are whole numbers, the powers between them need not be.
    assert clew.logspace(-2, 1.2, 2, dtype=clew.int64).tolist() == [0, 10]
    assert clew.logspace(0, 1, 3, dtype=clew.int32).tolist() == [1, 3, 10]
    assert clew.logspace(-2, 0, 5, dtype=clew.int64).tolist() == [0, 0, 0, 0, 1]
    assert clew.linspace(-2, 0, 3, dtype=clew.uint8).tolist() == [254, 127, 0]
    assert clew.linspace(-2, 7, 16, dtype=clew.int64).tolist()[:7] == [-2, -1, 0, 0, 0, 0, 1]
    with pytest.warns(UserWarning, match="includes its end"):
        assert clew.range(-2, 0, 2.9, dtype=clew.int64).tolist() == [-2, 0]
    for make in (clew.linspace, clew.logspace):
        with pytest.raises(RuntimeError, match="without overflow"):
            make(0, 300.5, 4, dtype=clew.uint8)
        with pytest.raises(NotImplementedError, match="bool"):
            make(0, 1, 3, dtype=clew.bool)


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda **k: clew.linspace(0, 5, 6, **k), [0, 1, 2, 3, 4, 5]),
        (lambda **k: clew.logspace(0, 5, 6, base=2.0, **k), [1, 2, 4, 8, 16, 32]),
        (lambda **k: clew.arange(6.0, **k), [0, 1, 2, 3, 4, 5]),
        (lambda **k: clew.arange(5, -1, -1, **k), [5, 4, 3, 2, 1, 0]),
    ],
)
def test_a_range_stays_within_an_out_of_another_shape(make, want):
    for part in (lambda t: t[:, ::2], lambda t: t[:, 1:7:2], lambda t: t.t()[1:7:2].t()):
        whole = clew.full((2, 7), -1.0)
        out = part(whole)[:, :3]
        assert make(out=out) is out
        assert out.shape == (2, 3) and out.flatten().tolist() == want
        assert (whole == -1).sum() == 8
    with pytest.raises(RuntimeError, match="single memory location"):
        make(out=clew.zeros(1).expand(6))


def test_linspace_in_single_precision_steps_as_pytorch_does():
    r = np.random.default_rng(0)
    for low, high, n in zip(r.uniform(-5, 5, 50), r.uniform(-5, 5, 50), r.integers(2, 90, 50)):
        a, b, k = np.float32(low), np.float32(high), np.arange(n)
        step = np.float64((b - a) / np.float32(n - 1))
        want = np.where(k < n // 2, a + step * k, b - step * (n - 1 - k)).astype(np.float32)
        np.testing.assert_array_equal(clew.linspace(low, high, int(n)).numpy(), want)
