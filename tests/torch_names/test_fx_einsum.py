"""einsum in traced graphs: operands are arguments of their own, however they were given."""

import numpy as np

import clew
from clew import fx


def test_operands_given_as_a_list():
    graph = fx.symbolic_trace(lambda x, y: clew.einsum("ij,jk->ik", (x, y)))
    (node,) = (n for n in graph.graph.nodes if n.op == "call_function")
    assert node.args[0] == "ij,jk->ik"
    assert [type(a).__name__ for a in node.args[1:]] == ["Node", "Node"]
    x, y = clew.randn(2, 3), clew.randn(3, 4)
    np.testing.assert_allclose(graph(x, y), x.numpy() @ y.numpy(), rtol=1e-5)


def test_operands_in_a_list_are_recorded_singly():
    for of_list in (
        lambda x, y: clew.einsum("ij,jk->ik", (x, y)),
        lambda x, y: clew.einsum("ij,jk->ik", [x, y]),
    ):
        traced = fx.symbolic_trace(of_list)
        (step,) = [n for n in traced.graph.nodes if n.op == "call_function"]
        assert step.target is clew.einsum and len(step.args) == 3
        x, y = clew.randn(2, 3), clew.randn(3, 4)
        assert clew.allclose(traced(x, y), x @ y)
