"""Pictures of graphs that the engine recorded: the models of the documentation, and odd ones."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from browser import BINARY, Browser

import clew
from clew._insight.graph.collapse import Picture

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import graph_pictures as models

# Operations of one line cannot be told apart where Python keeps no columns.
needs_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns: Python 3.11")


@pytest.fixture(scope="module", params=["transformer", "tree", "loop"])
def graph(request):
    clew.manual_seed(0)
    loss, model = getattr(models, request.param)()
    return request.param, clew.graph(loss, model=model)


def children(cluster):
    return {c.label: c.cluster for c in cluster.merged.children if c.cluster is not None}


def ops(cluster, nodes):
    return sorted(nodes[c.nodes[0]].op for c in cluster.merged.children if c.kind == "op")


def test_sums_are_those_of_the_graph(graph):
    _, g = graph
    totals = Picture(g).top.totals
    assert totals.nodes == len(g.nodes)
    assert totals.saved == g.activation_bytes
    assert totals.flops == g.flops
    assert totals.parameters == sum(leaf_size(node) for node in g.leaves)


def leaf_size(node):
    return clew.empty(node.outputs[0][0], device="meta").numel()


def test_transformer():
    loss, model = models.transformer()
    picture = Picture(clew.graph(loss, model=model))
    assert set(children(picture.top)) == {"GPT", "CrossEntropyLoss"}
    gpt = children(picture.top)["GPT"]
    found = children(gpt)
    assert set(found) == {"embed", "blocks.*", "norm", "head"}
    blocks = found["blocks.*"]
    assert (blocks.copies, blocks.type, blocks.fold) == (12, "Block", True)
    inner = children(blocks)
    assert {name: c.type for name, c in inner.items()} == {
        "ln1": "LayerNorm",
        "attn": "Attention",
        "ln2": "LayerNorm",
        "mlp": "Sequential",
    }
    # The two sums of a block stand on two lines; those of the 12 blocks are the same two.
    assert ops(blocks, picture.program.nodes) == ["add", "add"]
    assert not any(edge.back for edge in blocks.merged.edges)
    size = sum(p.numel() for p in model.parameters())
    assert gpt.totals.parameters == size


@needs_columns
def test_tree_is_its_function_once():
    loss, model = models.tree()
    picture = Picture(clew.graph(loss, model=model))
    net = children(picture.top)["TreeLSTM"]
    assert set(children(net)) == {"words", "gates"}
    nodes = picture.program.nodes
    assert ops(net, nodes) == sorted(
        ["chunk", "chunk", "cat", *["sigmoid"] * 4, *["tanh"] * 2, *["mul"] * 4, *["add"] * 2]
    )
    assert any(edge.back for edge in net.merged.edges)


@needs_columns
def test_loop_is_its_body_once():
    loss, _ = models.loop()
    graph = clew.graph(loss)
    content = Picture(graph).top.merged
    counts = [c.totals.nodes for c in content.children if c.kind == "op"]
    # x @ wx, h @ wh, two sums, tanh, square, mean, and the sum of losses.
    assert counts == [500] * 8
    assert len(content.children) <= 12


@needs_columns
def test_two_sums_in_one_expression_are_two_boxes():
    a, b, c = (clew.ones(2, requires_grad=True) for _ in range(3))
    content = Picture(clew.graph(a + b + c)).top.merged
    assert [c.totals.nodes for c in content.children if c.kind == "op"] == [1, 1]
    assert not content.loops


class Double(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def odd():
    """In-place writes into views, a custom function, several results of several dtypes."""
    x = clew.randn(4, 4, requires_grad=True)
    y = Double.apply(x)
    y = y * 1
    y[0] = y[1] + 1
    y[:, 1].add_(x[:, 0])
    values, _ = clew.sort(y.double(), dim=0)
    return y.sum(), values.max(), values.unbind(0)


@pytest.mark.parametrize("after_backward", [False, True])
def test_odd_graphs_are_drawn(tmp_path, after_backward):
    results = odd()
    if after_backward:
        results[0].backward()
    graph = clew.graph(results)
    for ending in ("svg", "html", "dot", "json"):
        graph.save(tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 500
    root = ET.parse(tmp_path / "g.svg").getroot()
    words = {"".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")}
    assert any("Double" in word for word in words)
    assert "<svg" in graph._repr_html_()


@pytest.mark.skipif(BINARY is None, reason="there is no Chromium")
def test_pages_of_real_models_in_a_browser(graph, tmp_path):
    from test_page import problems_of_layout

    name, g = graph
    g.save(tmp_path / "g.html")
    browser = Browser()
    try:
        browser.open(tmp_path / "g.html")
        assert problems_of_layout(browser) == [], name
        browser.run("document.getElementById('open-all').click()")
        assert problems_of_layout(browser) == [], name
        assert browser.problems() == []
    finally:
        browser.close()
