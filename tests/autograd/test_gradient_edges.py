"""Gradient edges in place of tensors in autograd.grad and backward."""

from __future__ import annotations

import weakref

import pytest

import clew
from clew.autograd.graph import GradientEdge, get_gradient_edge


def test_an_edge_is_differentiated_with_respect_to() -> None:
    a = clew.tensor([1.0, 2.0], requires_grad=True)
    b = a * 3
    y = (b * b).sum()
    (of_a,) = clew.autograd.grad(y, get_gradient_edge(a), retain_graph=True)
    of_b, again = clew.autograd.grad((y,), [get_gradient_edge(b), a])
    assert of_a.tolist() == again.tolist() == [18, 36]
    assert of_b.tolist() == [6, 12]


def test_an_edge_is_where_gradients_begin() -> None:
    a = clew.tensor([1.0, 2.0], requires_grad=True)
    b = a * 3
    edge, held = get_gradient_edge(b), weakref.ref(b)
    del b
    assert held() is None
    (found,) = clew.autograd.grad(edge, a, grad_outputs=clew.tensor([1.0, 10.0]), retain_graph=True)
    assert found.tolist() == [3, 30]
    clew.autograd.backward(edge, clew.ones(2))
    assert a.grad.tolist() == [3, 3]
    clew.autograd.backward(get_gradient_edge((a * 5).sum()))
    assert a.grad.tolist() == [8, 8]
    clew.autograd.backward((a * 2).sum(), inputs=[get_gradient_edge(a)])
    assert a.grad.tolist() == [10, 10]


def test_higher_derivatives_and_several_outputs() -> None:
    x = clew.tensor([1.0, 2.0, 3.0], requires_grad=True)
    first, second = (x**3).split([1, 2])
    assert get_gradient_edge(second).output_nr == 1
    (g,) = clew.autograd.grad(
        get_gradient_edge(second), x, clew.ones(2), create_graph=True, retain_graph=True
    )
    assert g.tolist() == [0, 12, 27]
    assert clew.autograd.grad(g.sum(), x)[0].tolist() == [0, 12, 18]
    assert first.tolist() == [1]


def test_what_an_edge_is() -> None:
    assert GradientEdge._fields == ("node", "output_nr", "ownership_token")
    x = clew.ones(2, 3, requires_grad=True)
    edge = get_gradient_edge(x * 2)
    meta = edge.node._input_metadata[0]
    assert (meta.shape, meta.dtype, meta.device) == ((2, 3), clew.float32, clew.device("cpu"))
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        clew.autograd.backward(edge)
    with pytest.raises(RuntimeError, match="shape"):
        clew.autograd.backward(edge, clew.ones(3))
    with pytest.raises(RuntimeError, match="has no output 1"):
        clew.autograd.grad(x.sum(), GradientEdge(edge.node, 1))
