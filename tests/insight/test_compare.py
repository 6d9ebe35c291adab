"""clew.debug.compare: the first value that differs between two runs, with its line."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import nn


def line_of(mark: str) -> int:
    with open(__file__, encoding="utf-8") as f:
        found = [i for i, line in enumerate(f, 1) if line.rstrip().endswith("# " + mark)]
    assert len(found) == 1, found
    return found[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.slope = 0.0

    def forward(self, x):
        h = self.first(x)
        h = nn.functional.leaky_relu(h, self.slope)  # the odd one
        return self.second(h)


def made():
    clew.manual_seed(3)
    return Net()


def test_equal_runs_have_no_difference():
    net, x = made(), clew.randn(5, 4)
    assert clew.debug.compare(lambda: net(x).sum(), lambda: net(x).sum()) is None


def test_the_first_line_that_differs():
    a, b, x = made(), made(), clew.randn(5, 4)
    b.slope = 0.2
    found = clew.debug.compare(lambda: a(x), lambda: b(x))
    assert found is not None and "leaky_relu" in found.operation
    assert f"test_compare.py:{line_of('the odd one')}" in found.place
    assert found.a == 0.0 and found.b < 0
    with clew.no_grad():
        b.slope = 0.0
        b.second.weight[1, 3] += 0.5
    found = clew.debug.compare(lambda: a(x), lambda: b(x))
    assert found.module == "second" and "linear" in found.operation
    expected = (b(x) - a(x)).abs()
    assert f"{(expected > 0).sum()} of 10 elements differ" in found.evidence


def test_rounding_is_no_difference():
    net, x = made(), clew.randn(5, 4)
    near = x * (1 + 1e-7)
    assert clew.debug.compare(lambda: net(x), lambda: net(near)) is None
    assert clew.debug.compare(lambda: net(x), lambda: net(near), rtol=0.0) is not None


def test_another_way_through_the_program():
    def step(longer):
        y = clew.ones(3) * 2
        if longer:
            y = y.exp()  # only there
        return y

    found = clew.debug.compare(lambda: step(False), lambda: step(True))
    assert found.operation == "exp" and f":{line_of('only there')}" in found.place
    assert "another way" in found.evidence


def test_values_that_another_program_dumped(tmp_path):
    net, x = made(), clew.randn(5, 4)
    h = net.first(x).detach().numpy()
    dumped = {"first": h, "second": net(x).detach().numpy()}
    assert clew.debug.compare(lambda: net(x), dumped) is None
    dumped["second"] = dumped["second"] + np.float32([0, 1])
    path = tmp_path / "theirs.npz"
    np.savez(path, **dumped)
    found = clew.debug.compare(lambda: net(x), path)
    assert found.module == "second" and "5 of 10 elements" in found.evidence
    with pytest.raises(ValueError, match="no module in common"):
        clew.debug.compare(lambda: net(x), {"other": h})
    with pytest.raises(TypeError, match="compare: expected"):
        clew.debug.compare(3, dumped)
    with pytest.raises(ValueError):  # pickles are code
        np.savez(path, first=np.array([object()], dtype=object))
        clew.debug.compare(lambda: net(x), path)


def test_shapes_and_nan():
    found = clew.debug.compare({"a": np.ones(3)}, {"a": np.ones(4)})
    assert "(3,)" in found.evidence and "(4,)" in found.evidence
    nan = np.array([1.0, np.nan])
    assert clew.debug.compare({"a": nan}, {"a": nan.copy()}) is None
    assert clew.debug.compare({"a": nan}, {"a": np.ones(2)}) is not None
