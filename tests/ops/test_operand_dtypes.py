"""Operands whose dtypes differ: what is refused, and the dtype of what is accepted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew

F = clew.nn.functional
MASK = clew.tensor([True, False])
OTHERS = [clew.uint8, clew.int64, clew.float16, clew.float32, clew.float64, clew.complex64]


@pytest.mark.parametrize("other", [clew.bool, *OTHERS])
def test_bools_are_not_subtracted(other: Any):
    x = clew.ones(2).to(other)
    for call in (
        lambda: MASK - x,
        lambda: x - MASK,
        lambda: clew.sub(x, MASK),
        lambda: clew.rsub(x, MASK),
        lambda: clew.subtract(MASK, x),
        lambda: x.clone().subtract_(MASK),
        lambda: clew.sub(MASK, x, alpha=2),
        lambda: x.clone().sub_(MASK),
        lambda: clew.sub(x, MASK, out=clew.empty(2, dtype=x.dtype)),
        lambda: x - True,
        lambda: True - x,
        lambda: 1.5 - MASK,
        lambda: MASK - 1,
    ):
        with pytest.raises(RuntimeError, match="subtraction (of|with a) bool"):
            call()
    if other != clew.bool:
        assert clew.equal(x - x, clew.zeros(2).to(other))


@pytest.mark.parametrize("name", ["neg", "negative"])
def test_bools_are_not_negated(name: str):
    forms = (getattr(clew, name), getattr(clew.Tensor, name), getattr(clew.Tensor, name + "_"))
    for call in (*forms, lambda x: -x):
        with pytest.raises(RuntimeError, match="the negation of bools is not supported"):
            call(MASK)


@pytest.mark.parametrize("other", OTHERS)
def test_lerp_takes_one_dtype(other: Any):
    x = clew.ones(2)
    if other == clew.float32:
        assert clew.lerp(x, x + 2, 0.5).tolist() == [2.0, 2.0]
        assert clew.lerp(x, x + 2, clew.tensor(0.5)).tolist() == [2.0, 2.0]
        return
    y = clew.ones(2).to(other)
    refused = [(x, y, 0.5), (y, x, 0.5), (x, x, y)]
    if other.is_complex:
        refused.append((x, x, y[0]))
    else:  # a weight of no dims is as good as a number
        got = clew.lerp(x, x + 2, y[0])
        assert got.dtype == clew.float32 and got.tolist() == [3.0, 3.0]
        assert x.clone().lerp_(x + 2, y[0]).tolist() == [3.0, 3.0]
    for args in refused:
        with pytest.raises(RuntimeError, match="lerp: expected input, end and weight of one dtype"):
            clew.lerp(*args)
    with pytest.raises(RuntimeError, match="lerp"):
        clew.lerp(x, x, 1j)
    if not other.is_floating_point and not other.is_complex:
        with pytest.raises(NotImplementedError, match="lerp"):
            clew.lerp(y, y, 0.5)


def test_gradient_of_a_lerp_weight_of_another_dtype():
    x = clew.zeros(3, dtype=clew.float64, requires_grad=True)
    weight = clew.tensor(0.25, requires_grad=True)
    out = clew.lerp(x, x.detach() + clew.arange(3.0), weight)
    assert out.dtype == clew.float64 and out.tolist() == [0.0, 0.25, 0.5]
    out.sum().backward()
    assert weight.grad.dtype == clew.float32 and weight.grad.item() == 3.0
    assert x.grad.tolist() == [0.75] * 3
    # Without any dims the wider dtype is that of the result.
    assert clew.lerp(clew.tensor(1.0), clew.tensor(3.0), x.detach()[0] + 0.5).dtype == clew.float64


@pytest.mark.parametrize("dtype", [clew.bool, clew.uint8, clew.int64])
def test_addcdiv_of_integers(dtype: Any):
    y = clew.ones(2).to(dtype)
    for x in (clew.ones(2), y):
        with pytest.raises(RuntimeError, match="addcdiv: the division of integers"):
            clew.addcdiv(x, y, y)
    assert clew.addcdiv(clew.ones(2), y, clew.full((2,), 4.0)).tolist() == [1.25, 1.25]


@pytest.mark.parametrize("method", [False, True])
def test_where_takes_bytes_with_a_warning(method: bool):
    condition = clew.tensor([2, 0, 255], dtype=clew.uint8)
    x, y = clew.tensor([1.0, 2.0, 3.0]), clew.tensor([4.0, 5.0, 6.0])
    with pytest.warns(UserWarning, match="uint8 condition"):
        got = x.where(condition, y) if method else clew.where(condition, x, y)
    assert got.tolist() == [1.0, 5.0, 3.0]
    with pytest.warns(UserWarning, match="uint8 condition"):
        assert clew.where(condition, 1, 2).tolist() == [1, 2, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="uint8 condition"):
            clew.where(condition, x, y)
        for dtype in (clew.int64, clew.float32):
            with pytest.raises(RuntimeError, match="must be a boolean tensor"):
                clew.where(condition.to(dtype), x, y)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_the_older_order_warns(name: str):
    x = clew.full((2,), 2.0)
    for call in (
        lambda: getattr(clew, name)(x, 3, x, x),
        lambda: getattr(x, name)(3, x, x),
        lambda: getattr(x.clone(), name + "_")(3, x, x),
    ):
        with pytest.warns(UserWarning, match="deprecated"):
            got = call()
        assert got.tolist() == ([14.0] if name == "addcmul" else [5.0]) * 2


@pytest.mark.parametrize("exponent", [clew.int8, clew.int64, clew.uint8])
@pytest.mark.parametrize("dtype", [clew.float16, clew.bfloat16, clew.float32, clew.float64])
def test_ldexp_keeps_the_dtype(dtype: Any, exponent: Any):
    got = clew.ldexp(clew.tensor([1.5, -3.0], dtype=dtype), clew.tensor([2, 1], dtype=exponent))
    assert got.dtype == dtype and got.tolist() == [6.0, -6.0]
    with pytest.raises(RuntimeError, match="ldexp"):
        clew.ldexp(got, MASK)


FLOATS = [clew.float16, clew.bfloat16, clew.float32, clew.float64]
R = np.random.default_rng(0)
SCORES, TARGETS = R.normal(size=6), R.uniform(size=6)


def bce(x: Any, t: Any) -> Any:
    return np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_losses_of_two_dtypes(dtype: Any, target: Any):
    x = clew.tensor(SCORES, dtype=dtype, requires_grad=True)
    t = clew.tensor(TARGETS, dtype=target)
    known_x, known_t = x.detach().double().numpy(), t.double().numpy()
    off = {clew.float16: 2e-3, clew.bfloat16: 2e-2}
    near = {"rtol": max(off.get(dtype, 1e-6), off.get(target, 1e-6)), "atol": 1e-3}
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    assert loss.dtype == target
    np.testing.assert_allclose(loss.detach().double().numpy(), bce(known_x, known_t), **near)
    both = {"weight": clew.full((6,), 0.5), "pos_weight": clew.ones(6)}
    assert F.binary_cross_entropy_with_logits(x, t, **both).dtype == target
    loss.sum().backward()
    assert x.grad.dtype == dtype
    loss = F.huber_loss(x, t, reduction="none", delta=0.7)
    assert loss.dtype == dtype
    d = np.abs(known_x - known_t)
    want = np.where(d < 0.7, d * d / 2, 0.7 * (d - 0.35))
    np.testing.assert_allclose(loss.detach().double().numpy(), want, **near)


@pytest.mark.parametrize("dtype", [clew.uint8, clew.int8, clew.int64, clew.bool, clew.float64])
def test_soft_margin_loss_of_other_targets(dtype: Any):
    x = clew.tensor([0.5, -2.0])
    t = clew.tensor([1, 1]).to(dtype)
    got = F.soft_margin_loss(x, t, reduction="none")
    assert got.dtype == clew.float32
    np.testing.assert_allclose(got.numpy(), np.log1p(np.exp(-x.numpy())), rtol=1e-6)


NORMS: dict[str, Callable[[Any, Any], Any]] = {
    "layer_norm": lambda x, w: F.layer_norm(x, (4,), w, w),
    "group_norm": lambda x, w: F.group_norm(x, 2, w, w),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, w, w, training=True),
    "statistics": lambda x, w: F.batch_norm(x, w, w),
}


@pytest.mark.parametrize("weight", FLOATS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NORMS)
def test_weights_of_norms_have_the_inputs_dtype(name: str, dtype: Any, weight: Any):
    x = clew.arange(12).reshape(3, 4).to(dtype)
    w = clew.ones(4, dtype=weight)
    if weight == dtype or (dtype.itemsize == 2 and weight == clew.float32):
        assert NORMS[name](x, w).dtype == dtype
        return
    with pytest.raises(RuntimeError, match="must have the input's dtype"):
        NORMS[name](x, w)


def test_complex_numbers_in_places_of_others():
    x = clew.ones(2)
    for call in (
        lambda: clew.scatter(x, 0, clew.tensor([0]), 1j),
        lambda: x.scatter_(0, clew.tensor([0]), 1j),
        lambda: x.fill_(1j),
        lambda: x.index_fill_(0, clew.tensor([0]), 1j),
        lambda: x.masked_fill_(MASK, 1j),
        lambda: x.__setitem__(0, 1j),
        lambda: clew.full_like(x, 1j),
    ):
        with pytest.raises(RuntimeError, match="complex value"):
            call()
    assert x.tolist() == [1.0, 1.0]
    # A bool asks only whether there is anything.
    for value in (1j, 1 + 0j, 0j):
        m = clew.tensor([False, False])
        m[0] = value
        want = [bool(value), False]
        assert m.tolist() == want
        assert clew.zeros(2, dtype=clew.bool).masked_fill(MASK, value).tolist() == want
        assert clew.zeros(2, dtype=clew.bool).fill_(value).tolist() == [bool(value)] * 2
        assert clew.full((1,), value, dtype=clew.bool).tolist() == [bool(value)]


DTYPES = [clew.bool, clew.uint8, clew.int64, clew.float16, clew.float32, clew.complex64]


@pytest.mark.parametrize("value", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_assignment_of_another_dtype(dtype: Any, value: Any):
    """Parts that slices name take any dtype; places that tensors name take the tensor's own."""
    v = clew.ones(2).to(value)
    for key in (0, slice(0, 1), slice(None), Ellipsis, None, True):
        x = clew.zeros(2).to(dtype)
        x[key] = v[0]
        assert x[0].to(clew.int64) == 1
    mask = clew.tensor([True, False])
    x = clew.zeros(2).to(dtype)
    x[mask] = v[:1]
    assert x.to(clew.int64).tolist() == [1, 0]
    x = clew.zeros(4, 2).to(dtype)
    for key, part in (
        ([0, 1], v),
        (clew.tensor([1]), v[0]),
        (clew.tensor([True, False, True, False]), v),
        ((slice(None), [0]), v[0]),
        ((clew.tensor([0, 1]), slice(None)), v),
    ):
        if dtype == value:
            x[key] = part
            continue
        with pytest.raises(RuntimeError, match="must have the tensor's dtype"):
            x[key] = part
    assert bool((x != 0).any()) == (dtype == value)
