"""uint16, uint32 and uint64: values of the upper half, which signed arithmetic would get wrong."""

from __future__ import annotations

import io

import numpy as np
import pytest

import clew

NAMES = ("uint16", "uint32", "uint64")
WIDE = [getattr(clew, name) for name in NAMES]


def values(name: str, n: int = 24, seed: int = 0) -> np.ndarray:
    """Small, large and middle values, half of them with the highest bit set."""
    top = np.iinfo(name).max
    ends = np.array([0, 1, 2, top, top - 1, top // 2, top // 2 + 1], name)
    rest = np.random.default_rng(seed).integers(0, top, n - len(ends), dtype=name, endpoint=True)
    return np.random.default_rng(seed + 1).permutation(np.concatenate([ends, rest]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "op",
    ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or",
     "bitwise_xor", "gcd", "eq", "ne", "lt", "le", "gt", "ge", "logical_xor"],
)  # fmt: skip
def test_binary(name: str, op: str):
    a, b = values(name), values(name, seed=7)
    numpy_name = {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
        "ge": "greater_equal",
    }.get(op, op)  # fmt: skip
    want = getattr(np, numpy_name)(a, b)
    for x, y in ((a, b), (a.reshape(4, 6).T, b.reshape(6, 4))):
        got = getattr(clew, op)(clew.from_numpy(x), clew.from_numpy(y))
        np.testing.assert_array_equal(got.numpy(), getattr(np, numpy_name)(x, y), strict=True)
    assert got.dtype == clew.from_numpy(want).dtype


@pytest.mark.parametrize("name", NAMES)
def test_division(name: str):
    a, b = values(name), np.maximum(values(name, seed=7), np.array(1, name))
    x, y = clew.from_numpy(a), clew.from_numpy(b)
    np.testing.assert_array_equal((x // y).numpy(), a // b, strict=True)
    np.testing.assert_array_equal((x % y).numpy(), a % b, strict=True)
    np.testing.assert_array_equal(clew.fmod(x, y).numpy(), a % b, strict=True)
    np.testing.assert_array_equal(
        clew.div(x, y, rounding_mode="trunc").numpy(), a // b, strict=True
    )
    np.testing.assert_allclose((x / y).numpy(), (a / b).astype("float32"), rtol=1e-6)
    with pytest.raises(RuntimeError, match="ZeroDivision"):
        x // 0


@pytest.mark.parametrize("name", NAMES)
def test_powers_shifts_and_unary(name: str):
    a = values(name)
    x = clew.from_numpy(a)
    for n in (0, 1, 2, 5):
        exponent = np.array(n, name)
        np.testing.assert_array_equal((x**n).numpy(), a**exponent, strict=True)
        np.testing.assert_array_equal((x << n).numpy(), a << exponent, strict=True)
        np.testing.assert_array_equal((x >> n).numpy(), a >> exponent, strict=True)
    assert clew.equal(x >> 64, clew.zeros_like(x))
    for got, want in [
        (-x, np.negative(a)), (~x, ~a), (x.abs(), a), (x.sign(), np.sign(a)), (x.square(), a * a),
        (x.signbit(), np.zeros(len(a), bool)), (x.relu(), a), (+x, a), (x.isfinite(), a == a),
        (x.logical_not(), a == 0), (x.floor(), a), (x.round(), a),
    ]:  # fmt: skip
        np.testing.assert_array_equal(got.numpy(), want, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_reductions_and_scans(name: str):
    a = values(name).reshape(4, 6)
    x = clew.from_numpy(a)
    dtype = getattr(clew, name)
    for dim in (None, 0, 1):
        for got, want in [
            (x.amax(dim) if dim is not None else x.max(), a.max(dim)),
            (x.amin(dim) if dim is not None else x.min(), a.min(dim)),
            (x.argmax(dim), a.argmax(dim)), (x.argmin(dim), a.argmin(dim)),
            (clew.any(x) if dim is None else x.any(dim), a.any(dim)),
            (clew.all(x) if dim is None else x.all(dim), a.all(dim)),
            (clew.count_nonzero(x, dim), np.count_nonzero(a, axis=dim)),
            (x.sum(dim), a.astype("int64").sum(dim)),
            (x.sum(dim, dtype=dtype), a.sum(dim, dtype=name)),
            (x.sum(dim, dtype=clew.uint64), a.sum(dim, dtype="uint64")),
        ]:  # fmt: skip
            np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(x.prod(1, dtype=dtype).numpy(), a.prod(1, dtype=name))
    assert x.sum().dtype is clew.int64 and x.sum(dtype=dtype).dtype is dtype
    np.testing.assert_array_equal(x.cumsum(1, dtype=dtype).numpy(), a.cumsum(1, dtype=name))
    np.testing.assert_array_equal(x.cumsum(0, dtype=clew.uint64).numpy(), a.cumsum(0, dtype="u8"))
    np.testing.assert_array_equal(x.cummax(1).values.numpy(), np.maximum.accumulate(a, 1))
    assert x.sum(dtype=clew.bool).item() is True


@pytest.mark.parametrize("name", NAMES)
def test_order(name: str):
    a = values(name, 300)
    x = clew.from_numpy(a)
    got = x.sort(stable=True)
    np.testing.assert_array_equal(got.values.numpy(), np.sort(a))
    np.testing.assert_array_equal(got.indices.numpy(), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(x.sort(descending=True).values.numpy(), np.sort(a)[::-1])
    np.testing.assert_array_equal(x.topk(5).values.numpy(), np.sort(a)[::-1][:5])
    np.testing.assert_array_equal(x.median().numpy(), np.sort(a)[149])
    np.testing.assert_array_equal(x.unique().numpy(), np.unique(a))
    np.testing.assert_array_equal(
        clew.searchsorted(got.values, x[:9]).numpy(), np.searchsorted(np.sort(a), a[:9])
    )
    np.testing.assert_array_equal(x.nonzero().numpy()[:, 0], np.nonzero(a)[0])


@pytest.mark.parametrize("name", NAMES)
def test_bounds_and_choice(name: str):
    a = values(name)
    x = clew.from_numpy(a)
    top = np.iinfo(name).max
    np.testing.assert_array_equal(x.clamp(3, top - 2).numpy(), a.clip(3, top - 2))
    np.testing.assert_array_equal(x.clamp(-5).numpy(), a)
    np.testing.assert_array_equal(x.clamp(max=top).numpy(), a)
    np.testing.assert_array_equal(clew.where(x > 5, x, 7).numpy(), np.where(a > 5, a, 7))
    np.testing.assert_array_equal(x[x > top // 2].numpy(), a[a > top // 2])
    rows = clew.from_numpy(a.reshape(4, 6))
    at = clew.tensor([0, 2, 0])
    np.testing.assert_array_equal(rows.index_select(0, at).numpy(), a.reshape(4, 6)[[0, 2, 0]])
    added = clew.zeros(6, dtype=getattr(clew, name)).index_add(0, at, x[:3])
    want = np.zeros(6, name)
    np.add.at(want, [0, 2, 0], a[:3])
    np.testing.assert_array_equal(added.numpy(), want)
    most = clew.zeros(6, dtype=getattr(clew, name)).scatter_reduce(0, at, x[:3], "amax")
    np.maximum.at(want := np.zeros(6, name), [0, 2, 0], a[:3])
    mean = x[:2].scatter_reduce(0, clew.tensor([0, 1, 1]), x[2:5] // 2, "mean", include_self=False)
    total = (a[3] // 2 + a[4] // 2) // np.array(2, name)
    np.testing.assert_array_equal(mean.numpy(), np.array([a[2] // 2, total]))
    np.testing.assert_array_equal(most.numpy(), want)


def test_clamp_of_int64_keeps_the_last_digits():
    x = clew.tensor([2**63 - 1, 2**62 + 5])
    assert x.clamp(max=2**63 - 4).tolist() == [2**63 - 4, 2**62 + 5]
    assert x.clamp(min=2**62 + 7).tolist() == [2**63 - 1, 2**62 + 7]


@pytest.mark.parametrize("name", NAMES)
def test_matrix_products(name: str):
    a, b = values(name, 30).reshape(5, 6), values(name, 42, seed=3).reshape(6, 7)
    x, y = clew.from_numpy(a), clew.from_numpy(b)
    np.testing.assert_array_equal((x @ y).numpy(), a @ b, strict=True)
    np.testing.assert_array_equal(clew.mv(x, y[:, 0]).numpy(), a @ b[:, 0], strict=True)
    np.testing.assert_array_equal(clew.tensordot(x, y, 1).numpy(), a @ b)
    assert (x[:, :0] @ y[:0]).eq(0).all()


@pytest.mark.parametrize("name", NAMES)
def test_conversion(name: str):
    a = values(name)
    x = clew.from_numpy(a)
    assert x.dtype is getattr(clew, name) and x.numpy().dtype == a.dtype
    assert x.tolist() == a.tolist() and x[0].item() == a[0].item()
    assert int(x[1]) == int(a[1]) and list(range(5))[x.new_tensor(3)] == 3
    assert clew.tensor(a.tolist(), dtype=x.dtype).equal(x)
    for other in ("bool", "int8", "int32", "int64", "float32", "float64", *NAMES):
        np.testing.assert_array_equal(
            x.to(getattr(clew, other)).numpy(), a.astype(other), strict=True
        )
    floats = np.array([0.0, 1.7, 2.0 ** (a.itemsize * 8 - 1), 5e4])
    np.testing.assert_array_equal(clew.tensor(floats).to(x.dtype).numpy(), floats.astype(name))
    np.testing.assert_array_equal(np.from_dlpack(x), a)
    assert clew.from_dlpack(a).equal(x)
    assert x.view(getattr(clew, name[1:])).view(x.dtype).equal(x)
    assert f"dtype=clew.{name}" in repr(x) and str(a.max()) in repr(x)
    assert x.type() == "clew." + name.replace("ui", "UI") + "Tensor"
    assert not x.is_signed() and not x.dtype.is_signed and not x.is_floating_point()
    limits = clew.iinfo(x.dtype)
    assert (limits.min, limits.max, limits.bits) == (0, np.iinfo(name).max, a.itemsize * 8)


@pytest.mark.parametrize("name", NAMES)
def test_files(name: str, tmp_path):
    import pickle

    x = clew.from_numpy(values(name))
    assert pickle.loads(pickle.dumps(x)).equal(x)
    for suffix in ("pt", "safetensors"):
        path = tmp_path / f"x.{suffix}"
        clew.save({"x": x, "y": x[2:5], "f": clew.ones(2)}, path)
        got = clew.load(path)
        assert got["x"].dtype is x.dtype and got["x"].equal(x) and got["y"].equal(x[2:5])
    file = io.BytesIO()
    clew.save([x, x.view(clew.uint8)], file)
    file.seek(0)
    whole, raw = clew.load(file)
    assert whole.equal(x) and raw.view(x.dtype).equal(x)


def test_creation():
    for dtype in WIDE:
        top = clew.iinfo(dtype).max
        assert clew.full((2,), top, dtype=dtype).tolist() == [top, top]
        assert clew.arange(3, 9, 2, dtype=dtype).tolist() == [3, 5, 7]
        assert clew.eye(2, dtype=dtype).tolist() == [[1, 0], [0, 1]]
        assert clew.ones(2, dtype=dtype).fill_(top).tolist() == [top, top]
        x = clew.zeros(3, dtype=dtype)
        x[1] = top
        assert x.tolist() == [0, top, 0]
        assert clew.randint(5, 9, (50,), dtype=dtype).to(clew.int64).unique().tolist() == [
            5, 6, 7, 8,
        ]  # fmt: skip
        assert clew.empty(200, dtype=dtype).random_().max().item() > top // 2
        with pytest.raises((RuntimeError, ValueError), match="verflow"):
            clew.tensor([top + 1], dtype=dtype)


def test_promotion():
    p = clew.promote_types
    u8, u16, u32, u64 = clew.uint8, clew.uint16, clew.uint32, clew.uint64
    assert p(u8, u16) is u16 and p(u32, u16) is u32 and p(u64, u8) is u64
    assert p(clew.int8, u16) is clew.int32 and p(clew.int16, u16) is clew.int32
    assert p(clew.int32, u16) is clew.int32 and p(u32, clew.int8) is clew.int64
    assert p(u32, clew.int64) is clew.int64 and p(u8, clew.int8) is clew.int16
    assert p(u64, clew.float16) is clew.float16 and p(u32, clew.bool) is u32
    assert p(clew.complex64, u64) is clew.complex64
    for signed in (clew.int8, clew.int16, clew.int32, clew.int64):
        with pytest.raises(RuntimeError, match="no common type"):
            p(u64, signed)
    x = clew.tensor([1, 2**64 - 1], dtype=u64)
    with pytest.raises(RuntimeError, match="no common type"):
        x + clew.tensor([1, 2])
    assert (x + 1).tolist() == [2, 0] and (x + clew.tensor(1)).tolist() == [2, 0]
    assert (x == 2**64 - 1).tolist() == [False, True] and (x >= 2**63).tolist() == [False, True]
    assert (x + 2**63).tolist() == [2**63 + 1, 2**63 - 1]
    assert (x * 0.5).dtype is clew.float32


def test_numbers_beyond_int64_never_wrap_around():
    for call in (
        lambda: clew.tensor([1]) + 2**63,
        lambda: clew.tensor([1], dtype=clew.int32) < 2**63,
        lambda: clew.zeros(2, dtype=clew.int64).fill_(2**63),
        lambda: clew.zeros(2, dtype=clew.uint32).fill_(2**63),
        lambda: clew.full((2,), 2**63, dtype=clew.int64),
        lambda: clew.tensor([1], dtype=clew.uint64) + 2**64,
        lambda: clew.arange(2**63),
        lambda: clew.zeros(2**63),
        lambda: clew.zeros(2)[2**63],
    ):
        with pytest.raises((OverflowError, RuntimeError, IndexError)):
            call()
    assert (clew.tensor([1.0]) + 2**63).item() == 2.0**63
    assert clew.full((1,), 2**63, dtype=clew.float64).item() == 2.0**63
    assert bool((clew.tensor([1.0]) < 2**63).all())


def test_what_is_missing_raises():
    x = clew.ones(1, 1, 4, dtype=clew.uint16)
    with pytest.raises((NotImplementedError, RuntimeError), match="uint16"):
        clew.nn.functional.max_pool1d(x, 2)
    with pytest.raises((NotImplementedError, RuntimeError), match="uint16"):
        clew.nn.functional.avg_pool1d(x, 2)
