"""The Array API namespace: values, shapes and dtypes of its functions beside NumPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import clew
from clew import array_api as xp
from samples import COMPLEX, INTS
from samples import FLOATS_32_64 as FLOATS

SHAPES = ((), (0,), (4,), (2, 3), (2, 0, 3), (2, 1, 3))
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, 1e9]


def make(dtype: str, shape: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *dtype.encode(), *shape])
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype in INTS:
        return np.asarray(rng.integers(0 if dtype[0] == "u" else -5, 6, shape)).astype(dtype)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype in COMPLEX else x).astype(dtype)


def same(got: Any, want: Any, rtol: float = 3e-6) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, rtol)
        return
    assert isinstance(got, clew.Tensor)
    want = np.asarray(want)
    assert got.dtype == getattr(clew, want.dtype.name), f"{got.dtype}, not {want.dtype}"
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol)


def t(a: np.ndarray) -> clew.Tensor:
    return clew.tensor(a)


# ---- elementwise ----

SAME_NAMES = "abs ceil conj cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p log2"
SAME_NAMES += " logical_not negative positive reciprocal sign signbit sin sinh sqrt square tan tanh"
OTHER_NAMES = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "round": np.rint, "trunc": np.trunc,
}  # fmt: skip
UNARY = {**{n: getattr(np, n) for n in SAME_NAMES.split()}, **OTHER_NAMES}


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_floats(name: str):
    for dtype in FLOATS:
        a = np.array(SPECIAL, dtype)
        with np.errstate(all="ignore"):
            want = UNARY[name](a)
        got = getattr(xp, name)(t(a))
        same(got, want)
        if got.is_floating_point():
            zero = (want == 0).nonzero()
            np.testing.assert_array_equal(np.signbit(got.numpy()[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("ceil", "floor", "trunc",
                                                                "signbit")])  # fmt: skip
def test_unary_of_complex_numbers(name: str):
    a = make("complex128", (20,), 1)
    want = UNARY[name](a) if name != "sign" else a / np.abs(a)
    same(getattr(xp, name)(t(a)), want, 1e-12)


@pytest.mark.parametrize(
    "name", ["abs", "negative", "positive", "sign", "square", "ceil", "floor", "round", "trunc",
             "bitwise_invert", "isnan", "isfinite", "logical_not"],
)  # fmt: skip
def test_unary_of_integers(name: str):
    for dtype in INTS:
        a = make(dtype, (9,))
        f = {"bitwise_invert": np.invert, "round": np.positive}.get(name) or getattr(np, name)
        want = f(a)
        if name in ("ceil", "floor", "trunc"):
            want = want.astype(dtype)
        same(getattr(xp, name)(t(a)), want)


BINARY_FLOAT = {
    "add": np.add, "atan2": np.arctan2, "copysign": np.copysign, "divide": np.divide,
    "floor_divide": np.floor_divide, "greater": np.greater, "hypot": np.hypot,
    "less_equal": np.less_equal, "logaddexp": np.logaddexp, "maximum": np.maximum,
    "minimum": np.minimum, "multiply": np.multiply, "nextafter": np.nextafter, "pow": np.power,
    "not_equal": np.not_equal, "remainder": np.remainder, "subtract": np.subtract,
    "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY_FLOAT)
def test_binary_of_special_floats(name: str):
    a, b = (np.array(x) for x in zip(*itertools.product(SPECIAL, SPECIAL)))
    with np.errstate(all="ignore"):
        want = BINARY_FLOAT[name](a, b)
    got = getattr(xp, name)(t(a), t(b))
    same(got, want, 1e-12)
    if got.is_floating_point() and name != "floor_divide":
        zero = (want == 0).nonzero()
        np.testing.assert_array_equal(np.signbit(got.numpy()[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize(
    "name", ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "floor_divide", "less",
             "greater_equal", "maximum", "minimum", "multiply", "remainder", "subtract"],
)  # fmt: skip
def test_binary_of_integers_broadcasts(name: str):
    for dtype in INTS:
        a, b = make(dtype, (3, 1)), np.maximum(make(dtype, (4,), 1), np.array(1, dtype))
        same(getattr(xp, name)(t(a), t(b)), getattr(np, name)(a, b))


def test_clip():
    for dtype in (*INTS, *FLOATS):
        a = make(dtype, (3, 4))
        low, high = np.array(1, dtype), np.array([2, 3, 4, 5], dtype)
        same(xp.clip(t(a), 1, 3), np.clip(a, low, np.array(3, dtype)))
        same(xp.clip(t(a), t(low), t(high)), np.clip(a, low, high))
        same(xp.clip(t(a), max=t(high)), np.minimum(a, high))
        same(xp.clip(t(a)), a)
    assert xp.clip(clew.tensor([1, 2**62 + 1]), 0, 1e30).tolist() == [1, 2**62 + 1]
    assert xp.clip(clew.tensor([1.0, float("nan")]), 2, 3).tolist()[0] == 2
    assert xp.real(clew.tensor([1 + 2j])).tolist() == [1] and xp.imag(t(np.ones(1))).tolist() == [0]


# ---- creation ----


def test_arange():
    for args in ((5,), (2, 9), (9, 2, -2), (5, 2), (0,), (0.0, 1.0, 0.25), (1.0, 0.0, -0.3)):
        want = np.arange(*args)
        same(xp.arange(*args), want if want.dtype.kind == "i" else want.astype("float32"))
        for dtype in ("float64", "int16"):
            if dtype == "float64" or want.dtype.kind == "i":
                same(xp.arange(*args, dtype=getattr(clew, dtype)), want.astype(dtype))
    for r in (
        range(2**63, 2**63 + 3),
        range(2**64 - 1, 2**64 - 9, -3),
        range(2**63 - 2, 0, -(2**62)),
    ):
        d = clew.uint64
        assert xp.arange(r.start, r.stop, r.step, dtype=d).tolist() == list(r)
    r = range(-(2**63), 2**63 - 1, 2**61)
    assert xp.arange(r.start, r.stop, r.step).tolist() == list(r)
    with pytest.raises(ValueError, match="zero"):
        xp.arange(1, 2, 0)


def test_asarray_and_copies():
    a = np.arange(3.0)
    x = clew.arange(3.0)
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    xp.asarray(a, copy=False)[0] = 7
    xp.asarray(a, copy=True)[1] = 7
    assert a.tolist() == [7, 1, 2]
    assert xp.asarray(memoryview(b"ab")).tolist() == [97, 98]
    assert xp.asarray([[1, 2.5], [True, 0]]).tolist() == [[1, 2.5], [1, 0]]
    assert xp.asarray(2**64 - 1, dtype=clew.uint64).item() == 2**64 - 1
    assert xp.asarray(1 + 1j).dtype is clew.complex64 and xp.asarray([]).dtype is clew.float32
    for bad in (1.0, [1, 2]):
        with pytest.raises(ValueError, match="copy"):
            xp.asarray(bad, copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(x, dtype=clew.float64, copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(a, dtype=clew.float32, copy=False)
    assert xp.from_dlpack(a).tolist() == a.tolist()
    fixed = np.arange(2.0)
    fixed.flags.writeable = False
    for odd in (fixed, np.arange(2.0)[::-1]):
        assert xp.asarray(odd).tolist() == odd.tolist()
        with pytest.raises(ValueError, match="copy"):
            xp.asarray(odd, copy=False)


def test_other_creation():
    for n in (0, 1, 2, 5):
        same(xp.linspace(1, 3, n, dtype=clew.float64), np.linspace(1, 3, n))
        same(
            xp.linspace(1, 3, n, dtype=clew.float64, endpoint=False),
            np.linspace(1, 3, n, endpoint=False),
        )
    same(xp.linspace(1j, 2, 3), np.linspace(1j, 2, 3).astype("complex64"))
    for args in ((3,), (2, 4), (4, 2), (0, 2)):
        for k in (-3, -1, 0, 1, 9):
            same(xp.eye(*args, k=k, dtype=clew.int8), np.eye(*args, k=k, dtype="int8"))
            a = make("float64", (2, 3, 4))
            same(xp.tril(t(a), k=k), np.tril(a, k))
            same(xp.triu(t(a), k=k), np.triu(a, k))
    same(xp.full(3, 5), np.full(3, 5))
    same(xp.full((2, 1), True), np.full((2, 1), True))
    same(xp.full((), 1j), np.full((), 1j, "complex64"))
    assert xp.zeros(2).shape == (2,) and xp.ones((2, 0), dtype=clew.uint32).dtype is clew.uint32
    assert xp.empty_like(clew.ones(2, 3), dtype=clew.bool).dtype is clew.bool
    vectors = [np.arange(2), np.arange(3), np.arange(4)]
    for indexing in ("xy", "ij"):
        same(
            xp.meshgrid(*map(t, vectors), indexing=indexing),
            np.meshgrid(*vectors, indexing=indexing),
        )


# ---- reductions ----


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any"])
def test_reductions(name: str):
    dtypes = FLOATS if name in ("mean", "std", "var") else (*INTS, *FLOATS)
    for dtype, shape in itertools.product(dtypes, SHAPES):
        a = make(dtype, shape)
        n = len(shape)
        axes = [None, (), *range(-n, n), *itertools.combinations(range(n), 2)]
        for axis, keepdims in itertools.product(axes, (False, True)):
            over = range(n) if axis is None else axis if isinstance(axis, tuple) else (axis,)
            if name in ("max", "min", "mean", "std", "var") and 0 in [shape[i] for i in over]:
                continue
            if name in ("max", "min") and 0 in shape:
                continue
            want = getattr(np, name)(a, axis=axis, keepdims=keepdims)
            if axis == () and name in ("sum", "prod"):
                want = want.astype(np.sum(a).dtype)
            same(getattr(xp, name)(t(a), axis=axis, keepdims=keepdims), want, 1e-5)
    with pytest.raises((ValueError, IndexError)):
        getattr(xp, name)(clew.ones(2), axis=1)
    with pytest.raises((ValueError, RuntimeError)):
        getattr(xp, name)(clew.ones(2, 2), axis=(0, 0))


def test_reductions_with_more_arguments():
    a = make("float64", (3, 4))
    for correction in (0, 1, 0.5):
        want = ((a - a.mean(0)) ** 2).sum(0) / (3 - correction)
        same(xp.var(t(a), axis=0, correction=correction), want, 1e-12)
        same(xp.std(t(a), axis=0, correction=correction), np.sqrt(want), 1e-12)
    same(xp.sum(t(a), dtype=clew.float32), a.sum(dtype="float32"))
    same(xp.prod(t(make("int8", (3,))), dtype=clew.int8), make("int8", (3,)).prod(dtype="int8"))
    same(xp.count_nonzero(t(a > 0), axis=1, keepdims=True), (a > 0).sum(1, keepdims=True))
    assert xp.any(clew.tensor([0, 3], dtype=clew.uint8)).dtype is clew.bool
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        xp.max(clew.ones(0))


def test_scans_and_differences():
    for dtype in (*INTS, *FLOATS):
        a = make(dtype, (2, 4))
        want = np.cumsum(a, 1)
        same(xp.cumulative_sum(t(a), axis=1), want, 1e-5)
        same(xp.cumulative_prod(t(a), axis=-2), np.cumprod(a, 0), 1e-5)
        first = np.zeros((2, 1), want.dtype)
        same(
            xp.cumulative_sum(t(a), axis=1, include_initial=True),
            np.concatenate([first, want], 1),
            1e-5,
        )
        same(xp.diff(t(a), axis=0), np.diff(a, axis=0), 1e-5)
        same(xp.diff(t(a), n=2, prepend=t(a), append=t(a[:, :1])),
             np.diff(a, n=2, prepend=a, append=a[:, :1]), 1e-5)  # fmt: skip
    assert xp.cumulative_prod(clew.tensor([2, 3]), include_initial=True).tolist() == [1, 2, 6]
    assert xp.cumulative_sum(clew.ones(3, dtype=clew.uint8)).dtype is clew.uint64
    with pytest.raises(ValueError, match="axis"):
        xp.cumulative_sum(clew.ones(2, 2))


# ---- manipulation ----


def test_shapes_and_order():
    a = make("int32", (2, 1, 3))
    x = t(a)
    for axis in range(-3, 3):
        same(xp.flip(x, axis=axis), np.flip(a, axis))
        same(xp.roll(x, 2, axis=axis), np.roll(a, 2, axis))
        same(xp.unstack(x, axis=axis), tuple(np.moveaxis(a, axis, 0)))
        same(xp.stack([x, x], axis=axis), np.stack([a, a], axis))
        same(xp.concat([x, x], axis=axis), np.concatenate([a, a], axis))
        same(xp.repeat(x, 2, axis=axis), np.repeat(a, 2, axis))
        same(xp.expand_dims(x, axis=axis), np.expand_dims(a, axis))
        for to in range(-3, 3):
            same(xp.moveaxis(x, axis, to), np.moveaxis(a, axis, to))
    same(xp.flip(x), np.flip(a))
    same(xp.roll(x, 4), np.roll(a, 4))
    same(xp.roll(x, (1, 2), axis=(0, 2)), np.roll(a, (1, 2), (0, 2)))
    same(xp.roll(x, 1, axis=(0, 2)), np.roll(a, 1, (0, 2)))
    same(xp.concat([x, x[:1]], axis=None), np.concatenate([a, a[:1]], None))
    same(xp.permute_dims(x, (2, 0, 1)), a.transpose(2, 0, 1))
    same(xp.squeeze(x, 1), a[:, 0])
    same(xp.matrix_transpose(x), np.swapaxes(a, -1, -2))
    same(xp.broadcast_to(x, (2, 4, 3)), np.broadcast_to(a, (2, 4, 3)))
    same(xp.broadcast_arrays(x, x[0]), np.broadcast_arrays(a, a[0]))
    same(xp.repeat(x, t(np.array([1, 0, 2])), axis=2), np.repeat(a, [1, 0, 2], 2))
    same(xp.repeat(x, 3), np.repeat(a, 3))
    for reps in ((2,), (3, 1, 2), (2, 1, 1, 2), (0,), ()):
        same(xp.tile(x, reps), np.tile(a, reps))
    same(xp.expand_dims(x, (0, -1)), np.expand_dims(a, (0, -1)))
    for bad in (
        lambda: xp.squeeze(x, 0),
        lambda: xp.squeeze(x, (1, 2)),
        lambda: xp.concat([x, x[0]]),
        lambda: xp.concat([clew.ones(0), clew.ones(2, 2)]),
        lambda: xp.expand_dims(x, 5),
        lambda: xp.matrix_transpose(x[0, 0]),
    ):
        with pytest.raises((ValueError, IndexError)):
            bad()


def test_reshape_copies_as_told():
    x = clew.arange(6)
    assert xp.reshape(x, (2, 3), copy=False).data_ptr() == x.data_ptr()
    assert xp.reshape(x, (2, 3), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (-1, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x.reshape(2, 3).T, (6,), copy=False)


def test_taking():
    a = make("float64", (2, 3, 4))
    x = t(a)
    for axis in range(-3, 3):
        for index_type in ("int64", "int32", "uint8", "uint64"):
            i = np.array([1, 0, 1], index_type)
            same(xp.take(x, t(i), axis=axis), np.take(a, i, axis))
        i = np.argsort(a, axis)
        same(xp.take_along_axis(x, t(i), axis=axis), np.take_along_axis(a, i, axis))
    same(xp.take(x[0, 0], clew.tensor([-1, 0])), a[0, 0][[-1, 0]])
    with pytest.raises(ValueError, match="axis"):
        xp.take(x, clew.tensor([0]))
    with pytest.raises(IndexError):
        xp.take(x, clew.tensor([4]), axis=0)


# ---- searching, sorting, sets ----


def test_searching_and_sorting():
    for dtype in (*INTS, *FLOATS):
        a = make(dtype, (3, 5))
        x = t(a)
        for axis in (None, 0, 1, -1):
            for keepdims in (False, True):
                for name in ("argmax", "argmin"):
                    want = getattr(np, name)(a, axis, keepdims=keepdims)
                    same(getattr(xp, name)(x, axis=axis, keepdims=keepdims), want)
        for axis in (0, -1):
            same(xp.sort(x, axis=axis), np.sort(a, axis))
            same(xp.argsort(x, axis=axis), np.argsort(a, axis, kind="stable"))
            # In descending order equal elements stay in their order, too.
            back = np.argsort(-a.astype("float64"), axis, kind="stable")
            same(xp.argsort(x, axis=axis, descending=True), back)
            same(xp.sort(x, axis=axis, descending=True), np.take_along_axis(a, back, axis))
        same(xp.nonzero(x), np.nonzero(a))
        line = np.sort(make(dtype, (7,), 2))
        for side in ("left", "right"):
            same(xp.searchsorted(t(line), x, side=side), np.searchsorted(line, a, side))
        order = np.argsort(a[0], kind="stable")
        same(xp.searchsorted(t(a[0]), x, sorter=t(order)), np.searchsorted(a[0], a, sorter=order))
        same(xp.where(x > 1, x, 0), np.where(a > 1, a, np.array(0, dtype)))
    with pytest.raises(ValueError, match="dim"):
        xp.nonzero(clew.tensor(1))
    with pytest.raises(ValueError, match="side"):
        xp.searchsorted(t(line), x, side="middle")


def test_sets():
    for dtype in ("bool", *INTS, *FLOATS, *COMPLEX):
        for shape in SHAPES:
            a = make(dtype, shape) if dtype not in COMPLEX else make("int8", shape) * 1j
            a = np.asarray(np.round(a) if dtype in FLOATS else a, dtype)
            values, first, inverse, counts = np.unique(
                a, return_index=True, return_inverse=True, return_counts=True
            )
            got = xp.unique_all(t(a))
            same(got.values, values)
            same(got.indices, first)
            same(got.inverse_indices, inverse.reshape(shape))
            same(got.counts, counts)
            same(xp.unique_values(t(a)), values)
            same(xp.unique_counts(t(a)).counts, counts)
            same(xp.unique_inverse(t(a)).inverse_indices, inverse.reshape(shape))
    nans = xp.unique_all(clew.tensor([float("nan"), 1.0, float("nan"), 1.0]))
    assert nans.counts.tolist() == [2, 1, 1] and nans.indices.tolist()[0] == 1
    assert xp.isin(clew.tensor([1, 2, 3]), clew.tensor([2])).tolist() == [False, True, False]


# ---- linear algebra and transforms ----


def test_products():
    for a_type, b_type in itertools.product((*INTS[:4], *FLOATS, *COMPLEX), repeat=2):
        if (a_type in INTS) != (b_type in INTS):
            continue
        a, b = make(a_type, (2, 3)), make(b_type, (2, 3), 1)
        dtype = np.promote_types(a_type, b_type)
        x, y = t(a), t(b)
        wide = [v.astype(dtype) for v in (a, b)]
        same(xp.vecdot(x, y), (wide[0].conj() * wide[1]).sum(1, dtype=dtype), 1e-5)
        same(xp.matmul(x, y.mT), wide[0] @ wide[1].T, 1e-5)
        same(xp.tensordot(x, y, axes=((0,), (0,))), np.tensordot(*wide, ((0,), (0,))), 1e-5)
        same(xp.linalg.outer(x[0], y[0]), np.outer(wide[0][0], wide[1][0]), 1e-5)
        same(xp.linalg.cross(x, y[0]), np.cross(wide[0], wide[1][0]), 1e-5)
    same(xp.vecdot(t(np.ones((3, 2))), t(np.ones((3, 1))), axis=0), np.full(2, 3.0))
    with pytest.raises(ValueError, match="axis"):
        xp.vecdot(clew.ones(3), clew.ones(1))
    a = make("uint8", (2, 3, 3))
    same(xp.linalg.trace(t(a)), np.trace(a, axis1=1, axis2=2).astype("uint64"))
    for k in (-4, -1, 0, 2, 3):
        same(xp.linalg.diagonal(t(a), offset=k), np.diagonal(a, k, 1, 2))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_factorizations(dtype: str):
    a = make(dtype, (2, 3, 3))
    x = t(a)
    tol = 1e-3 if dtype in ("float32", "complex64") else 1e-9
    h = a @ a.conj().swapaxes(-1, -2) + np.eye(3, dtype=dtype)
    same(xp.linalg.det(x), np.linalg.det(a), tol)
    same(xp.linalg.inv(t(h)), np.linalg.inv(h), tol)
    same(xp.linalg.slogdet(x), list(np.linalg.slogdet(a)), tol)
    same(xp.linalg.cholesky(t(h), upper=True).mT.conj(), np.linalg.cholesky(h), tol)
    same(xp.linalg.eigvalsh(t(h)), np.linalg.eigvalsh(h), tol)
    values, vectors = xp.linalg.eigh(t(h))
    same(vectors @ (values[..., None] * vectors.mT.conj()), h, tol)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    same((u * s[..., None, :]) @ vh, a, tol)
    same(xp.linalg.svdvals(x), np.linalg.svd(a, compute_uv=False), tol)
    q, r = xp.linalg.qr(x, mode="complete")
    same(q @ r, a, tol)
    same(xp.linalg.pinv(x[:, :2]), np.linalg.pinv(a[:, :2]), tol)
    same(xp.linalg.matrix_rank(t(h)), np.full(2, 3))
    same(xp.linalg.matrix_power(x, 3), np.linalg.matrix_power(a, 3), tol)
    for shape in ((3,), (3, 2), (2, 3, 3), (4, 1, 3, 2)):
        b = make(dtype, shape, 5)
        want = np.linalg.inv(h) @ (b[:, None] if len(shape) == 1 else b)
        same(xp.linalg.solve(t(h), t(b)), want[..., 0] if len(shape) == 1 else want, tol)
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf):
        want = np.linalg.norm(a, ord, (-2, -1), keepdims=True)
        same(xp.linalg.matrix_norm(x, ord=ord, keepdims=True), want, tol)
    for ord, axis in itertools.product((0, 1, 2, 3, np.inf, -np.inf), (0, -1)):
        want = np.linalg.norm(a, ord, axis)
        same(xp.linalg.vector_norm(x, ord=ord, axis=axis), want, tol)
    same(xp.linalg.vector_norm(x, axis=(0, 2)), np.sqrt((abs(a) ** 2).sum((0, 2))), tol)
    same(xp.linalg.vector_norm(x), np.sqrt((abs(a) ** 2).sum()), tol)
    assert xp.linalg.vector_norm(x[:, :0], ord=np.inf).item() == 0
    assert xp.linalg.matrix_norm(x[:, :0]).tolist() == [0, 0]


def test_transforms():
    a = make("complex128", (3, 4))
    x = t(a)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        b = a.real if name in ("rfft", "ihfft") else a
        for axis, n, norm in itertools.product(
            (0, -1), (None, 5), ("backward", "ortho", "forward")
        ):
            got = getattr(xp.fft, name)(t(b), n=n, axis=axis, norm=norm)
            same(got, getattr(np.fft, name)(b, n, axis, norm), 1e-10)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        b = a.real if name == "rfftn" else a
        for axes, s in ((None, None), ((0,), (5,)), ((1, 0), None), ((0, 1), (2, 6))):
            want = getattr(np.fft, name)(b, s, axes)
            same(getattr(xp.fft, name)(t(b), s=s, axes=axes), want, 1e-10)
    for axes in (None, 0, (0, 1)):
        same(xp.fft.fftshift(x, axes=axes), np.fft.fftshift(a, axes))
        same(xp.fft.ifftshift(x, axes=axes), np.fft.ifftshift(a, axes))
    for n in (1, 4, 5):
        same(xp.fft.fftfreq(n, d=0.5, dtype=clew.float64), np.fft.fftfreq(n, 0.5))
        same(xp.fft.rfftfreq(n, d=2.0, dtype=clew.float64), np.fft.rfftfreq(n, 2.0))
    assert xp.fft.fft(clew.ones(2)).dtype is clew.complex64
