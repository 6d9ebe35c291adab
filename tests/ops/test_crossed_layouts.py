"""Elementwise operations on large operands whose memory runs in different directions."""

import itertools

import numpy as np
import pytest

import clew

SHAPES = [(200, 300), (64, 16, 70), (3, 130, 5, 67), (1025, 64), (16, 4096)]
DTYPES = ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex128"]


def turned(shape, order, dtype, seed):
    """A tensor of this shape whose memory has the dims in another order, and its own numbers."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2 if dtype == "bool" else 9, shape)
    plain = clew.from_numpy(x).to(getattr(clew, dtype))
    back = np.argsort(order)
    return plain.permute(*order).contiguous().permute(*map(int, back)), plain


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_order_of_dims(shape, threads):
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(threads)
        for order in itertools.permutations(range(len(shape))):
            a, plain_a = turned(shape, order, "float32", 1)
            b, plain_b = turned(shape, order[::-1], "float32", 2)
            assert clew.equal(plain_a + b, plain_a + plain_b)
            assert clew.equal(a * plain_b, plain_a * plain_b)
            assert clew.equal(a - b, plain_a - plain_b)
            assert clew.equal(clew.where(a > b, a, b), clew.maximum(plain_a, plain_b))
            assert clew.equal(clew.addcmul(plain_a, a, b), plain_a + plain_a * plain_b)
    finally:
        clew.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size_of_element(dtype):
    a, plain_a = turned((300, 257), (1, 0), dtype, 3)
    _, plain_b = turned((300, 257), (1, 0), dtype, 4)
    assert clew.equal(a == plain_b, plain_a == plain_b)
    assert clew.equal(plain_b * a, plain_b * plain_a)
    mixed = plain_b.to(clew.float64 if not a.is_complex() else clew.complex128)
    assert clew.equal(mixed + a, mixed + plain_a)


@pytest.mark.parametrize(
    "shape", [(64, 64), (65, 130), (300, 257), (1000, 64), (2048, 4096)], ids=str
)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "complex128"])
def test_transposed_copies(dtype, shape):
    x = np.random.default_rng(0).integers(0, 256, shape).astype(dtype)
    got = clew.from_numpy(x).t().contiguous()
    assert got.is_contiguous()
    np.testing.assert_array_equal(got.numpy(), x.T)


def test_in_place_reversed_and_broadcast():
    a, plain = turned((400, 300), (1, 0), "float32", 5)
    y = plain.clone()
    y.mul_(a)
    assert clew.equal(y, plain * plain)
    np.testing.assert_array_equal((plain + a.flip(0)).numpy(), plain.numpy() + plain.numpy()[::-1])
    row = clew.arange(300.0)
    assert clew.equal(a + row, plain + row)
    assert clew.equal(plain + a[:, :1], plain + plain[:, :1])
    square = plain[:300].clone()
    expected = square.numpy() + square.numpy().T
    square.add_(square.t().clone())
    np.testing.assert_array_equal(square.numpy(), expected)
    out = clew.empty(300, 400).t()
    clew.add(plain, a, out=out)
    assert clew.equal(out, plain + plain)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "bfloat16", "float32", "float64", "complex128"]
)
def test_planes_of_few_columns(dtype: str):
    """Narrower than a tile, or with a rest: squares of registers, which may overlap."""
    for rows in (8, 9, 16, 17, 31, 40, 64, 70, 100):
        for columns in (4, 5, 8, 12, 16, 17, 20, 31, 33, 65, 80):
            x = clew.arange(2 * rows * columns).to(getattr(clew, dtype)).reshape(2, columns, rows)
            turned = x.permute(0, 2, 1).contiguous()
            assert turned.is_contiguous()
            wide = x.to(clew.complex128 if x.is_complex() else clew.float64).numpy()
            got = turned.to(clew.complex128 if x.is_complex() else clew.float64).numpy()
            assert (got == wide.transpose(0, 2, 1)).all(), (rows, columns)
