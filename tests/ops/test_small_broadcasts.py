"""Small operands of other shapes, layouts and dtypes, which are spread before the loop runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import clew

SHAPES = [(8, 8), (8,), (8, 1), (1, 8), (1, 1), (), (3, 8, 8), (3, 1, 1), (3, 1, 8), (1,)]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("left", SHAPES)
@pytest.mark.parametrize("right", SHAPES)
def test_every_pair_of_shapes_broadcasts_as_in_numpy(left, right):
    for a, b in (
        ("f4", "f4"),
        ("f4", "i8"),
        ("i4", "f8"),
        ("?", "f4"),
        ("c8", "f4"),
        ("c16", "i8"),
    ):
        x, y = numbers(left, a, 1), numbers(right, b, 2)
        found = (clew.tensor(x) * clew.tensor(y)).numpy()
        np.testing.assert_array_equal(found, x * y)
        assert found.shape == (x * y).shape
        compared = clew.tensor(x) == clew.tensor(y)
        np.testing.assert_array_equal(compared.numpy(), x == y)


@pytest.mark.parametrize("bits", ["u1", "i2", "f4", "f8", "c16"])
def test_operands_of_any_layout(bits):
    x = numbers((4, 3, 6), bits, 3)
    t = clew.tensor(x)
    others = {
        "turned": (clew.tensor(x.T.copy()).permute(2, 1, 0), x),
        "thinned": (clew.tensor(np.repeat(x, 2, 2))[:, :, ::2], x),
        "column": (t[:, :, :1], x[:, :, :1]),
        "middle": (t[:, 1], x[:, 1][:, None]),
        "expanded": (t[0, 0].expand(4, 3, 6), x[0, 0]),
    }
    for name, (other, same) in others.items():
        if name == "middle":
            other = other[:, None]
        np.testing.assert_array_equal((t + other).numpy(), x + same, err_msg=name)
        np.testing.assert_array_equal((other + t).numpy(), same + x, err_msg=name)


def test_more_dims_than_are_spread():
    x = numbers((2, 1, 2, 1, 2, 1, 2, 1, 2, 1), "f4", 4)
    y = numbers((1, 2, 1, 1, 2, 2, 1, 2, 1, 1), "f4", 5)
    np.testing.assert_array_equal((clew.tensor(x) - clew.tensor(y)).numpy(), x - y)


def test_written_in_place_and_into_out():
    x, row = numbers((5, 7), "f4", 6), numbers((7,), "i4", 7)
    out = clew.tensor(x)
    out.mul_(clew.tensor(row))
    np.testing.assert_array_equal(out.numpy(), x * row)
    clew.sub(clew.tensor(x), clew.tensor(row).float(), out=out)
    np.testing.assert_array_equal(out.numpy(), x - row)
    square = clew.tensor(numbers((6, 6), "f4", 8))
    with pytest.raises(RuntimeError, match="single memory location"):
        square.add_(square.T)


def test_layout_of_the_first_full_operand():
    turned, plain = clew.ones(3, 4).T, clew.ones(4, 3)
    assert (turned + clew.ones(3)).stride() == (1, 4)
    assert (plain + turned).stride() == (3, 1)
    assert (clew.ones(3) + turned).stride() == (1, 4)


def test_shapes_that_do_not_fit_still_raise():
    with pytest.raises(RuntimeError, match="broadcast|match"):
        clew.ones(8, 8) * clew.ones(7)


@pytest.mark.parametrize(("left", "right"), itertools.product(SHAPES[:8], SHAPES[:8]))
def test_gradients_are_summed_over_what_was_spread(left, right):
    x = clew.tensor(numbers(left, "f4", 9), requires_grad=True)
    y = clew.tensor(numbers(right, "f4", 10), requires_grad=True)
    product = x * y
    seed = numbers(tuple(product.shape), "f4", 11)
    product.backward(clew.tensor(seed))

    def summed(full: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        full = full.sum(tuple(range(full.ndim - len(shape))))
        once = tuple(d for d, n in enumerate(shape) if n == 1 and full.shape[d] != 1)
        return full.sum(once, keepdims=True)

    np.testing.assert_array_equal(x.grad.numpy(), summed(seed * y.detach().numpy(), left))
    np.testing.assert_array_equal(y.grad.numpy(), summed(seed * x.detach().numpy(), right))


def test_backward_with_a_gradient():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).backward(clew.tensor([1.0, 2.0]))
    (x * 3).backward(gradient=clew.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [6.0, 12.0]
    with pytest.raises(RuntimeError, match="shape"):
        (x * 3).backward(clew.ones(3))
    with pytest.raises(RuntimeError, match="require grad"):
        x.detach().backward(clew.ones(2))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?", "c8"])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 63, 64])
def test_short_rows_that_repeat(width, dtype):
    """Those of some operands are written out several times, so that the loop gets long rows."""
    a, b, c = (
        numbers((40, width), dtype, 1),
        numbers((90, width), dtype, 2),
        numbers((width,), dtype, 3),
    )
    x, y, z = clew.tensor(a), clew.tensor(b), clew.tensor(c)
    combine = np.logical_xor if dtype == "?" else np.subtract
    ours = clew.logical_xor if dtype == "?" else clew.subtract
    np.testing.assert_array_equal(ours(x[:, None], y).numpy(), combine(a[:, None], b))
    np.testing.assert_array_equal(ours(y, x[:, None]).numpy(), combine(b, a[:, None]))
    np.testing.assert_array_equal(ours(z, x[:, None] + y).numpy(), combine(c, a[:, None] + b))
    np.testing.assert_array_equal((x[:, None] == y).numpy(), a[:, None] == b)
    turned = x[:, None].expand(40, 90, width).transpose(0, 1)
    np.testing.assert_array_equal(ours(turned, y[:, None]).numpy(), combine(a, b[:, None]))
    chosen = clew.where(x[:, None] == y, z, y)
    np.testing.assert_array_equal(chosen.numpy(), np.where(a[:, None] == b, c, b))
    if dtype != "?":
        out = clew.empty(40, 90, width + 3, dtype=x.dtype)[..., 1 : width + 1]
        clew.multiply(x[:, None], y, out=out)
        np.testing.assert_array_equal(out.numpy(), a[:, None] * b)
        y.mul_(z)
        np.testing.assert_array_equal(y.numpy(), b * c)
