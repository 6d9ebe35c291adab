"""Tensor.history(): the last operations, latest first, or why there are none."""

from __future__ import annotations

from functools import partial

import pytest

import clew
from clew import nn
from marked_lines import line_of_mark

line_of = partial(line_of_mark, __file__)


def test_latest_first():
    x = clew.ones(2, 3, requires_grad=True)
    y = (x.exp() * x.sin()).sum(1)  # the line
    past = y.history()
    assert [n.op for n in past] == ["sum", "mul", "sin", "exp"]
    assert past.more == 0 and past.reason == ""
    assert past[0].outputs == [((2,), "float32")]
    assert {n.location.line for n in past} == {line_of("the line")}
    text = repr(past)
    assert text.split("\n")[0].split() == ["op", "shape", "line"]
    assert "test_history.py" in text and "(2, 3)" in text and "more" not in text


def test_depth():
    y = clew.ones(1, requires_grad=True)
    for _ in range(1500):
        y = y * 2
    past = y.history(3)
    assert len(past) == 3 and past.more == 1497
    assert repr(past).split("\n")[-1] == "... 1,497 more"
    assert len(y.history(0)) == 0 and y.history(0).more == 1500
    assert repr(y.history(0)) == "... 1,500 more"
    assert len(y.history(depth=10**9)) == 1500
    for wrong in (-1, 2.0, None, True):
        with pytest.raises(ValueError, match="history: depth must be a number of operations"):
            y.history(wrong)


def test_modules_and_width():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    text = repr(model(clew.ones(2, 3)).history())
    rows = text.split("\n")
    assert rows[1].startswith("tanh") and "1 Tanh" in rows[1]
    assert rows[2].startswith("linear") and "0 Linear" in rows[2]
    assert all(len(row) <= 100 for row in rows)


def test_of_leaves():
    model = nn.Linear(3, 2)
    assert "it is a leaf that requires grad, of shape (4,)" in repr(
        clew.ones(4, requires_grad=True).history()
    )
    model(clew.ones(1, 3))
    past = model.weight.history()
    assert past == [] and "parameter weight of Linear" in past.reason


def test_without_history():
    x = clew.ones(3, requires_grad=True)
    y = x.exp().detach()  # detached
    past = y.history()
    assert past == [] and past.more == 0
    assert "detach()" in past.reason and f"test_history.py:{line_of('detached')}" in past.reason
    with clew.no_grad():
        z = x * 2  # unrecorded
    assert f"test_history.py:{line_of('unrecorded')}" in repr(z.history())
    assert "nothing that it was computed from requires grad" in repr(clew.ones(2).history())


def test_in_place_and_views():
    x = clew.ones(4, requires_grad=True)
    y = x * 1
    y[1:3].exp_()
    past = y.history()
    assert (past[0].name, past[0].op) == ("CopySlices", "exp")
    assert [n.op for n in past][-1] == "mul"


def test_plain_data():
    import weakref

    x = clew.ones(3, requires_grad=True)
    y = x.exp()
    fn = weakref.ref(y.grad_fn)
    past = y.history()
    del y
    assert fn() is None and past[0].op == "exp"
