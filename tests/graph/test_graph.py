"""Questions to a graph: searching, names, totals by line, module and operation, the summary."""

from __future__ import annotations

import sys
from functools import partial
from math import prod

import pytest

import clew
from clew import nn
from marked_lines import line_of_mark

line_of = partial(line_of_mark, __file__)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(x).relu()  # block


class Net(nn.Module):
    def __init__(self, width: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)  # head


@pytest.fixture
def net():
    return Net()


def loss_of(net, rows=4):
    return nn.CrossEntropyLoss()(net(clew.randn(rows, 8)), clew.zeros(rows, dtype=clew.int64))


def test_it_is_a_sequence_of_nodes(net):
    g = clew.graph(loss_of(net))
    assert g[0] is g.nodes[0] and g[-1].op == "cross_entropy"
    assert [n.index for n in g] == list(range(len(g)))
    assert g[2:4] == [g[2], g[3]]
    assert len(g.leaves) == 8 and len(g.operations) == len(g) - 8
    with pytest.raises(IndexError):
        g[len(g)]


def test_parameters_are_named_by_the_model_that_was_called(net):
    g = clew.graph(loss_of(net))
    assert set(g.parameters) == {name for name, _ in net.named_parameters()}
    node = g.parameters["blocks.1.fc.weight"]
    assert node.label == "blocks.1.fc.weight" and node.outputs == [((8, 8), "float32")]
    assert g.inputs == []
    x = clew.randn(4, 8, requires_grad=True)
    g = clew.graph(net(x).sum())
    assert [n.outputs[0][0] for n in g.inputs] == [(4, 8)]


def test_names_can_be_given(net):
    w, b = clew.ones(2, requires_grad=True), clew.ones(2, requires_grad=True)
    g = clew.graph((w + b).sum(), params={"w": w})
    assert [n.label for n in g.leaves] == ["w", None]
    g = clew.graph(loss_of(net), model=net.head)
    assert set(g.parameters) == {"weight", "bias"}


def test_two_models_with_equal_names():
    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)

        def forward(self, x):
            return self.fc(x)

    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 1)

        def forward(self, x):
            return self.out(self.fc(x))

    make, judge, other = Generator(), Critic(), Critic()
    g = clew.graph(judge(make(clew.ones(1, 2))).sum() + other(clew.ones(1, 3)).sum())
    shapes = {name: node.outputs[0][0] for name, node in g.parameters.items()}
    assert shapes["fc.weight"] == (3, 3)  # of the one that knows most leaves
    assert shapes["Generator.fc.weight"] == (3, 2)
    assert shapes["Critic.fc.weight"] == (3, 3)
    assert len(g.parameters) == len(g.leaves) == 10


def test_find_by_what_it_is(net):
    g = clew.graph(loss_of(net))
    assert [n.op for n in g.find("ReLU")] == ["relu"] * 3
    assert [n.op for n in g.find("CrossEntropyLoss")] == ["cross_entropy"]
    assert len(g.find("fc.weight")) == 3
    assert len(g.find(op="lin*")) == 4
    assert len(g.find(name="*.bias")) == 4
    assert [n.module for n in g.find(module="blocks.*", op="linear")] == [
        "blocks.0.fc",
        "blocks.1.fc",
        "blocks.2.fc",
    ]
    assert {n.op for n in g.find(module="blocks.1")} == {"leaf", "linear", "relu", "add"}
    assert len(g.find(module="blocks.1", op="leaf")) == 2
    assert g.find(shape=(None, 2)) == [g[-2]]
    assert g.find(shape=(8,), op="leaf") == g.find(name="blocks.*.bias")
    assert len(g.find(dtype=clew.float32)) == len(g.find(dtype="float32")) == len(g)
    assert g.find(dtype="float64") == []
    assert repr(g.find("nothing")) == "no nodes"


def test_find_by_where_it_is(net):
    g = clew.graph(loss_of(net))
    assert {n.op for n in g.at(line_of("block"))} == {"linear", "relu", "add"}
    assert [n.op for n in g.at(f"test_graph.py:{line_of('head')}")] == ["linear"]
    assert g.at(line_of("head"), "other.py") == []
    assert g.at(line_of("head"), "graph/test_graph.py") == g.find(line=line_of("head"))
    assert g.at(line_of("head"), "raph.py") == []  # a whole name, not a part of it
    assert g.find(op="linear", line=line_of("block"), module="blocks.2*") == [
        g.find(op="linear")[2]
    ]
    with pytest.raises(ValueError, match="at: expected a line's number"):
        g.at("test_graph.py")


