"""Functions whose out= must have the result's own dtype, and those that convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew import linalg

X = clew.tensor([[2.0, 1.0], [1.0, 3.0]])
V = clew.tensor([1.0, 2.0])
F64, I32, I64 = clew.float64, clew.int32, clew.int64

STRICT: dict[str, Callable[[Any], Any]] = {
    "linalg.inv": lambda o: linalg.inv(X, out=o),
    "linalg.det": lambda o: linalg.det(X, out=o),
    "linalg.solve": lambda o: linalg.solve(X, X, out=o),
    "linalg.eigvalsh": lambda o: linalg.eigvalsh(X, out=o),
    "linalg.svdvals": lambda o: linalg.svdvals(X, out=o),
    "linalg.cholesky": lambda o: linalg.cholesky(X, out=o),
    "linalg.norm": lambda o: linalg.norm(X, out=o),
    "linalg.matrix_norm": lambda o: linalg.matrix_norm(X, out=o),
    "linalg.matrix_power": lambda o: linalg.matrix_power(X, 2, out=o),
    "linalg.multi_dot": lambda o: linalg.multi_dot([X, X], out=o),
    "linalg.vecdot": lambda o: linalg.vecdot(V, V, out=o),
    "linalg.solve_triangular": lambda o: linalg.solve_triangular(X, X, upper=True, out=o),
    "tensordot": lambda o: clew.tensordot(X, X, 1, out=o),
    "histc": lambda o: clew.histc(V, 3, out=o),
    "quantile": lambda o: clew.quantile(V, 0.5, out=o),
    "nanquantile": lambda o: clew.nanquantile(V, 0.5, out=o),
    "renorm": lambda o: clew.renorm(X, 2, 0, 1.0, out=o),
    "index_reduce": lambda o: clew.index_reduce(V, 0, clew.tensor([0]), V[:1], "prod", out=o),
    "view_copy": lambda o: clew.view_copy(V, (2,), out=o),
}
PAIRS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "max": (lambda o: clew.max(V, 0, out=o), (clew.float32, I32)),
    "min": (lambda o: clew.min(V, 0, out=o), (F64, I64)),
    "frexp": (lambda o: clew.frexp(V, out=o), (clew.float32, I64)),
    "linalg.qr": (lambda o: linalg.qr(X, out=o), (F64, F64)),
    "linalg.eigh": (lambda o: linalg.eigh(X, out=o), (F64, F64)),
    "linalg.slogdet": (lambda o: linalg.slogdet(X, out=o), (F64, F64)),
    "linalg.inv_ex": (lambda o: linalg.inv_ex(X, out=o), (clew.float32, I64)),
    "linalg.cholesky_ex": (lambda o: linalg.cholesky_ex(X, out=o), (clew.float32, I64)),
    "linalg.lu_factor": (lambda o: linalg.lu_factor(X, out=o), (clew.float32, I64)),
}
CONVERTING: dict[str, Callable[[Any], Any]] = {
    "linalg.pinv": lambda o: linalg.pinv(X, out=o),
    "linalg.cond": lambda o: linalg.cond(X, out=o),
    "cholesky_inverse": lambda o: clew.cholesky_inverse(X, out=o),
    "cholesky": lambda o: clew.cholesky(X, out=o),
    "special.entr": lambda o: clew.special.entr(V, out=o),
    "diff": lambda o: clew.diff(V, out=o),
    "kron": lambda o: clew.kron(V, V, out=o),
    "lerp": lambda o: clew.lerp(V, V + 1, 0.25, out=o),
}


@pytest.mark.parametrize("name", STRICT)
def test_own_dtype(name: str):
    out = clew.full((3,), 7.0, dtype=F64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
        STRICT[name](out)
    assert out.tolist() == [7.0] * 3
    STRICT[name](clew.empty(0))


@pytest.mark.parametrize("name", PAIRS)
def test_own_dtypes_of_two(name: str):
    call, dtypes = PAIRS[name]
    out = tuple(clew.empty(0, dtype=d) for d in dtypes)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        call(out)


@pytest.mark.parametrize("name", CONVERTING)
def test_converted(name: str):
    out, own = clew.empty(0, dtype=F64), clew.empty(0)
    CONVERTING[name](out)
    CONVERTING[name](own)
    np.testing.assert_array_equal(out.numpy(), own.numpy().astype(np.float64))


def test_sums_are_computed_in_the_dtype_of_out():
    x = clew.tensor([1.75, 2.75])
    assert clew.sum(x, 0, out=clew.empty((), dtype=I64)).item() == 3
    assert clew.prod(x, 0, out=clew.empty((), dtype=I32)).item() == 2
    wide = clew.sum(clew.tensor([1.0, 2.0**-40]), 0, out=clew.empty((), dtype=F64))
    assert wide.item() == 1.0 + 2.0**-40
    for f in (clew.sum, clew.mean, clew.prod):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float64"):
            f(x, 0, dtype=F64, out=clew.empty(()))
    with pytest.raises(RuntimeError, match="can't be cast"):
        clew.sum(x + 1j, 0, out=clew.empty(()))


@pytest.mark.parametrize("f", [clew.cumsum, clew.cumprod])
def test_running_sums_are_not_cast_to_another_dtype_than_the_one_asked_for(f):
    x = clew.tensor([1, 2, 3], dtype=I32)
    assert f(x, 0, out=clew.empty(3)).dtype is clew.float32
    assert f(x, 0, dtype=F64, out=clew.empty(3, dtype=F64)).dtype is F64
    for asked, given in ((I64, I32), (I32, I64), (F64, clew.float32), (clew.float32, I32)):
        out = clew.full((3,), 7, dtype=given)
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            f(x, 0, dtype=asked, out=out)
        assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize("dtype", [I32, clew.uint8, clew.bool, clew.float16, F64])
def test_ones_that_are_drawn_go_into_any_dtype(dtype):
    out = clew.empty(3, dtype=dtype)
    assert clew.bernoulli(clew.tensor([0.0, 1.0, 1.0]), out=out) is out
    assert out.tolist() == [0, 1, 1]
