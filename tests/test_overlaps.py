"""Tensors that share memory with themselves or with what is written: what is refused, and what is
not because the order of writing does not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import clew

REFUSED = "single memory location"


def test_filling_what_overlaps_itself():
    x = clew.zeros(3, 1).expand(3, 4)
    assert x.fill_(2).tolist() == [[2.0] * 4] * 3
    assert x.zero_().tolist() == [[0.0] * 4] * 3
    for call in (
        lambda: x.__setitem__(slice(None), 3.0),
        lambda: x.__setitem__(0, 3.0),
        lambda: x.__setitem__((slice(None), slice(1, 3)), clew.ones(2)),
        lambda: x.uniform_(),
        lambda: x.copy_(clew.ones(3, 4)),
    ):
        with pytest.raises(RuntimeError, match=REFUSED):
            call()
    assert x.tolist() == [[0.0] * 4] * 3
    x[:, 0] = 5.0
    assert x.tolist() == [[5.0] * 4] * 3


def test_what_has_no_elements_does_not_overlap_itself():
    for shape in ((2, 0, 3), (3, 0, 0), (2, 3, 0)):
        x = clew.zeros(shape[1:]).expand(shape)
        assert x.copy_(clew.ones(shape)) is x
        square = clew.eye(shape[1])
        assert clew.linalg.solve_triangular(square, clew.ones(shape), upper=True, out=x) is x


PARTLY: dict[str, Callable[[Any, Any], Any]] = {
    "cumsum": lambda x, o: clew.cumsum(x, 0, out=o),
    "cumprod": lambda x, o: clew.cumprod(x, 0, out=o),
    "logcumsumexp": lambda x, o: clew.logcumsumexp(x, 0, out=o),
    "msort": lambda x, o: clew.msort(x, out=o),
}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda x, o: clew.sort(x, out=o),
    "topk": lambda x, o: clew.topk(x, 5, out=o),
    "median": lambda x, o: clew.median(x, 0, out=o),
    "nanmedian": lambda x, o: clew.nanmedian(x, 0, out=o),
    "kthvalue": lambda x, o: clew.kthvalue(x, 2, out=o),
}


@pytest.mark.parametrize("name", [*PARTLY, *PAIRS])
def test_out_beside_its_input(name: str):
    base = clew.tensor([3.0, 1.0, 2.0, 5.0, 4.0, 0.0])
    before = base.tolist()
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match=REFUSED):
        warnings.simplefilter("ignore")
        if name in PARTLY:
            PARTLY[name](base[:-1], base[1:])
        else:
            PAIRS[name](base[:-1], (base[1:], clew.zeros(5, dtype=clew.int64)))
    assert base.tolist() == before


def test_out_that_is_the_input():
    x = clew.tensor([3.0, 1.0, 2.0])
    assert clew.cumsum(x, 0, out=x).tolist() == [3.0, 4.0, 6.0]
    places = clew.zeros(3, dtype=clew.int64)
    clew.topk(x, 3, out=(x, places))
    assert x.tolist() == [6.0, 4.0, 3.0] and places.tolist() == [2, 1, 0]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "index_add_": lambda x, v: x.index_add_(0, clew.arange(5), v),
    "index_copy_": lambda x, v: x.index_copy_(0, clew.arange(5), v),
    "index_put_": lambda x, v: x.index_put_((clew.arange(5),), v),
    "x[list]": lambda x, v: x.__setitem__([0, 1, 2, 3, 4], v),
    "x[mask]": lambda x, v: x.__setitem__(x > -1, v),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_of_a_part_of_the_tensor_itself(name: str):
    base = clew.arange(6.0)
    for x, v in ((base[1:], base[:-1]), (base[:-1], base[1:]), (base[:5], base[:5])):
        with pytest.raises(RuntimeError, match=REFUSED):
            WRITES[name](x, v)
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    WRITES[name](base[:5], base[:5].clone())


def test_one_value_of_the_tensor_itself_is_read_first():
    start = clew.arange(6.0).reshape(2, 3)

    def written(write):
        x = start.clone()
        write(x)
        leaf = start.clone().requires_grad_()
        y = leaf * 1
        write(y)
        with clew.autobatch():
            gathered = start * 1
            write(gathered)
        assert clew.equal(x, y) and clew.equal(x, gathered)
        (grad,) = clew.autograd.grad((y * clew.tensor([[1.0], [10.0]])).sum(), leaf)
        return x.tolist(), grad.tolist()

    masked = [[0, 1, 5], [5, 5, 5]], [[1, 1, 0], [0, 0, 31]]
    for write in (
        lambda x: x.__setitem__(x > 1, x[1, 2]),
        lambda x: x.__setitem__(x > 1, x[1:, 2]),
        lambda x: x.__setitem__(x > 1, x[1:, 2:]),
        lambda x: x.masked_fill_(x > 1, x[1, 2]),
        lambda x: x.index_put_((x > 1,), x[1, 2]),
        lambda x: x.index_put_((x > 1,), x[1:, 2:]),
    ):
        assert written(write) == masked
    for write in (
        lambda x: x.fill_(x[1, 2]),
        lambda x: x.__setitem__(..., x[1, 2]),
        lambda x: x.__setitem__(slice(None), x[1:, 2:]),
    ):
        assert written(write) == ([[5, 5, 5]] * 2, [[0, 0, 0], [0, 0, 33]])
    assert written(lambda x: x.__setitem__(slice(None), x[0])) == (
        [[0, 1, 2]] * 2,
        [[11, 11, 11], [0, 0, 0]],
    )
    square = clew.arange(9.0).reshape(3, 3)
    square.t()[:] = square[0]
    assert square.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    large = clew.arange(40_000.0).reshape(200, 200)
    large[large > 1] = large[1, 1]
    assert large.flatten()[2:].unique().tolist() == [201]


def test_empty_vectors_join_along_any_dim():
    e = clew.zeros(0)
    for dim in (-3, -2, -1, 0, 1, 2):
        assert clew.cat([e, e], dim).shape == (0,)
        assert clew.cat([e], dim).shape == (0,)
    assert clew.cat([e, clew.zeros(2, 3)], -2).shape == (2, 3)
    for parts, dim in (([e, clew.zeros(3)], -2), ([e, clew.zeros(2, 3)], -3)):
        with pytest.raises(IndexError):
            clew.cat(parts, dim)


CREATED: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda o: clew.zeros(5, out=o),
    "ones": lambda o: clew.ones(5, out=o),
    "full": lambda o: clew.full((5,), 3.0, out=o),
    "empty": lambda o: clew.empty(5, out=o),
    "rand": lambda o: clew.rand(5, out=o),
    "linspace": lambda o: clew.linspace(0, 1, 5, out=o),
    "logspace": lambda o: clew.logspace(0, 1, 5, out=o),
    "eye": lambda o: clew.eye(5, out=o),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation_into_another_shape_does_not_warn(name: str):
    out = clew.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CREATED[name](out) is out
    assert out.shape[0] == 5
    with pytest.warns(UserWarning, match="resized"):
        clew.arange(0, 4, out=out)
