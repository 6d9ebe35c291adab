"""Calls that fail among others that wait: what came before is there, what comes after raises."""

from __future__ import annotations

import pytest

import clew
from clew._insight.explain import member


def test_an_operand_of_one_element_and_another_dtype_in_a_pass_of_one_row():
    x = clew.randn(1, 65_536)
    t = clew.randn(1, 1).double()

    def chain() -> clew.Tensor:
        return (x * 2 + 1).mean(-1, keepdim=True) * t

    threads = clew.get_num_threads()
    clew.set_num_threads(1)
    try:
        want = chain()
        with clew.deferred():
            got = chain()
    finally:
        clew.set_num_threads(threads)
    assert clew.equal(got, want)


@pytest.mark.parametrize("divide", ["floor_divide", "remainder", "fmod"])
def test_a_division_of_integers_by_zero_names_its_line(divide):
    n = clew.randint(1, 5, (300, 701))
    z = clew.ones(300, 701, dtype=clew.int64)
    z[7, 7] = 0
    total = clew.ones(300, 701, dtype=clew.int64)
    message = r"integer division or modulo by zero(.|\n)*# here"
    with pytest.raises(RuntimeError, match=message), clew.deferred():
        q = n * 2
        total.add_(q)
        r = q + 1
        s = getattr(clew, divide)(r, z)  # here
        after = s + 1
        total.mul_(3)
    assert clew.equal(q, n * 2) and clew.equal(r, n * 2 + 1)
    assert clew.equal(total, n * 2 + 1)
    for lost in (s, after):
        with pytest.raises(RuntimeError, match=message):
            lost.sum().item()


def test_the_result_of_what_failed_is_never_read():
    x = clew.randn(300, 700)
    at = clew.randint(0, 700, (300, 1))
    at[5, 0] = 900
    with pytest.raises(RuntimeError, match="out of bounds"), clew.deferred():
        y = (x * 2 + 1).gather(1, at)
        z = y * 2
    for lost in (y, z):
        with pytest.raises(RuntimeError, match="out of bounds"):
            lost.sum().item()


def test_what_a_message_asks_runs_nothing():
    net = clew.nn.Linear(300, 300)
    before = clew._C._defer(0)
    try:
        x = clew.randn(300, 300) * 2
        y = net.weight * x
        saved = net.weight.detach()
        assert member(saved) == "" and member(x) == ""
        assert clew._C._waits(net.weight) and clew._C._waits(y)
        assert clew._C._run_deferred() > 0
    finally:
        clew._C._defer(before)
    assert member(saved) == "the parameter weight of Linear"