def test_lines(net):
    g = clew.graph(loss_of(net))
    table = g.by_line()
    row = next(r for r in table if r.name.endswith(f"test_graph.py:{line_of('block')}"))
    rows, width = 4, 8
    assert row.kind == "return x + self.fc(x).relu()  # block"
    assert (row.count, row.unknown) == (9, 0)
    assert row.flops == 3 * (2 * rows * width * width + 2 * rows * width)
    # Each linear keeps its input and each relu its result, all of one size.
    assert row.held == 3 * 2 * rows * width * 4
    assert row.outputs == 3 * 3 * rows * width * 4
    assert sum(r.held for r in table) == g.activation_bytes
    assert sum(r.count for r in table) == len(g.operations)


def test_module_rows_add_up(net):
    g = clew.graph(loss_of(net))
    table = g.by_module()
    assert [r.name for r in table] == [
        "Net",
        "blocks",
        "blocks.0",
        "blocks.0.fc",
        "blocks.1",
        "blocks.1.fc",
        "blocks.2",
        "blocks.2.fc",
        "head",
        "CrossEntropyLoss",
    ]
    for row in table:
        if row.children and row.name != "blocks.0" and not row.name.startswith("blocks."):
            for column in ("count", "flops", "held", "outputs"):
                assert getattr(row, column) == sum(getattr(c, column) for c in row.children)
    # relu and add belong to the block itself.
    assert table["blocks.0"].count == 3 and table["blocks.0.fc"].count == 1
    assert table["blocks.0"].kind == "Block" and table["blocks"].kind == ""
    assert sum(row.held for row in table.top) == g.activation_bytes
    assert g.modules["blocks.1.fc"] == "Linear" and g.modules["blocks"] is None
    with pytest.raises(KeyError, match="no row is named 'nets'"):
        table["nets"]


def test_operations_and_views():
    x = clew.ones(6, requires_grad=True)
    table = clew.graph((x.reshape(2, 3) * 2).exp().sum()).by_op()
    assert {r.name: (r.count, r.outputs) for r in table} == {
        "reshape" if "reshape" in table else "view": (1, 0),
        "mul": (1, 24),
        "exp": (1, 24),
        "sum": (1, 4),
    }


def test_what_lies_outside_of_modules(net):
    g = clew.graph(net(clew.ones(1, 8)).exp().sum())
    table = g.by_module()
    assert table[0].name == "(outside of modules)" and table[0].count == 2
    assert table["Net"].count == len(g.operations) - 2


def test_the_summary_fits_and_says_the_numbers(net):
    g = clew.graph(loss_of(net))
    text = g.summary()
    assert all(len(line) <= 100 for line in text.split("\n"))
    assert str(g) == repr(g) == text
    numbers = sum(p.numel() for p in net.parameters())
    assert f"{len(g.operations)} operations and 8 leaves, 8 of them parameters" in text
    assert str(numbers) in text.split("\n")[0]
    assert "blocks.0-2 x3" in text  # equal modules in one row
    row = next(line for line in text.split("\n") if "blocks.0-2" in line)
    assert row.split()[2] == "9" and row.endswith("Block")
    assert "cross_entropy () float32" in text


def test_summary_arguments(net):
    g = clew.graph(loss_of(net))
    shallow = g.summary(depth=1).split("\n\n")[1]
    assert "blocks" not in shallow and "Net" in shallow
    by_held = g.summary(sort="held").split("\n\n")[1].split("\n")
    assert [row.split()[0] for row in by_held[1:3]] == ["Net", "blocks"]
    short = g.by_module().text(limit=2)
    assert short.split("\n")[-1] == "... 4 more rows"
    names = [line.split()[0] for line in g.by_op().text(sort="name").split("\n")[1:]]
    assert names == sorted(names)
    with pytest.raises(ValueError, match="sort must be one of order, count, .* got 'size'"):
        g.summary(sort="size")


