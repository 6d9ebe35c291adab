"""Tensors that are given another storage: their versions go on, those of the storage's do not."""

from __future__ import annotations

import numpy as np

import clew
from clew import nn


def test_set_writes_nothing():
    w = clew.ones(3, requires_grad=True)
    k = w.exp()  # its gradient needs k
    for view in (clew.empty(0).set_(k.detach()), clew.empty(0)):
        view.set_(k.detach().untyped_storage(), 0, (3,), (1,))
        assert view._version > 0
    assert k._version == 0
    k.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.full(3, np.e), rtol=1e-6)


def test_what_is_written_through_the_other_tensor_is_seen():
    w = clew.ones(3, requires_grad=True)
    k = w.exp()
    clew.empty(0).set_(k.detach()).zero_()
    with np.testing.assert_raises_regex(RuntimeError, "modified by an inplace operation"):
        k.sum().backward()


def test_a_parameter_that_is_given_other_data_before_backward():
    scale = nn.Parameter(clew.full((3,), 2.0))
    with clew.no_grad():
        scale.mul_(1)  # its storage was written, that of the new data was not
    before = scale._version
    x = clew.ones(3, requires_grad=True)
    y = (x * scale).sum()
    scale.data = scale.data * 5
    assert scale._version == before
    y.backward()  # with the data that is there now
    assert x.grad.tolist() == [10.0] * 3

    y = (x * scale).sum()
    with clew.no_grad():
        scale.add_(1)
    with np.testing.assert_raises_regex(RuntimeError, "is at version 2; expected version 1"):
        y.backward()
