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


def test_arguments_by_position_and_by_name_are_one() -> None:
    x = clew.arange(24.0).reshape(2, 3, 4)
    n = x.numpy()
    for got, want in (
        (x.sum(1), n.sum(1)),
        (x.sum((0, -1)), n.sum((0, 2))),
        (x.sum([2], True), n.sum(2, keepdims=True)),
        (x.sum(dim=1, keepdim=True), n.sum(1, keepdims=True)),
        (x.sum(keepdim=True, dim=(1,)), n.sum(1, keepdims=True)),
        (x.sum(axis=1, keepdims=True), n.sum(1, keepdims=True)),  # type: ignore[call-arg]
        (clew.sum(input=x, dim=None), n.sum()),
        (x.sum(()), n.sum()),
        (x.sum(np.int64(1)), n.sum(1)),  # type: ignore[arg-type]
        (x.sum(clew.tensor(1)), n.sum(1)),  # type: ignore[arg-type]
        (x.sum(1, dtype=clew.float64), n.sum(1, dtype=np.float64)),
        (x.sum(1, dtype=float), n.sum(1, dtype=np.float64)),  # type: ignore[arg-type]
        (x.view(4, 6), n.reshape(4, 6)),
        (x.view((4, -1)), n.reshape(4, 6)),
        (x.view(clew.zeros(4, 6).shape), n.reshape(4, 6)),
        (x.view(clew.tensor(24)), n.reshape(24)),  # type: ignore[arg-type]
        (x.view(clew.tensor(4), 6), n.reshape(4, 6)),  # type: ignore[arg-type]
        (x.view(clew.int32), n.view(np.int32)),
        (x.permute(2, 0, 1), n.transpose(2, 0, 1)),
        (x.permute(dims=(2, 0, 1)), n.transpose(2, 0, 1)),
        (x.clamp(2, 7.5), n.clip(2, 7.5)),
        (x.clamp(max=5), n.clip(max=5)),
        (x.clamp(True, None), n.clip(1)),
        (x.clamp(clew.tensor(2.0), None), n.clip(2)),
        (clew.add(x, 2, alpha=3), n + 6),
        (clew.add(2, x), n + 2),  # type: ignore[arg-type]
        (clew.add(input=x, other=x), n + n),
        (x.max(1)[1], n.argmax(1)),
        (x.max(dim=1, keepdim=True).values, n.max(1, keepdims=True)),
        (x.max(x.flip(0)), np.maximum(n, n[::-1])),
        (x.max(other=x.flip(0)), np.maximum(n, n[::-1])),
        (np.max(x, axis=1), n.max(1)),  # type: ignore[call-overload]
        (x.softmax(-1, clew.float64).sum(-1), np.ones((2, 3))),
        (clew.where(x > 3, 1.0, x), np.where(n > 3, 1, n)),
        (clew.nn.functional.relu(x - 5, True), (n - 5).clip(0)),
    ):
        np.testing.assert_allclose(np.asarray(got), want)
        assert str(np.asarray(got).dtype) == str(np.asarray(want).dtype).replace(
            "float64", str(np.asarray(got).dtype)
        )
    y = x.clone()
    assert y.clamp_(1, 2) is y and clew.add(x, x, out=y) is y
    np.testing.assert_array_equal(y.numpy(), n + n)
    with pytest.warns(UserWarning, match="was resized"):
        clew.add(x, x, out=y[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(1, dim=1),
        lambda x: x.sum(1, True, True),
        lambda x: x.sum("1"),
        lambda x: x.sum(1, keepdim=1),
        lambda x: x.sum(1.0),
        lambda x: x.sum([1.0]),
        lambda x: x.sum(True),
        lambda x: x.sum(dims=1),
        lambda x: x.sum(dtype=1),
        lambda x: x.clamp("1"),
        lambda x: x.view(2, 3.0, 4),
        lambda x: x.view(None),
        lambda x: x.max(1, 2, 3),
        lambda x: x.max(dim="1"),
        lambda x: x.max(None),
        lambda x: clew.max(1, 2),
        lambda x: clew.sum(),
        lambda x: clew.stack(x),
        lambda x: clew.stack([x, 1]),
        lambda x: clew.maximum(1, 2),
        lambda x: x.add(alpha=2),
        lambda x: x.add(1, 2, 3),
        lambda x: x.unsqueeze(dim=None),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Any) -> None:
    with pytest.raises(TypeError):
        call(clew.arange(24.0).reshape(2, 3, 4))


def test_many_and_changing_lists_of_tensors() -> None:
    for count in (1, 2, 63, 64, 65, 200):
        parts = [clew.full((2, 1), float(k)) for k in range(count)]
        got = clew.cat(parts, 1)
        assert got.tolist() == [list(map(float, range(count)))] * 2
        assert clew.stack(tuple(parts)).shape == (count, 2, 1)
        w = [p.requires_grad_() for p in parts]
        clew.cat(w, dim=1).sum().backward()
        assert all(p.grad is not None and p.grad.tolist() == [[1.0], [1.0]] for p in w)

    class Own(clew.Tensor):
        pass

    own = clew.ones(2).as_subclass(Own)
    assert type(clew.cat([own, own])) is Own
    assert type(own.sum(0, keepdim=True)) is Own


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 9, 16, 17, 24, 32, 64, 65, 200])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 40])
def test_softmax_of_few_rows(width: int, rows: int) -> None:
    x = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32) * 20
    x[0, 0] = 80.0
    x[-1, -1] = -np.inf if width > 1 else 0.0
    below = (x - x.max(1, keepdims=True)).astype(np.float64)
    power = np.exp(below)
    want = power / power.sum(1, keepdims=True)
    log = below - np.log(power.sum(1, keepdims=True))
    np.testing.assert_allclose(clew.tensor(x).softmax(1).numpy(), want, rtol=2e-6, atol=1e-37)
    np.testing.assert_allclose(clew.tensor(x).log_softmax(1).numpy(), log, rtol=2e-6, atol=1e-6)
    for odd in (np.nan, np.inf):
        for at in {0, width // 2, width - 1}:
            y = x.copy()
            y[0, at] = odd
            for got in (clew.tensor(y).softmax(-1), clew.tensor(y).log_softmax(-1)):
                assert np.isnan(got.numpy()[0]).all() or odd == np.inf
                assert np.isnan(got.numpy()[0, at])
                assert not np.isnan(got.numpy()[1:]).any()
    nothing = clew.full((2, width), -np.inf)
    assert nothing.softmax(1).isnan().all()


@pytest.mark.parametrize("shape", [(8, 8), (3, 5), (1, 7), (4, 1), (2, 3, 9), (16, 32), (20, 30)])
def test_few_lines_are_reduced(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    ties = np.round(x)
    odd = x.copy()
    odd[(0,) * len(shape)] = odd[tuple(n - 1 for n in shape)] = np.nan
    endless = x.copy()
    endless[..., 0] = np.inf
    for a in (x, ties, odd, endless, x[..., ::-1]):
        t = clew.tensor(a.copy()) if a.base is None else clew.tensor(x).flip(-1)
        for dim in range(-len(shape), len(shape)):
            for keep in (False, True):
                np.testing.assert_allclose(
                    t.sum(dim, keep).numpy(), a.sum(dim, keepdims=keep), rtol=1e-5, atol=1e-5
                )
                np.testing.assert_allclose(
                    t.mean(dim=dim, keepdim=keep).numpy(),
                    a.mean(dim, keepdims=keep),
                    rtol=1e-5,
                    atol=1e-5,
                )
                for name, pick in (("max", np.argmax), ("min", np.argmin)):
                    values, indices = getattr(t, name)(dim, keep)
                    want = np.expand_dims(pick(a, dim), dim)
                    found = np.take_along_axis(a, want, dim)
                    if not keep:
                        want, found = want.squeeze(dim), found.squeeze(dim)
                    np.testing.assert_array_equal(indices.numpy(), want)
                    np.testing.assert_array_equal(values.numpy(), found)
    out = clew.empty(8), clew.empty(8, dtype=clew.int64)
    square = clew.randn(8, 8)
    clew.max(square, 0, out=out)
    np.testing.assert_array_equal(out[1].numpy(), square.numpy().argmax(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int16, np.complex128, bool])
def test_gather_of_few(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (3, 4, 5)).astype(dtype)
    for dim in range(-3, 3):
        for n in (1, 2, 7):
            sizes = list(x.shape)
            sizes[dim] = n
            index = rng.integers(0, x.shape[dim], sizes)
            got = clew.tensor(x).gather(dim, clew.tensor(index))
            np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, index, dim))
            for wrong in (-1, x.shape[dim], 2**62):
                bad = index.copy()
                bad[-1, -1, -1] = wrong
                with pytest.raises(RuntimeError, match="out of bounds"):
                    clew.tensor(x).gather(dim, clew.tensor(bad))
    w = clew.randn(2, 3, dtype=clew.float64, requires_grad=True)
    places = clew.tensor([[0, 0], [2, 1]])
    assert clew.autograd.gradcheck(lambda t: t.gather(1, places), (w,))
    from clew.func import vmap

    assert vmap(lambda t, i: t.gather(0, i))(w, places).tolist() == w.gather(1, places).tolist()


