"""Short ways for small cases: they do what the general ones do, and leave to those the rest."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import clew

# N: columns of the second factor; K: steps of the sum.


def close(a: clew.Tensor, b: clew.Tensor) -> bool:
    return np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [clew.float32, clew.float64])
@pytest.mark.parametrize("turned", [False, True])
def test_one_row_times_a_matrix(dtype: clew.dtype, turned: bool) -> None:
    rng = random.Random(0)
    for _ in range(60):
        k, n = rng.randint(0, 150), rng.choice([1, 2, 3, 7, 16, 17, 64, 65, 130, 2100])
        room = clew.randn(n + 3, k + 5, dtype=dtype) if turned else clew.randn(k + 3, n + 5)
        room = room.to(dtype)
        b = room[1 : n + 1, 2 : k + 2].t() if turned else room[1 : k + 1, 2 : n + 2]
        row = clew.randn(3, 2 * k + 1, dtype=dtype)
        for a in (row[1:2, 1 : k + 1], row[1:2, 1::2], row[:1, :1].expand(1, k)):
            want = clew.from_numpy(a.double().numpy() @ b.double().numpy()).to(dtype)
            assert close(a @ b, want)
            assert close(clew.nn.functional.linear(a, b.t()), want)


def test_one_row_reads_nothing_outside() -> None:
    for k, n in [(64, 64), (64, 192), (63, 65), (200, 5), (5, 200)]:
        a, b = clew.full((3, k + 2), clew.nan), clew.full((k + 2, n + 2), clew.nan)
        a[1, 1 : k + 1] = 1.0
        b[1 : k + 1, 1 : n + 1] = 1.0
        out = clew.full((3, n), -1.0)
        clew.mm(a[1:2, 1 : k + 1], b[1 : k + 1, 1 : n + 1], out=out[1:2])
        assert out.tolist() == [[-1.0] * n, [float(k)] * n, [-1.0] * n]
        assert (a[1:2, 1 : k + 1] @ b.t().contiguous().t()[1 : k + 1, 1 : n + 1]).tolist() == [
            [float(k)] * n
        ]


@pytest.mark.parametrize("shape", [(1, 12), (12,), (1, 1, 12, 3), (2, 12), (12, 2)])
def test_gradients_of_parts(shape: tuple[int, ...]) -> None:
    dim = shape.index(12)
    for cut in (lambda x: x.chunk(3, dim), lambda x: x.split([3, 0, 4, 5], dim)):
        for leave_out in (None, 0, 1):
            x = clew.randn(shape, dtype=clew.float64, requires_grad=True)

            def total(x: clew.Tensor, cut: Any = cut, without: int | None = leave_out) -> Any:
                parts = [p for i, p in enumerate(cut(x)) if i != without]
                return sum((p * (i + 1.5)).sum() * p.sum() for i, p in enumerate(parts))

            assert clew.autograd.gradcheck(total, (x,))
            assert clew.autograd.gradgradcheck(total, (x,))


def test_ints_by_position_are_read_as_ever() -> None:
    x = clew.arange(24).reshape(2, 3, 4)
    assert x.transpose(0, 2).shape == x.transpose(dim0=0, dim1=2).shape == (4, 3, 2)
    assert [p.shape for p in x.chunk(2, -1)] == [(2, 3, 2)] * 2
    assert x.select(1, 2).tolist() == x[:, 2].tolist()
    assert clew.unsqueeze(x, np.int64(1)).shape == (2, 1, 3, 4)
    with pytest.raises(TypeError):
        x.transpose(0, 1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        x.transpose(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        clew.unsqueeze(1, 1)  # type: ignore[arg-type]
    for large in (2**63, -(2**63) - 1, 2**200):
        with pytest.raises((OverflowError, RuntimeError, IndexError)):
            x.select(1, large)
    with pytest.raises(IndexError):
        x.unsqueeze(9)
    from clew.func import vmap

    assert vmap(lambda t: t.unsqueeze(0))(x).shape == (2, 1, 3, 4)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_what_was_saved_is_read_as_it_was(name: str) -> None:
    x = clew.randn(3, 5, requires_grad=True)
    y = getattr(x, name)()
    z = y * y
    with clew.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation|written"):
        z.sum().backward()


def test_products_of_saved_values() -> None:
    def both(dtype: clew.dtype, shape: tuple[int, ...]) -> list[clew.Tensor]:
        return [clew.randn(shape, dtype=dtype, requires_grad=True) for _ in range(2)]

    for dtype in (clew.float64, clew.complex128):
        for shape in ((3, 4), (0,), (), (1, 1)):
            a, b = both(dtype, shape)
            f = lambda a, b: (a * b).tanh() * a.sigmoid() * (b * b)
            assert clew.autograd.gradcheck(f, (a, b))
            assert clew.autograd.gradgradcheck(f, (a, b))
    for dtype in (clew.float32, clew.float16, clew.bfloat16):
        a, b = both(dtype, (7,))
        g = clew.randn(7, dtype=dtype)
        (a * b).backward(g)
        assert a.grad.tolist() == (g * b).tolist() and b.grad.tolist() == (g * a).tolist()
    # One gradient for two that use it: neither is written over.
    a, b = both(clew.float32, (6,))
    y = a * b
    g = clew.ones(6)
    (ga, gb) = clew.autograd.grad(y, (a, b), g)
    assert g.tolist() == [1.0] * 6 and ga.tolist() == b.tolist() and gb.tolist() == a.tolist()


def test_gradients_add_up_where_they_lie() -> None:
    x = clew.randn(4, 4, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: seen.append(g.clone()))
    seen: list[clew.Tensor] = []
    (y.sum() * 2 + (y * 3).sum() + y[0].sum() + y.t().sum()).backward()
    want = clew.full((4, 4), 6.0)
    want[0] += 1
    assert seen[0].tolist() == want.tolist()
    assert close(x.grad, want * y)


def test_embedding_of_few_rows() -> None:
    weight = clew.randn(5, 6, requires_grad=True)
    lookup = clew.nn.functional.embedding
    for ids in (clew.tensor([3]), clew.tensor(2), clew.tensor([[0, 4], [4, 1]]), clew.arange(0)):
        assert lookup(ids, weight).tolist() == weight.detach().numpy()[ids.numpy()].tolist()
        assert lookup(ids, weight.t()[:5].t()).shape == (*ids.shape, 5)
    for bad in ([5], [-1], [0, 7]):
        with pytest.raises(IndexError):
            lookup(clew.tensor(bad), weight)
    lookup(clew.tensor([1, 1, 4]), weight, padding_idx=4).sum().backward()
    assert weight.grad[:, 0].tolist() == [0.0, 2.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128, np.bool_])
@pytest.mark.parametrize(
    "key",
    [
        np.array([1, -2, 0]),
        np.array([[0, 1], [2, -1]]),
        np.array([], np.int64),
        (slice(None), np.array([3, 0])),
        (np.array([0, 2]), np.array([1, -1])),
        (slice(None), np.array([1, 1]), np.array([0, 4])),
        (np.array([0, 2]), slice(None), np.array([1, 0])),
        np.array([True, False, True]),
        np.arange(12).reshape(3, 4) % 3 == 0,
        (slice(None), np.array([True, False, False, True])),
    ],
)
def test_few_places_are_read_and_written(key: Any, dtype: Any) -> None:
    x = (np.arange(60).reshape(3, 4, 5) % 7 - 3).astype(dtype)
    keys = key if isinstance(key, tuple) else (key,)
    ours = tuple(clew.tensor(k) if isinstance(k, np.ndarray) else k for k in keys)
    ours = ours if isinstance(key, tuple) else ours[0]
    for turned in (False, True):
        t = clew.tensor(x)
        if turned:
            t = t.transpose(0, 2).contiguous().transpose(0, 2)
        read = t[ours].numpy()
        np.testing.assert_array_equal(read, x[key])
        assert read.shape == x[key].shape
        for value in (np.flip(x[key]).copy(), np.array(1, dtype)):
            written, want = t.clone(), x.copy()
            version = written._version
            written[ours] = clew.tensor(value)
            want[key] = value
            np.testing.assert_array_equal(written.numpy(), want)
            assert written._version == version + 1


def test_places_out_of_range_are_found_before_anything_is_written() -> None:
    x = clew.zeros(3, 4)
    good, bad = clew.tensor([0, 1]), clew.tensor([0, 3])
    for key in (bad, (slice(None), clew.tensor([0, 4])), (bad, good), (good, clew.tensor([0, -5]))):
        with pytest.raises(IndexError, match="out of bounds"):
            x[key]
        with pytest.raises(IndexError, match="out of bounds"):
            x[key] = 1.0
    with pytest.raises(IndexError, match="mask"):
        x[clew.ones(2, dtype=clew.bool)]
    assert x.sum() == 0


def test_writes_at_few_places_are_recorded_and_refused_as_others() -> None:
    places, mask = clew.tensor([0, 2]), clew.tensor([True, False, True])
    for key in (places, mask):
        leaf = clew.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="leaf"):
            leaf[key] = 0.0
        y, value = leaf * 2, clew.tensor(3.0, requires_grad=True)
        y[key] = value
        y.sum().backward()
        assert leaf.grad is not None and leaf.grad.tolist() == [0, 2, 0]
        assert value.grad is not None and value.grad == 2
        saved = clew.ones(3, requires_grad=True)
        z = saved.exp()
        with clew.no_grad():
            z[key] = 0.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_lists_of_few_tensors_are_joined() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    a, b = clew.tensor(x), clew.tensor(x + 100)
    for dim in range(-3, 3):
        want = np.concatenate([x, x + 100], dim)
        np.testing.assert_array_equal(clew.cat([a, b], dim).numpy(), want)
        np.testing.assert_array_equal(clew.cat((a, b), dim=dim).numpy(), want)
    for dim in range(-4, 4):
        np.testing.assert_array_equal(clew.stack([a, b], dim).numpy(), np.stack([x, x + 100], dim))
    np.testing.assert_array_equal(clew.hstack((a, b)).numpy(), np.hstack([x, x + 100]))
    np.testing.assert_array_equal(clew.vstack((a, b)).numpy(), np.vstack([x, x + 100]))
    assert clew.cat([a, b[:, :1]], 1).shape == (2, 4, 4)
    assert clew.cat([a, b.double()]).dtype == clew.float64
    for wrong in (
        lambda: clew.cat([a, b], 0, dim=0),
        lambda: clew.cat([a, b], dimension=0),
        lambda: clew.cat([a, None]),
        lambda: clew.cat([a, 2.0]),
        lambda: clew.cat([a, b], 1.0),
        lambda: clew.hstack([a, b], 1),
    ):
        with pytest.raises(TypeError):
            wrong()
    for wrong in (
        lambda: clew.cat([a, b], 3),
        lambda: clew.stack([a, b], 4),
        lambda: clew.cat([a, b[:, :1]]),
        lambda: clew.stack([a, b[:1]]),
        lambda: clew.cat([]),
    ):
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            wrong()
