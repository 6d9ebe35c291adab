"""Writes by masks and index tensors into expanded tensors: PyTorch warns and writes, where other
writes raise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import clew

REFUSED = "single memory location"
MASK = clew.tensor([[False, True, True, False], [False] * 4, [False] * 4])
ROWS = clew.tensor([True, False, True])
IDX = clew.tensor([1, 2])


def put(key: Any, value: Any) -> Callable[[Any], Any]:
    return lambda x: x.__setitem__(key, value)


# The operation that warns, the write into three rows of four elements, what each row is then.
WRITES: list[tuple[str, Callable[[Any], Any], list[float]]] = [
    ("masked_fill_", lambda x: x.masked_fill_(MASK, 1), [1, 0, 0]),
    ("masked_fill_", lambda x: x.masked_fill_(MASK, clew.tensor(1)), [1, 0, 0]),
    ("masked_fill_", lambda x: x.masked_fill_(ROWS[:, None], 1), [1, 0, 1]),
    ("masked_fill_", lambda x: x.masked_fill_(MASK & False, 1), [0, 0, 0]),
    ("masked_fill_", lambda x: x.masked_fill_(MASK, x[1, 2]), [0, 0, 0]),
    ("masked_fill_", put(MASK, 1), [1, 0, 0]),
    ("index_fill_", lambda x: x.index_fill_(0, IDX, 5), [0, 5, 5]),
    ("index_fill_", lambda x: x.index_fill_(1, IDX, 5), [5, 5, 5]),
    ("index_fill_", lambda x: x.index_fill_(1, IDX[:0], 5), [0, 0, 0]),
    ("index_fill_", lambda x: x.index_fill_(-1, clew.tensor(-1), clew.tensor(5)), [5, 5, 5]),
    ("index_put_", lambda x: x.index_put_((IDX,), clew.tensor(5.0)), [0, 5, 5]),
    ("index_put_", lambda x: x.index_put_((IDX,), clew.arange(4.0)), [0, 3, 3]),
    ("index_put_", lambda x: x.index_put_((IDX,), clew.arange(4.0), True), [0, 6, 6]),
    ("index_put_", lambda x: x.index_put_((IDX[:1], IDX[:1]), clew.ones(1), True), [0, 1, 0]),
    ("index_put_", lambda x: x.index_put_((MASK,), clew.tensor([5.0, 6.0])), [6, 0, 0]),
    ("index_put_", lambda x: x.index_put_((MASK,), clew.tensor(5.0), True), [10, 0, 0]),
    ("index_put_", put(ROWS, 3), [3, 0, 3]),
    ("index_put_", put(ROWS, clew.arange(4.0)), [3, 0, 3]),
    ("index_put_", put(IDX, clew.arange(8.0).view(2, 4)), [0, 3, 7]),
    ("index_put_", put([1, 2], 2), [0, 2, 2]),
    ("index_put_", put((slice(None), IDX), 2), [2, 2, 2]),
    ("index_put_", put((slice(None), [3, 0, 1]), clew.arange(3.0)), [2, 2, 2]),
    ("index_put_", put((0, IDX), 2), [2, 0, 0]),
    ("index_put_", put((None, IDX), clew.ones(4)), [0, 1, 1]),
    ("index_put_", put(IDX[:0], 2), [0, 0, 0]),
]


@pytest.mark.parametrize("k", range(len(WRITES)))
def test_a_write_warns_and_is_done(k: int):
    name, write, want = WRITES[k]
    base = clew.zeros(3, 1)
    x = base.expand(3, 4)
    with pytest.warns(UserWarning, match=f"Use of {name} on expanded tensors is deprecated"):
        write(x)
    assert base.flatten().tolist() == want
    assert x.tolist() == [[v] * 4 for v in want]
    # The same where calls wait, and of what knows no base.
    alone = clew.zeros(3, 1).expand(3, 4).detach()
    with pytest.warns(UserWarning, match=name):
        write(alone)
    with clew.autobatch(), pytest.warns(UserWarning, match=name):
        gathered = (clew.zeros(3, 1) * 1).expand(3, 4)
        write(gathered)
    assert alone.tolist() == gathered.tolist() == x.tolist()


def test_nothing_is_written_where_the_warning_is_an_error():
    for _, write, _ in WRITES:
        x = clew.zeros(3, 1).expand(3, 4)
        version = x._version
        with warnings.catch_warnings(), pytest.raises(UserWarning, match="expanded"):
            warnings.simplefilter("error")
            write(x)
        assert x.tolist() == [[0.0] * 4] * 3
        assert x._version == version


@pytest.mark.filterwarnings("ignore:Use of")
def test_a_write_counts_and_other_writes_are_refused():
    x = clew.zeros(3, 1).expand(3, 4)
    for write in (
        lambda: x.masked_fill_(MASK, 1),
        lambda: x.index_fill_(0, IDX, 1),
        lambda: x.index_put_((IDX,), clew.arange(4.0)),
    ):
        version = x._version
        write()
        assert x._version > version
    for refused in (
        lambda: x.masked_scatter_(MASK, clew.arange(12.0)),
        lambda: x.index_add_(0, IDX, clew.ones(2, 4)),
        lambda: x.index_copy_(0, IDX, clew.ones(2, 4)),
        lambda: x.put_(IDX, clew.ones(2)),
        lambda: x.__setitem__(True, clew.ones(1)),
        lambda: x.scatter_(0, clew.zeros(3, 4, dtype=clew.int64), 1),
    ):
        with pytest.raises(RuntimeError, match=REFUSED):
            refused()
    with pytest.raises(IndexError):
        x.index_fill_(1, clew.tensor([4]), 1)
    with pytest.raises(IndexError):
        x[clew.tensor([3])] = 1
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x[IDX] = clew.ones(3)
    leaf = clew.zeros(3, 1, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.expand(3, 4).masked_fill_(MASK, 1)
    meta = clew.zeros(3, 1, device="meta").expand(3, 4)
    meta.masked_fill_(MASK.to("meta"), 1)
    meta[IDX] = 1
    meta.index_fill_(0, IDX.to("meta"), 1)


@pytest.mark.filterwarnings("ignore:Use of")
def test_of_what_several_threads_would_write_the_last_value_stays():
    many = clew.arange(300)
    x = clew.zeros(1, 4000).expand(300, 4000)
    x[many] = many[:, None].float().expand(300, 4000)
    assert x.unique().tolist() == [299]
    x.index_put_((many,), many[:, None].float().expand(300, 4000), accumulate=True)
    assert x.unique().tolist() == [299 + 299 * 150]
    x = clew.zeros(4000, 1).expand(4000, 300)
    x[:, many] = many.float()
    assert x.unique().tolist() == [299]
    half = clew.zeros(1, dtype=clew.float16).expand(3000)
    half.index_put_((clew.arange(3000),), clew.ones(3000, dtype=clew.float16), accumulate=True)
    assert half[0] == 3000


@pytest.mark.filterwarnings("ignore:Use of")
def test_gradients_of_what_was_written():
    def grads(write: Callable[[Any, Any], Any], value: Any) -> tuple[Any, Any]:
        base = clew.zeros(3, 1, requires_grad=True)
        value = value.clone().requires_grad_()
        y = (base * 1).expand(3, 4)
        write(y, value)
        (y * clew.tensor([[1.0], [10.0], [100.0]])).sum().backward()
        return base.grad.flatten().tolist(), value.grad.tolist()

    one = clew.tensor(2.0)
    assert grads(lambda y, v: y.masked_fill_(MASK, v), one) == ([0, 40, 400], 4)
    assert grads(lambda y, v: y.index_fill_(0, IDX, v), one) == ([4, 0, 0], 440)
    assert grads(lambda y, v: y.__setitem__(IDX, v), one) == ([4, 0, 0], 440)
    four = clew.arange(4.0)
    assert grads(lambda y, v: y.__setitem__(IDX, v), four) == ([4, 0, 0], [0, 0, 0, 440])
    added = grads(lambda y, v: y.index_put_((IDX,), v, accumulate=True), four)
    assert added == ([4, 40, 400], [440, 440, 440, 440])
    # Of a tensor that repeats its elements and is no view, they would be counted several times.
    alone = clew.zeros(3, 1).expand(3, 4).detach()
    alone.masked_fill_(MASK, one.requires_grad_())
    with pytest.raises(RuntimeError, match=REFUSED):
        alone.sum().backward()


def test_filling_with_a_tensor_that_wants_a_gradient_is_refused():
    value = clew.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match=REFUSED):
        clew.zeros(3, 1).expand(3, 4).fill_(value)
    x = clew.zeros(3, 1).expand(3, 4)
    with clew.no_grad():
        x.fill_(value)
    assert x.tolist() == [[2.0] * 4] * 3
