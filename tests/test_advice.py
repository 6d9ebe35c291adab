"""Errors of the core that say what to do, as those who come from NumPy meet them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
import clew.nn.functional as F

ONES = np.ones((2, 3), dtype=np.float32)


@pytest.mark.at_once
@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda x: clew.sin(ONES), TypeError, r"not numpy.ndarray; clew.tensor\(\) makes one"),
        (lambda x: clew.exp([1.0, 2.0]), TypeError, r"not list; clew.tensor\(\) makes one"),
        (lambda x: clew.abs(-3), TypeError, r"must be Tensor, not int; clew.tensor\(\) makes"),
        (
            lambda x: clew.cat([x, ONES]),
            TypeError,
            r"numpy.ndarray at pos 1; clew.tensor\(\) makes",
        ),
        (lambda x: clew.sin("a"), TypeError, r"must be Tensor, not str$"),
        (lambda x: clew.sum(x, dtype="float32"), TypeError, "not str; such as clew.float32"),
        (lambda x: clew.zeros(2, dtype=np.float32), TypeError, "not type; such as clew.float32"),
        (lambda x: x.to(dtype="float32"), TypeError, "such as clew.float32; got 'float32'"),
        (lambda x: clew.round(x, 1), TypeError, "2 were given; by name only: decimals"),
        (lambda x: clew.sin(x, x), TypeError, "2 were given$"),
        (lambda x: x[::-1], ValueError, r"got -1; flip\(\) turns a dim round"),
        (lambda x: x.item(), RuntimeError, r"with 6 elements .*; tolist\(\) gives them all"),
        (lambda x: x.dot(x), RuntimeError, r"1 and 1 dimensions; .*; matmul\(\) takes others"),
        (lambda x: clew.tensor([[1, 2], [3]]), ValueError, r"\(got 1\); clew.nested.nested_tensor"),
        (lambda x: F.cross_entropy(x, x[:, 0]), RuntimeError, r"got float32.*; .* \.long\(\)"),
        (lambda x: F.embedding(x, x), RuntimeError, r"got float32.*; convert them with \.long\(\)"),
        (lambda x: F.one_hot(x), RuntimeError, r"got float32.*; convert it with \.long\(\)"),
        (
            lambda x: F.cross_entropy(x, clew.tensor([0, 3])),
            IndexError,
            "cross_entropy: target 3 is out of bounds for 3 classes",
        ),
        (lambda x: clew.tensor(["a"]), TypeError, "'str'; a tensor holds numbers"),
        (
            lambda x: clew.func.vmap(lambda v: v.item())(x[:, 0]),
            RuntimeError,
            r"use where\(\) instead of if, or call it on what vmap returns",
        ),
    ],
)
def test_the_way_out(call: Any, error: type[Exception], match: str):
    with pytest.raises(error, match=match):
        call(clew.ones(2, 3))


def test_the_ways_out_lead_there():
    x = clew.tensor(ONES)
    assert clew.equal(clew.sin(clew.tensor(ONES)), clew.sin(x))
    assert clew.equal(x.flip(0), x) and clew.matmul(x, x.T).shape == (2, 2)
    assert len(clew.nested.nested_tensor([[1, 2], [3]], layout=clew.jagged)) == 2
    assert x.tolist() == ONES.tolist()
    assert clew.round(x, decimals=1).dtype is clew.float32
