"""out= of operations on sparse tensors whose results are dense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clew

DENSE = clew.arange(6.0).view(2, 3)
PLAIN = clew.tensor([[1.0, 0.0], [2.0, 3.0]])
RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda s, o: clew.mm(s, DENSE, out=o),
    "matmul": lambda s, o: clew.matmul(s, DENSE, out=o),
    "addmm": lambda s, o: clew.addmm(clew.ones(2, 3), s, DENSE, beta=2, out=o),
    "mv": lambda s, o: clew.mv(s, DENSE[:, 1], out=o),
    "add": lambda s, o: clew.add(clew.ones(2, 2), s, out=o),
}


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("name", RESULTS)
def test_a_dense_result_is_written(name: str, layout: str):
    sparse, write = getattr(PLAIN, layout)(), RESULTS[name]
    want = write(PLAIN, None)
    out = clew.full_like(want, -1.0)
    assert write(sparse, out) is out
    assert clew.equal(out, want)
    with pytest.warns(UserWarning, match="resized"):
        other = write(sparse, clew.zeros(5))
    assert clew.equal(other, want)
    with pytest.raises(RuntimeError, match="dtype"):
        write(sparse, clew.zeros_like(want, dtype=clew.int64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        write(sparse.requires_grad_(), out)
    with clew.no_grad():
        assert write(sparse, out) is out


def test_a_sparse_result_is_not():
    sparse = PLAIN.to_sparse()
    for out in (sparse.clone(), clew.zeros(2, 2)):
        with pytest.raises(NotImplementedError, match=r"mul: out= is not offered for sparse"):
            clew.mul(sparse, sparse, out=out)
    with pytest.raises(NotImplementedError, match="out= is not offered for sparse"):
        clew.mm(sparse, DENSE, out=clew.zeros(2, 3).to_sparse())