def test_a_row_beside_a_matrix() -> None:
    for dtype in (clew.float32, clew.float64, clew.int16, clew.int8, clew.complex128, clew.bool):
        for m, n in [(1, 1), (2, 1), (1, 5), (3, 7), (8, 8), (5, 30), (40, 50)]:
            a = clew.randint(0, 2, (m, n)).to(dtype)
            b = clew.randint(0, 2, (n,)).to(dtype)
            rows = np.broadcast_to(b.numpy(), (m, n))
            np.testing.assert_array_equal((a * b).numpy(), a.numpy() * rows)
            np.testing.assert_array_equal((b * a).numpy(), a.numpy() * rows)
            strided = clew.stack([b, b], 1).flatten()[::2]
            np.testing.assert_array_equal((a * strided).numpy(), a.numpy() * rows)
            other = a.clone()
            other *= b
            np.testing.assert_array_equal(other.numpy(), a.numpy() * rows)


def test_clones_of_few() -> None:
    for dtype in (clew.float32, clew.bfloat16, clew.bool, clew.complex128):
        for x in (clew.ones(3, 4), clew.ones(0, 4), clew.tensor(1.0), clew.ones(3, 4).t()):
            given = x.to(dtype)
            copy = given.clone()
            assert copy.dtype == dtype and copy.stride() == given.stride()
            assert clew.equal(copy, given)
            assert not x.numel() or copy.data_ptr() != given.data_ptr()
    assert clew.ones(2, device="meta").clone().device.type == "meta"
    w = clew.ones(2, requires_grad=True)
    (w.clone() * 3).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]