def test_blocks_of_other_structure_are_not_folded():
    class Uneven(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(8), Block(8), nn.Linear(8, 8), Block(8)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    text = clew.graph(Uneven()(clew.ones(2, 8)).sum()).by_module().text()
    assert "blocks.0-1 x2" in text and "blocks.*.fc x2" in text
    assert "  blocks.2 " in text and "  blocks.3 " in text


def test_a_hundred_thousand_nodes_stay_readable():
    x = clew.ones(2, requires_grad=True)
    y = x
    for _ in range(25_000):
        y = (y + 1).sin().cos().tanh()
    text = clew.graph(y).summary()
    assert len(text.split("\n")) < 20
    assert "100,000 operations" in text
    assert all(len(line) <= 100 for line in text.split("\n"))


def test_long_names_and_sources_are_cut():
    names = {}
    module = leaf = nn.Linear(2, 2)
    for i in range(12):
        outer = nn.Sequential()
        outer.add_module(f"a_rather_long_name_of_a_module_{i}", module)
        module = outer
    g = clew.graph(module(clew.ones(1, 2)).sum(), params={**names, "w": leaf.weight})
    text = g.summary(depth=None)
    assert all(len(line) <= 100 for line in text.split("\n"))
    listing = repr(g.operations)
    assert all(len(line) <= 100 for line in listing.split("\n"))


def test_without_provenance():
    from clew import _C

    before = _C._enable_provenance(False)
    try:
        g = clew.graph(nn.Linear(2, 2)(clew.ones(1, 2)).sum())
    finally:
        _C._enable_provenance(before)
    assert {n.location for n in g} == {None}
    assert [r.name for r in g.by_line()] == ["(line not known)"]
    assert "(line not known)" in g.summary() and repr(g.operations)


def test_places_are_shared_and_point_to_lines(net):
    g = clew.graph(loss_of(net))
    heads = [n for n in g if n.module == "head"]
    assert heads[0].location.line == line_of("head")
    assert heads[0].location.function.endswith("forward")
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(3):
        y = y * 2
    places = {id(n.location) for n in clew.graph(y).operations}
    assert len(places) == 1


def test_graph_is_loaded_when_asked_for():
    import subprocess

    code = "import sys, clew; assert not any('_graph' in m for m in sys.modules); clew.graph"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_total_parameters_match_the_model(net):
    g = clew.graph(loss_of(net))
    assert sum(prod(n.outputs[0][0]) for n in g.parameters.values()) == sum(
        p.numel() for p in net.parameters()
    )


def test_networkx(net):
    networkx = pytest.importorskip("networkx")
    g = clew.graph(loss_of(net))
    out = g.to_networkx()
    assert out.number_of_nodes() == len(g) and out.number_of_edges() == len(g.edges)
    assert networkx.is_directed_acyclic_graph(out)
    root = g.roots[0][0]
    assert networkx.ancestors(out, root) == set(range(len(g))) - {root}
    at = g.parameters["head.weight"].index
    assert out.nodes[at]["label"] == "head.weight" and out.nodes[at]["shape"] == (2, 8)
    (linear,) = out.successors(at)
    assert out.nodes[linear]["line"].endswith(f"test_graph.py:{line_of('head')}")
    assert out.edges[at, linear, 0] == {"output": 0, "input": 1}
    w = clew.ones(2, requires_grad=True)
    assert clew.graph(w * w).to_networkx().number_of_edges(0, 1) == 2  # both factors


def test_networkx_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ModuleNotFoundError, match=r"to_networkx: networkx is not installed.*viz"):
        clew.graph(clew.ones(1, requires_grad=True)).to_networkx()


def test_pictures_of_real_graphs(net, tmp_path):
    import json
    from xml.etree import ElementTree

    g = clew.graph(loss_of(net))
    for ending in ("svg", "html", "dot", "json"):
        g.save(tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 500
    assert ElementTree.fromstring(g.to_svg(color="flops")).tag.endswith("svg")
    nodes = json.loads(g.to_json())["nodes"]
    assert [n["op"] for n in nodes] == [n.op for n in g]
    assert "head" in g.to_dot() and "<svg" in g._repr_html_()
    with pytest.raises(ValueError, match=r"must end in one of '.svg'"):
        g.save(tmp_path / "g.png")
