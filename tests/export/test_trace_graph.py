"""The graph of one run, as tools read it that count operations."""

from __future__ import annotations

from typing import Any

import pytest

import clew
import clew.nn.functional as F
from clew import nn
from clew._torch import _C as torch_core
from clew.jit import _get_trace_graph

LSTM = nn.LSTM(4, 2)


def calls(f: Any, *args: Any, **kwargs: Any) -> list[tuple[str, list[int]]]:
    """Of each operation its name, and the sizes of its first result."""
    graph, _ = _get_trace_graph(f, args, kwargs)
    return [
        (n.kind().removeprefix("aten::"), next(iter(n.outputs())).type().sizes())
        for n in graph.nodes()
        if not n.kind().startswith("prim::")
    ]


def test_a_network() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(36, 5),
    ).eval()  # fmt: skip
    x = clew.randn(2, 3, 8, 8)
    graph, out = _get_trace_graph(net, (x,))
    assert clew.equal(out, net(x))
    assert calls(net, x) == [
        ("_convolution", [2, 4, 6, 6]), ("batch_norm", [2, 4, 6, 6]), ("relu", [2, 4, 6, 6]),
        ("max_pool2d", [2, 4, 3, 3]), ("flatten", [2, 36]), ("linear", [2, 5]),
    ]  # fmt: skip
    sizes = [v.type().sizes() for v in graph.inputs()]
    assert sizes[:3] == [[2, 3, 8, 8], [4, 3, 3, 3], [4]]
    assert len(sizes) == 1 + 6 + 3
    assert [v.type().sizes() for v in graph.outputs()] == [[2, 5]]
    assert "aten::linear" in str(graph)


def test_arguments_in_the_order_of_the_operations() -> None:
    graph, _ = _get_trace_graph(nn.Conv2d(4, 6, 3, stride=2, groups=2), clew.randn(1, 4, 9, 9))
    (conv,) = (n for n in graph.nodes() if n.kind() == "aten::_convolution")
    given = list(conv.inputs())
    assert len(given) == 13
    assert [v.isCompleteTensor() for v in given[:4]] == [True, True, True, False]
    stride, transposed, groups = given[3], given[6], given[8]
    assert stride.node().kind() == "prim::ListConstruct"
    assert [v.toIValue() for v in stride.node().inputs()] == [2, 2]
    assert (transposed.toIValue(), groups.toIValue()) == (False, 2)

    graph, _ = _get_trace_graph(nn.BatchNorm1d(3).eval(), clew.randn(2, 3))
    (norm,) = (n for n in graph.nodes() if n.kind() == "aten::batch_norm")
    assert list(norm.inputs())[5].toIValue() is False  # training

    graph, _ = _get_trace_graph(lambda a: clew.einsum("ij,jk->ik", a, a), clew.ones(2, 2))
    (product,) = (n for n in graph.nodes() if n.kind() == "aten::einsum")
    equation, operands, _ = product.inputs()
    assert equation.toIValue() == "ij,jk->ik"
    assert [v.type().sizes() for v in operands.node().inputs()] == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("f", "names"),
    [
        (lambda x: x + 1, ["add"]),
        (lambda x: 2 - x * x, ["mul", "rsub"]),
        (lambda x: x @ x.t(), ["t", "matmul"]),
        (lambda x: x[0], ["select"]),
        (lambda x: x[:, 1:], ["slice"]),
        (lambda x: x[None], ["unsqueeze"]),
        (lambda x: x[clew.tensor([0, 1])], ["tensor", "index"]),
        (lambda x: x.topk(2)[0], ["topk"]),
        (lambda x: x.max(0)[0], ["max"]),
        (lambda x: x.clone().add_(1), ["clone", "add_"]),
        (lambda x: F.cross_entropy(x, x), ["cross_entropy_loss"]),
        (lambda x: F.interpolate(x[None], scale_factor=2), ["unsqueeze", "upsample_nearest1d"]),
        (lambda x: F.max_pool1d(x, 2), ["max_pool1d"]),
        (lambda x: LSTM(x)[0], ["lstm"]),
        (lambda x: x.split(2, 1)[1], ["split"]),
        (lambda x: x.sum().item() and x.exp(), ["sum", "exp"]),
    ],
)
def test_names(f: Any, names: list[str]) -> None:
    assert [name for name, _ in calls(f, clew.rand(3, 4) + 0.1)] == names


def test_scopes() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: clew.Tensor) -> clew.Tensor:
            return self.inner(x).relu()

    net = Net()
    for name, module in net.named_modules():
        module.register_forward_pre_hook(
            lambda *_, name=name: torch_core._get_tracing_state().push_scope(name)
        )
        module.register_forward_hook(lambda *_: torch_core._get_tracing_state().pop_scope())
    graph, _ = _get_trace_graph(net, (clew.ones(1, 2),))
    assert [(n.kind(), n.scopeName()) for n in graph.nodes()] == [
        ("aten::linear", "/inner"),
        ("aten::relu", ""),
    ]
    assert torch_core._get_tracing_state() is None


def test_types_and_options() -> None:
    graph, _, given = _get_trace_graph(
        lambda x, k: x.double() * k, (clew.ones(2, 3),), {"k": 2}, return_inputs=True
    )
    (x,) = graph.inputs()
    assert (x.type().kind(), x.type().scalarType()) == ("TensorType", "Float")
    assert (x.type().dim(), x.type().strides()) == (2, [3, 1])
    assert x.node() is None and x.toIValue() is None
    kinds = [n.kind() for n in graph.nodes() if n.kind() != "prim::Constant"]
    assert kinds == ["aten::to", "aten::mul"]
    assert next(iter(graph.outputs())).type().scalarType() == "Double"
    assert given[0].shape == (2, 3)
    with pytest.raises(NotImplementedError, match="_force_outplace"):
        _get_trace_graph(lambda x: x, clew.ones(1), _force_outplace=True)


def test_an_error_ends_the_recording() -> None:
    with pytest.raises(RuntimeError, match="matmul"):
        _get_trace_graph(lambda x: x @ x, clew.ones(2, 3))
    assert torch_core._get_tracing_state() is None