def test_small_writes_in_place() -> None:
    x = clew.arange(6.0).reshape(2, 3)
    before = x._version
    assert x.add_(1.5) is x and x.mul_(x.clone()) is x and x._version == before + 2
    np.testing.assert_allclose(x.numpy(), (np.arange(6).reshape(2, 3) + 1.5) ** 2)
    x -= x
    assert x.tolist() == [[0.0] * 3] * 2
    part = x[0]
    part.add_(2.0)
    assert x.tolist() == [[2.0] * 3, [0.0] * 3]
    whole = clew.arange(3)
    assert whole.add_(1).tolist() == [1, 2, 3]
    for wrong in (
        lambda: whole.add_(0.5),
        lambda: clew.ones(3).add_(clew.ones(2, 3)),
        lambda: clew.ones(1).expand(3).add_(1.0),
        lambda: clew.ones(3, requires_grad=True).add_(1.0),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    w = clew.ones(3, requires_grad=True)
    with clew.no_grad():
        w.add_(1.0)
    y = w * 1
    y.mul_(3.0)
    y.sum().backward()
    assert w.tolist() == [2.0] * 3 and w.grad is not None and w.grad.tolist() == [3.0] * 3
    saved = w.exp()
    with clew.no_grad():
        saved.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    with clew.inference_mode():
        inferred = clew.ones(3).add_(1.0)
    with pytest.raises(RuntimeError, match="inference tensor"):
        inferred.add_(1.0)
    from clew.func import vmap

    assert vmap(lambda t: (t * 1).add_(t))(clew.ones(2, 3)).tolist() == [[2.0] * 3] * 2
