"""A number that is put into a tensor must be one that its elements can hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew

Put = Callable[[clew.Tensor, Any], Any]
MASK = clew.tensor([True, False, True])
FIRST = clew.tensor([0])
PUTS: dict[str, Put] = {
    "fill_": lambda x, v: x.fill_(v),
    "full": lambda x, v: clew.full((3,), v, dtype=x.dtype),
    "full_like": lambda x, v: clew.full_like(x, v),
    "new_full": lambda x, v: x.new_full((3,), v),
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "masked_fill_": lambda x, v: x.masked_fill_(MASK, v),
    "masked_fill of a tensor": lambda x, v: x.masked_fill(MASK, clew.tensor(v)),
    "index_fill": lambda x, v: x.index_fill(0, FIRST, v),
    "scatter": lambda x, v: x.scatter(0, FIRST, v),
    "pad": lambda x, v: clew.nn.functional.pad(x, (1, 1), value=v),
    "init": lambda x, v: clew.nn.init.constant_(x, v),
}
SETS: dict[str, Put] = {
    "x[0]": lambda x, v: x.__setitem__(0, v),
    "x[0:2]": lambda x, v: x.__setitem__(slice(0, 2), v),
    "x[index]": lambda x, v: x.__setitem__(FIRST, v),
    "x[mask]": lambda x, v: x.__setitem__(MASK, v),
    "where": lambda x, v: clew.where(MASK, x, v),
}
ALL = PUTS | SETS
TOO_LARGE = [
    (clew.uint8, 300),
    (clew.int8, 128),
    (clew.int32, 2**31),
    (clew.int64, math.nan),
    (clew.int64, math.inf),
    (clew.int64, 1e30),
    (clew.uint8, -3.0),
    (clew.uint16, 70000),
]


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("dtype, value", TOO_LARGE, ids=str)
def test_integers_that_do_not_fit_are_refused(how: str, dtype: Any, value: float) -> None:
    if how == "where" and isinstance(value, float):
        pytest.skip("the result is floating")
    x = clew.zeros(3, dtype=dtype)
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        ALL[how](x, value)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("how", PUTS)
@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float32], ids=str)
def test_floats_that_do_not_fit_are_refused_and_infinity_is_not(how: str, dtype: Any) -> None:
    x = clew.zeros(3, dtype=dtype)
    if how != "masked_fill of a tensor" or dtype is clew.float16:
        value = 1e6 if dtype is clew.float16 else 1e39
        with pytest.raises(RuntimeError, match="without overflow.*use inf"):
            PUTS[how](x, value)
    assert x.tolist() == [0.0, 0.0, 0.0]
    out = PUTS[how](x, -math.inf)
    assert out.isinf().any()
    assert PUTS[how](clew.zeros(3, dtype=dtype), math.nan).isnan().any()


@pytest.mark.parametrize("how", [how for how in ALL if how != "pad"])  # its value is a float
def test_a_negative_number_wraps_around_in_an_unsigned_type(how: str) -> None:
    x = clew.zeros(3, dtype=clew.uint8)
    out = ALL[how](x, -1)
    assert 255 in (x if out is None else out).tolist()
    assert 1 in (clew.full((1,), -255, dtype=clew.uint8)).tolist()


def test_what_fits() -> None:
    assert clew.full((1,), 2**63, dtype=clew.uint64).tolist() == [2**63]
    assert clew.full((1,), -(2**31), dtype=clew.int32).tolist() == [-(2**31)]
    assert clew.full((1,), 7, dtype=clew.bool).tolist() == [True]
    assert clew.full((1,), 65504.0, dtype=clew.float16).tolist() == [65504.0]
    x = clew.zeros(2).half()
    x[0] = 1e6  # as in PyTorch, a place alone takes what becomes infinity
    assert x.tolist() == [math.inf, 0.0]


def test_a_mask_takes_one_number_of_any_dtype() -> None:
    x = clew.zeros(3, dtype=clew.float64)
    assert x.index_put((MASK,), clew.tensor(3.0)).tolist() == [3.0, 0.0, 3.0]
    x.index_put_((MASK,), clew.tensor(True))
    assert x.tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="dtype"):
        x.index_put_((FIRST,), clew.tensor([1.0]))
    with pytest.raises(RuntimeError, match="overflow"):
        clew.zeros(3, dtype=clew.uint8).index_put_((MASK,), clew.tensor(300))


def test_complex_division_by_zero() -> None:
    for dtype in (clew.complex64, clew.complex128):
        x = clew.tensor([1 + 2j, -1j, 2 + 0j], dtype=dtype)
        for zero in (0, clew.zeros(3, dtype=dtype), complex(-0.0, 0.0)):
            a, b, c = (x / zero).tolist()
            assert a == complex(math.inf, math.inf)
            assert math.isnan(b.real) and b.imag == -math.inf
            assert c.real == math.inf and math.isnan(c.imag)
        inverse = clew.zeros(1, dtype=dtype).reciprocal().item()
        assert inverse.real == math.inf and math.isnan(inverse.imag)


def test_next_numbers_of_16_bits() -> None:
    for dtype, eps, least in (
        (clew.float16, 2.0**-10, 2.0**-24),
        (clew.bfloat16, 2.0**-7, 2.0**-133),
    ):
        a = clew.tensor([1.0, 1.0, 0.0, 0.0, -1.0, 1.0, math.inf, math.nan], dtype=dtype)
        b = clew.tensor([2.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 1.0], dtype=dtype)
        out = clew.nextafter(a, b).double().tolist()
        assert out[:6] == [1 + eps, 1 - eps / 2, least, -least, -1 + eps / 2, 1.0]
        assert out[6] == clew.finfo(dtype).max and math.isnan(out[7])


def test_indexing_by_numpy_integers_without_dimensions() -> None:
    x = clew.arange(6.0).reshape(2, 3)
    row = x[np.array(1)]
    assert row.tolist() == [3.0, 4.0, 5.0] and row.data_ptr() == x[1].data_ptr()
    x[np.array(0)] = clew.tensor(2.5, dtype=clew.float64)
    assert x[0].tolist() == [2.5, 2.5, 2.5]
    assert x[..., np.array(1)].tolist() == [2.5, 4.0]
    with pytest.raises(IndexError, match="out of bounds"):
        x[np.array(2)]


def test_draws_into_elements_that_lie_apart() -> None:
    clew.manual_seed(1)
    expected = clew.zeros(17, 2)[:, 0].normal_()
    clew.manual_seed(1)
    target = clew.zeros(17, 2)[:, 0]
    clew.randn(17, out=target)
    assert target.tolist() == expected.tolist()


def test_writing_nowhere_overlaps_nothing() -> None:
    x = clew.zeros(3, 0).t()
    x[[]] = -1
    assert x.shape == (0, 3)


BOUNDS: dict[str, Put] = {
    "clamp min": lambda x, v: x.clamp(min=v),
    "clamp max": lambda x, v: x.clamp(max=v),
    "clamp_": lambda x, v: x.clone().clamp_(max=v),
    "clamp_max": lambda x, v: clew.clamp_max(x, v),
    "clamp_min": lambda x, v: clew.clamp_min(x, v),
    "hardtanh": lambda x, v: clew.nn.functional.hardtanh(x, 0, v),
    "threshold": lambda x, v: clew.nn.functional.threshold(x, 0, v),
    "threshold's bound": lambda x, v: clew.nn.functional.threshold(x, v, 0),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("dtype", [clew.uint8, clew.int8])
def test_a_bound_fits_the_elements(name: str, dtype: clew.dtype) -> None:
    x = clew.tensor([0, 5, 100], dtype=dtype)
    assert BOUNDS[name](x, 100).dtype is dtype
    with pytest.raises(RuntimeError, match="without overflow"):
        BOUNDS[name](x, 300)


def test_thresholds_of_integers_lose_their_fractions() -> None:
    x = clew.tensor([-3, 0, 5])
    assert clew.nn.functional.threshold(x, 0.5, -7.9).tolist() == [-7, -7, 5]
    assert clew.nn.Threshold(0.5, 2.5, inplace=True)(x.clone()).tolist() == [2, 2, 5]
    assert clew.addcmul(x, x, x, value=0.5).tolist() == [-3, 0, 5]
    with pytest.raises(RuntimeError, match="alpha must not be"):
        clew.add(x, x, alpha=0.5)
