"""Writes into what gathered calls read, with deferral around or inside, and in other threads."""

from __future__ import annotations

import gc
import threading
from contextlib import AbstractContextManager
from typing import Any

import pytest

import clew
from clew import nn

pytest.importorskip("greenlet")


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("write", ["copy_", "setitem", "add_", "fill_"])
def test_a_write_into_what_a_gathered_call_reads(batch_first: bool, write: str) -> None:
    regions: list[AbstractContextManager[Any]] = [clew.deferred(least=0), clew.autobatch()]
    first, second = regions[::-1] if batch_first else regions
    x = clew.zeros(3)
    with first, second:
        z = x.cos()
        if write == "copy_":
            x.copy_(clew.ones(3))
        elif write == "setitem":
            x[:] = 1
        elif write == "add_":
            x.add_(1)
        else:
            x.fill_(1)
        y = x.exp()
    assert z.tolist() == [1, 1, 1]
    assert x.numpy().tolist() == [1, 1, 1]
    assert clew.allclose(y, clew.ones(3).exp())


def test_a_copy_of_what_waits_in_a_compiled_function() -> None:
    big, x = clew.ones(100_000), clew.zeros(3)

    def f() -> clew.Tensor:
        total = big.sum()
        with clew.autobatch():
            z = x.cos()
            x.copy_(total)
        return z

    assert clew.compile(f)().tolist() == [1, 1, 1]
    assert x.tolist() == [100_000] * 3


def test_an_overlapping_copy_of_a_gathered_result_raises() -> None:
    with clew.autobatch():
        x = clew.arange(6.0) * 1
        with pytest.raises(RuntimeError, match="single memory location"):
            x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_weight_gets_data_of_another_dtype_while_a_call_waits() -> None:
    m, x = nn.Linear(3, 3), clew.randn(2, 3)
    want = m(x)
    with clew.autobatch():
        got = m(x)
        m.double()
    assert got.dtype == clew.float32
    assert clew.allclose(got, want)


@pytest.mark.parametrize("region", ["autobatch", "deferred"])
def test_a_write_that_waits_and_another_threads_reader(region: str) -> None:
    x = clew.zeros(3)
    gathered, written = threading.Event(), threading.Event()
    got: list[list[float]] = []

    def read() -> None:
        with clew.autobatch() if region == "autobatch" else clew.deferred(least=0):
            z = x.cos()
            gathered.set()
            written.wait(10)
        got.append(z.tolist())

    reader = threading.Thread(target=read)
    reader.start()
    assert gathered.wait(10)
    with clew.deferred(least=0):
        x.add_(1)
        x.mul_(2)
    written.set()
    reader.join()
    assert got == [[1, 1, 1]]
    assert x.tolist() == [2, 2, 2]


def test_memory_that_ends_while_results_are_delivered() -> None:
    x = clew.rand(130, 1)
    gc.collect()
    base = clew.memory_stats()["live_bytes"]
    with clew.autobatch():
        y = x * x
        with pytest.raises(clew.OutOfMemoryError), clew.memory_budget(base + 530):
            y.detach()[0].item()
    with pytest.raises(clew.OutOfMemoryError):
        y.detach().double()
    assert clew.allclose(x * x, x**2)


def test_a_gathered_result_as_another_class_shares_its_memory() -> None:
    class Named(clew.Tensor):
        pass

    with clew.autobatch():
        y = clew.ones(4) * 2
        named = y.as_subclass(Named)
        y.add_(1)
        named[0] = 7
    assert named.tolist() == y.tolist() == [7, 3, 3, 3]


def test_data_set_to_a_gathered_view() -> None:
    with clew.autobatch():
        y = clew.arange(6.0).view(2, 3) * 2
        turned, row, other = clew.ones(2, 3), clew.zeros(3), clew.zeros(3)
        turned.data = y.t()
        row.data = y[0]
        other.set_(y[1])
        row.add_(1)
        y.mul_(10)
    assert turned.tolist() == [[10, 60], [30, 80], [50, 100]]
    assert row.tolist() == [10, 30, 50]
    assert other.tolist() == [60, 80, 100]


def test_arrays_over_gathered_views_share_their_memory() -> None:
    with clew.autobatch():
        b = clew.arange(8.0) + 1
        b[1:7].numpy().fill(7)
        c = clew.arange(8.0) + 1
        c.view(2, 4).detach().numpy()[1] = 5
        clew.from_dlpack(c[2:4]).fill_(9)
    assert b.tolist() == [1, 7, 7, 7, 7, 7, 7, 8]
    assert c.tolist() == [1, 2, 9, 9, 5, 5, 5, 5]


def test_a_copy_of_a_gathered_result_without_elements() -> None:
    x = clew.ones(3, 8, requires_grad=True)
    with clew.autobatch():
        a = x * 2
        c = clew.zeros(3, 8)
        c[:0] = a[:0]
        c[0:].copy_(a)
        y = c * 1
    y.sum().backward()
    assert x.grad.unique().tolist() == [2]
    empty = clew.zeros(0, 8, requires_grad=True)
    with clew.autobatch():
        a = empty * 2
        c = clew.zeros_like(a)
        c.copy_(a)
        y = c * 2
    y.sum().backward()
    assert empty.grad.shape == (0, 8)


def test_index_put_of_gathered_values_without_elements() -> None:
    x = clew.zeros(0, 8, requires_grad=True)
    with clew.autobatch():
        a = x * 2
        c = clew.zeros(3, 8)
        c[clew.empty(0, dtype=clew.int64)] = a
        y = c * 2
    y.sum().backward()
    assert x.grad.shape == (0, 8)


def test_a_parameter_of_a_gathered_result_shares_its_memory() -> None:
    with clew.autobatch():
        x = clew.ones(2, 3) * 2
        p = nn.Parameter(x.detach())
        with clew.no_grad():
            p.fill_(6)
        y = x + 1
    assert x.unique().tolist() == [6] and y.unique().tolist() == [7]
