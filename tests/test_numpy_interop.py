"""NumPy's functions and arrays meet tensors."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import clew

A = np.array([[1.0, 2.0], [3.0, 4.5]])


def tensor() -> clew.Tensor:
    return clew.tensor(A, dtype=clew.float32)


@pytest.mark.parametrize(
    "call",
    [
        np.sin,
        np.exp,
        np.sqrt,
        np.abs,
        np.negative,
        lambda x: np.add(x, 1),
        lambda x: np.add(1, x),
        lambda x: np.multiply(x, x),
        lambda x: np.maximum(x, np.float32(2)),
        lambda x: np.power(x, 2),
        lambda x: np.add.accumulate(x),
        lambda x: np.sum(x),
        lambda x: np.sum(x, axis=1),
        lambda x: np.mean(x),
        lambda x: np.mean(x, axis=0),
        lambda x: np.prod(x, axis=1),
        lambda x: np.clip(x, 2, 3),
        lambda x: np.argmax(x, axis=1),
        lambda x: np.cumsum(x, axis=0),
    ],
)
def test_functions_that_answer_with_tensors(call):
    got = call(tensor())
    want = call(A.astype(np.float32))
    assert isinstance(got, clew.Tensor)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert got.dtype is (clew.int64 if want.dtype == np.int64 else clew.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x], axis=1),
        lambda x: np.vstack([x, A]),
        lambda x: np.asarray(x),
        lambda x: np.array(x),
        lambda x: np.ascontiguousarray(x.T),
        lambda x: np.asarray(x, dtype=np.int32),
        lambda x: np.where(A > 2, x, 0),
        lambda x: np.dot(x, x),
        lambda x: np.einsum("ij,jk", x, x),
        lambda x: np.median(x),
        lambda x: np.percentile(x, 50),
        lambda x: np.broadcast_to(x, (3, 2, 2)),
        lambda x: np.diag(x),
        lambda x: np.pad(x, 1),
        lambda x: np.allclose(x, A),
        lambda x: np.linalg.norm(x),
        lambda x: np.full(2, x[0, 1]),
    ],
)
def test_functions_that_answer_with_arrays(call):
    got = call(tensor())
    want = call(A.astype(np.float32))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize(
    "op",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
     operator.pow, operator.lt, operator.ge, operator.eq, operator.ne],
)  # fmt: skip
def test_operators_with_arrays(op):
    x, y = tensor(), A[0].astype(np.float32)
    b = A.astype(np.float32)
    for got, want in ((op(x, y), op(b, y)), (op(y, x), op(y, b))):
        assert isinstance(got, clew.Tensor)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert isinstance(op(A, x), clew.Tensor) and isinstance(op(x, A), clew.Tensor)


def test_products_with_arrays():
    x, b = tensor(), A.astype(np.float32)
    for other in (b, A, b[0], np.arange(4).reshape(2, 2)):
        for got, want in ((x @ other, b @ other), (other @ x, other @ b)):
            assert isinstance(got, clew.Tensor)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert (A @ x).dtype is clew.float64 and (b @ x).dtype is clew.float32
    with pytest.raises(RuntimeError):
        x @ clew.tensor(A)  # between tensors dtypes must agree
    weight = clew.ones(2, 2, requires_grad=True)
    (A @ weight).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), A.sum(0)[:, None] * np.ones(2))


def test_operators_with_bits_and_scalars():
    i, a = clew.tensor([1, 2]), np.array([3, 3])
    assert (
        (a & i).tolist() == [1, 2] and (i | a).tolist() == [3, 3] and (a << i).tolist() == [6, 12]
    )
    for scalar in (np.float32(2), np.float64(2), np.int64(2), np.array(2.0)):
        for got in (scalar * tensor(), tensor() * scalar):
            assert isinstance(got, clew.Tensor) and got.dtype is clew.float32
            np.testing.assert_allclose(got.numpy(), 2 * A)
    assert (tensor() < np.float64(2)).tolist() == [[True, False], [False, False]]


def test_tensors_that_require_grad_are_not_taken_in_silence():
    g = clew.tensor([1.0, 2.0], requires_grad=True)
    for call in (
        lambda: np.asarray(g),
        lambda: np.sin(g),
        lambda: np.add(g, 1),
        lambda: np.concatenate([g, g]),
        lambda: np.array([g.sum() * g]),
        lambda: g.numpy(),
    ):
        with pytest.raises(RuntimeError, match="requires grad"):
            call()
    assert np.sin(g.detach()).tolist() == pytest.approx(np.sin([1.0, 2.0]).tolist())
    (np.array([2.0, 3.0]) * g).sum().backward()
    assert g.grad.tolist() == [2, 3]
    with pytest.raises(TypeError, match="bfloat16|BFloat16"):
        np.asarray(clew.ones(2, dtype=clew.bfloat16))


def test_extrema():
    x, b = tensor(), A.astype(np.float32)
    for f in (np.max, np.min):
        for axis in (None, 0, -1, (0, 1)):
            for keepdims in (False, True):
                got, want = f(x, axis=axis, keepdims=keepdims), f(b, axis=axis, keepdims=keepdims)
                assert isinstance(got, clew.Tensor) and got.shape == want.shape
                np.testing.assert_array_equal(got.numpy(), want)
    assert clew.max(x, axis=0).values.tolist() == x.max(0).values.tolist() == [3, 4.5]
    with pytest.raises(TypeError, match="out"):
        x.median(dim=0, out=None)


def test_types_of_elements():
    for dtype, kind in ((clew.int64, np.int64), (clew.uint64, np.uint64), (clew.int32, np.int32)):
        array = clew.tensor([1, 2], dtype=dtype).numpy()
        assert type(array[0]) is kind and array.dtype.char == np.dtype(kind).char


def test_indexing_each_other():
    a, x = A.copy(), tensor()
    assert a[clew.tensor([1, 0])].tolist() == A[[1, 0]].tolist()
    assert x[np.array([1])].tolist() == A[[1]].tolist()
    assert x[np.array([True, False])].tolist() == A[:1].tolist()
    assert x[np.int64(1)].tolist() == A[1].tolist()
    assert list(range(3))[clew.tensor(2)] == 2 and np.zeros(clew.tensor(3)).shape == (3,)
    a[0] = clew.tensor([7.0, 8.0])
    x[0] = np.array([7.0, 8.0])
    assert a[0].tolist() == x[0].tolist() == [7, 8]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, **k: clew.diff(x, **k),
        lambda x, **k: clew.cross(clew.ones(3, 3), clew.eye(3), **k),
        lambda x, **k: clew.quantile(x, 0.3, **k),
        lambda x, **k: clew.nanquantile(x, 0.3, **k),
        lambda x, **k: clew.renorm(x, 2, maxnorm=0.5, **k),
        lambda x, **k: clew.trapezoid(x, **k),
        lambda x, **k: clew.linalg.norm(x, **k),
        lambda x, **k: clew.linalg.vecdot(x, x, **k),
        lambda x, **k: clew.fft.fft(x, **k),
        lambda x, **k: clew.fft.fftshift(x, **k),
        lambda x, **k: clew.fft.fftn(x, **k),
    ],
)
def test_axis_is_another_name_of_dim(call):
    x = clew.arange(9.0).reshape(3, 3) ** 2
    assert call(x, axis=0).equal(call(x, dim=0)) and not call(x, axis=0).equal(call(x, dim=1))
    with pytest.raises(TypeError, match="axis"):
        call(x, axis=0, dim=0)


def test_keepdims_is_another_name_of_keepdim():
    x = clew.ones(2, 3)
    assert clew.linalg.norm(x, axis=1, keepdims=True).shape == (2, 1)
    assert clew.quantile(x, 0.5, axis=1, keepdims=True).shape == (2, 1)
    assert clew.linalg.matrix_norm(x, keepdims=True).shape == (1, 1)


def test_what_requires_grad_is_given_where_nothing_is_recorded():
    x = clew.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with clew.no_grad():
        array = x.numpy()
        np.asarray(x)[0] = 5
    array[1] = 3
    assert x.tolist() == [5.0, 3.0]


X = clew.arange(24.0).reshape(2, 3, 4)
HANN = clew.hann_window(4)


@pytest.mark.parametrize(
    "call",
    [
        lambda i: clew.fft.fft(X, n=i(5), dim=i(1)),
        lambda i: clew.fft.rfftn(X, s=(i(2), i(3)), dim=(i(1), i(2))),
        lambda i: clew.fft.irfft2(clew.fft.rfft2(X), s=[i(3), i(4)]),
        lambda i: clew.fft.fftshift(X, i(1)),
        lambda i: clew.fft.fftfreq(i(4)),
        lambda i: clew.hann_window(i(5)),
        lambda i: clew.signal.windows.kaiser(i(5)),
        lambda i: clew.stft(X[0, 0].repeat(4), i(8), i(2), i(4), HANN, return_complex=True),
        lambda i: clew.gradient(X, dim=i(1)),
        lambda i: clew.gradient(X, dim=(i(1), i(2))),
        lambda i: clew.trapezoid(X, dim=i(0)),
        lambda i: clew.quantile(X, 0.5, dim=i(2)),
        lambda i: clew.renorm(X, i(2), i(1), i(3)),
        lambda i: clew.histc(X, i(4), i(2), i(9)),
        lambda i: clew.histogram(X, i(4)).hist,
        lambda i: clew.isin(X, i(3)),
        lambda i: clew.nonzero_static(X, size=i(3)),
        lambda i: clew.count_nonzero(X, i(1)),
        lambda i: clew.hash_tensor(X, i(1)),
        lambda i: clew.linalg.matrix_power(clew.eye(2) * 2, i(3)),
        lambda i: clew.linalg.matrix_norm(X, dim=(i(0), i(2))),
        lambda i: clew.linalg.norm(X, dim=i(1)),
        lambda i: clew.linalg.tensorsolve(clew.eye(3).reshape(3, 3), X[0, :, 0], dims=i(0)),
        lambda i: clew.masked.mean(X, dim=i(1)),
        lambda i: clew.nn.functional.max_pool1d(X, i(2), i(1), i(1), i(1)),
        lambda i: clew.nn.functional.adaptive_avg_pool1d(X, i(2)),
        lambda i: clew.nn.functional.adaptive_max_pool2d(X, i(2)),
        lambda i: clew.nn.functional.max_unpool1d(
            *clew.nn.functional.max_pool1d(X, 2, return_indices=True), kernel_size=i(2)
        ),
    ],
)
def test_integers_of_numpy_are_ints(call):
    expected = call(int)
    for kind in (np.int64, np.int32, np.uint8):
        got = call(kind)
        for g, e in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected))):
            assert clew.equal(g, e)


def test_numbers_of_numpy_are_numbers():
    x = clew.tensor([1.0, 2.0, 3.0])
    assert clew.histc(x, 4, np.float32(0), np.float64(3)).tolist() == [0, 1, 1, 1]
    assert clew.quantile(x, np.float32(0.5)).item() == 2
    assert clew.isin(x, np.float32(2)).tolist() == [False, True, False]
    assert clew.isin(np.float64(2), x).item()
    assert clew.gradient(x, spacing=np.float32(2))[0].tolist() == [0.5, 0.5, 0.5]
    for refused in (1.0, np.float64(1), "1", True):
        with pytest.raises(TypeError, match="must be int"):
            clew.hann_window(refused)
