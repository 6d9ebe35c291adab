"""Conversions between every two dtypes, against NumPy, for every way that elements can lie."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clew

WHOLE = [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64]
FLOATS = [np.float16, np.float32, np.float64]
OTHERS = [np.bool_, np.complex64, np.complex128]


def values(dtype: type) -> np.ndarray:
    """Numbers that every dtype holds exactly, more than a block of them."""
    return np.arange(1500).reshape(30, 50).astype(np.int64).__mod__(120).astype(dtype)


def layouts(x):
    yield x
    yield x.T
    yield x[:, ::3]
    yield x[3:4, 2:3]
    yield x[:, ::-1]
    yield np.broadcast_to(x[:1], x.shape)


@pytest.mark.parametrize("source, target", [*itertools.product(WHOLE + FLOATS + OTHERS, repeat=2)])
def test_every_pair(source, target):
    for x in layouts(values(source)):
        given = clew.from_numpy(np.ascontiguousarray(x))
        if not x.flags.c_contiguous and 0 not in x.strides and min(x.strides) > 0:
            given = clew.from_numpy(values(source))
            given = given.t() if x.shape == (50, 30) else given[:, ::3]
        expected = x.real if issubclass(source, np.complexfloating) and target in WHOLE else x
        got = given.to(clew.from_numpy(np.zeros(1, target)).dtype)
        if issubclass(source, np.complexfloating) and target in FLOATS:
            expected = x.real
        assert np.array_equal(got.numpy(), expected.astype(target))


@pytest.mark.parametrize("target", WHOLE)
def test_whole_numbers_wrap_around(target):
    x = np.array([-1, 255, 256, -129, 2**31, 2**40 + 5, -(2**63), 2**63 - 1] * 9)
    got = clew.from_numpy(x).to(clew.from_numpy(np.zeros(1, target)).dtype)
    assert np.array_equal(got.numpy(), x.astype(target))


def test_every_float16_and_what_becomes_one():
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = clew.from_numpy(every).double().numpy()
    assert np.array_equal(wide, every.astype(np.float64), equal_nan=True)
    number = np.isfinite(wide)
    between = (wide[number][1:] + wide[number][:-1]) / 2  # ties
    around = np.concatenate([np.nextafter(between, s * np.inf) for s in (-1, 1)] + [between])
    x = around.astype(np.float32)
    with np.errstate(over="ignore"):
        for given in (x, x.astype(np.float64)):  # float64 by way of float32, as PyTorch has it
            got = clew.from_numpy(given).half().numpy()
            assert np.array_equal(got.view(np.uint16), x.astype(np.float16).view(np.uint16))
    back = clew.from_numpy(every).float().half().numpy()
    assert np.array_equal(back[number].view(np.uint16), every[number].view(np.uint16))
    assert np.isnan(back[np.isnan(every)]).all()


def test_bfloat16_by_way_of_float32():
    x = clew.tensor([1.5, -2.25, 3e38, 1e-40, float("inf"), float("nan"), 0.0, 65504.0] * 70)
    b = x.bfloat16()
    for dtype in (clew.float64, clew.float16, clew.complex128, clew.bool):
        assert np.array_equal(b.to(dtype).numpy(), b.float().to(dtype).numpy(), equal_nan=True)
    for dtype in (clew.int16, clew.uint8, clew.int64):
        small = clew.tensor([1.5, -2.25, 100.0]).bfloat16()
        assert small.to(dtype).equal(small.float().to(dtype))


@pytest.mark.parametrize("dtype", [clew.uint8, clew.bool, clew.int16, clew.float16, clew.int32])
def test_flips_of_rows_of_every_length(dtype):
    for n in range(1, 70):
        x = clew.randint(0, 100, (3, n)).to(dtype)
        assert np.array_equal(x.flip(1).numpy(), x.numpy()[:, ::-1])


@pytest.mark.parametrize("dtype", [*WHOLE, *FLOATS, np.bool_])
@pytest.mark.parametrize("shape", [(0,), (), (1,), (1000,), (300, 40)])
def test_runs_of_equal_elements(dtype, shape):
    x = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    found = clew.unique_consecutive(clew.tensor(x), return_inverse=True, return_counts=True)
    flat = x.ravel()
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]])[: flat.size])
    assert np.array_equal(found[0].numpy(), flat[starts])
    places = np.searchsorted(starts, np.arange(flat.size), "right") - 1
    assert np.array_equal(found[1].numpy(), places.reshape(shape))
    assert np.array_equal(found[2].numpy(), np.diff(np.append(starts, flat.size)))


def test_runs_end_at_nan():
    x = clew.tensor([float("nan"), float("nan"), 0.0, -0.0, 1.0])
    assert clew.unique_consecutive(x).isnan().tolist() == [True, True, False, False]
