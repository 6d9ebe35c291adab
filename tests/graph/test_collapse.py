"""What a picture consists of: modules, folded structure, merged lines, sums, edges."""

from __future__ import annotations

import time

import fakes
import pytest

from clew._insight.graph.collapse import EACH_LIMIT, Picture
from clew._insight.graph.data import Saved
from clew._insight.graph.scopes import MANY


def child(content, title, nodes=None):
    """The one child with that label, or of that operation."""

    def name(inner):
        if inner.cluster is not None:
            return inner.label
        return inner.kind if nodes is None else nodes[inner.nodes[0]].op

    found = [i for i, inner in enumerate(content.children) if name(inner) == title]
    assert len(found) == 1, (title, [name(inner) for inner in content.children])
    return found[0], content.children[found[0]]


def inside(picture, *labels):
    cluster = picture.top
    for label in labels:
        cluster = child(cluster.merged, label)[1].cluster
    return cluster


def ops(content, nodes):
    return sorted(nodes[c.nodes[0]].op for c in content.children if c.kind == "op")


def all_contents(picture):
    seen, stack = set(), [picture.top]
    while stack:
        cluster = stack.pop()
        if cluster.index in seen:
            continue
        seen.add(cluster.index)
        for content in (cluster.merged, cluster.each):
            if content is not None:
                yield cluster, content
                stack += [c.cluster for c in content.children if c.cluster is not None]


def test_equal_blocks_are_one_box_with_their_number_and_sums():
    graph = fakes.transformer(12)
    picture = Picture(graph)
    gpt = inside(picture, "GPT")
    labels = sorted(c.label for c in gpt.merged.children if c.cluster is not None)
    assert labels == ["blocks.*", "embed", "head", "ln_f"]
    blocks = inside(picture, "GPT", "blocks.*")
    assert (blocks.copies, blocks.fold, blocks.type) == (12, True, "Block")
    assert blocks.path == "blocks.*"
    mine = [n for n in graph.nodes if (n.module or n.label or "").startswith("blocks.")]
    assert blocks.totals.nodes == len(mine)
    assert blocks.totals.saved == sum(s.nbytes for n in mine for s in n.saved)
    assert blocks.totals.flops == sum(n.flops or 0 for n in mine)
    qkv = inside(picture, "GPT", "blocks.*", "attn", "qkv")
    assert (qkv.copies, qkv.fold, qkv.each_count) == (12, False, 0)
    _, linear = child(qkv.merged, "linear", graph.nodes)
    assert linear.totals.nodes == 12


def test_members_of_a_fold_stand_one_by_one_in_a_chain():
    picture = Picture(fakes.transformer(12))
    blocks = inside(picture, "GPT", "blocks.*")
    labels = [c.label for c in blocks.each.children]
    assert labels == [f"blocks.{i}" for i in range(12)]
    pairs = {(e.a, e.b) for e in blocks.each.edges}
    assert pairs == {(i, i + 1) for i in range(11)} | {(-1, 0), (11, -1)}
    # Folded together, that chain is a loop of the group, and within it flow out and in.
    index, _ = child(inside(picture, "GPT").merged, "blocks.*")
    assert list(inside(picture, "GPT").merged.loops) == [index]
    assert not any(e.back for e in blocks.merged.edges)


def test_edges_between_children_are_those_of_the_program():
    graph = fakes.transformer(3)
    picture = Picture(graph)
    content = inside(picture, "GPT", "blocks.*").merged
    names = {}
    for i, inner in enumerate(content.children):
        names[i] = inner.label or f"add{graph.nodes[inner.nodes[0]].location.line}"
    names[-1] = "outside"
    found = {(names[e.a], names[e.b]): e.count for e in content.edges}
    # Each block takes its input twice, sums once in the middle and gives its sum on: to two users
    # in the next block, to one after the last.
    assert found == {
        ("outside", "ln1"): 3,
        ("outside", "add60"): 3,
        ("ln1", "attn"): 3,
        ("attn", "add60"): 3,
        ("add60", "ln2"): 3,
        ("add60", "add61"): 3,
        ("ln2", "mlp"): 3,
        ("mlp", "add61"): 3,
        ("add61", "outside"): 5,
    }


def test_unrolled_loop_is_its_body_with_an_edge_back():
    graph = fakes.loop(500)
    content = Picture(graph).top.merged
    assert len(content.children) == 13
    tanh, box = child(content, "tanh", graph.nodes)
    assert box.totals.nodes == 500
    back = [e for e in content.edges if e.back]
    assert [(e.a, e.count) for e in back] == [(tanh, 499)]
    assert graph.nodes[content.children[back[0].b].nodes[0]].op == "matmul"


@pytest.mark.parametrize("steps", [3, 500])
def test_a_loop_without_lines_is_merged_by_structure(steps):
    graph = fakes.loop(steps, places=False)
    content = Picture(graph).top.merged
    assert len(content.children) <= 16
    assert sum(c.totals.nodes for c in content.children if c.kind != "result") == len(graph.nodes)


def test_recursion_is_the_function_once():
    graph = fakes.tree(2000)
    picture = Picture(graph)
    net = inside(picture, "TreeNet")
    assert ops(net.merged, graph.nodes) == ["cat", "tanh"]
    assert {c.label for c in net.merged.children if c.cluster} == {"words", "mix"}
    assert len(net.merged.children) == 4
    back = [e for e in net.merged.edges if e.back]
    tanh, _ = child(net.merged, "tanh", graph.nodes)
    cat, _ = child(net.merged, "cat", graph.nodes)
    assert [(e.a, e.b) for e in back] == [(tanh, cat)]


def test_blocks_of_different_structure_are_different_boxes():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    for i in range(7):
        with r.module("", "Net"), r.module("blocks", ""), r.module(str(i), "Block"):
            x = r.op("relu" if i == 3 else "tanh", [x], (4,), 7 if i == 3 else 9, 0)
    picture = Picture(r.graph(x))
    blocks = inside(picture, "model", "blocks")
    assert [(c.label, c.cluster.copies) for c in blocks.merged.children] == [
        ("0–2", 3),
        ("3", 1),
        ("4–6", 3),
    ]


def sequential(kinds):
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    with r.module("", "Net"):
        for i, kind in enumerate(kinds):
            with r.module(str(i), kind):
                x = r.op(kind.lower(), [x], (4,), 9, 0)
    return Picture(r.graph(x))


def test_a_repeated_pattern_of_modules_is_folded():
    net = inside(sequential(["Linear", "ReLU"] * 40 + ["Linear"]), "model")
    found = [c for c in net.merged.children if c.cluster is not None]
    assert [(c.label, c.cluster.copies) for c in found] == [("0–79", 40), ("80", 1)]
    pattern = found[0].cluster
    assert [c.cluster.type for c in pattern.merged.children] == ["Linear", "ReLU"]
    assert len(pattern.each.children) == 40


def test_a_short_stack_is_left_as_it_is():
    net = inside(sequential(["Linear", "ReLU", "Linear", "ReLU", "Linear"]), "model")
    assert [c.label for c in net.merged.children if c.cluster is not None] == [
        "0",
        "1",
        "2",
        "3",
        "4",
    ]


def test_many_named_modules_of_equal_structure_are_one_box():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    with r.module("", "Mixture"):
        parts = []
        for i in range(300):
            with r.module(f"expert{i}", "Expert"):
                parts.append(r.op("tanh", [x], (4,), 5, 0))
        x = r.op("stack", parts, (300, 4), 8, 0)
    content = inside(Picture(r.graph(x)), "Mixture").merged
    assert sorted(c.totals.nodes for c in content.children) == [1, 1, 300]


def test_a_long_program_is_grouped_by_function_and_line():
    graph = fakes.straight(5000)
    picture = Picture(graph)
    labels = [c.label for c in picture.top.merged.children if c.cluster is not None]
    assert labels == ["part0()", "part1()", "part2()", "part3()"]
    for cluster, content in all_contents(picture):
        if content is cluster.merged:
            assert len(content.children) <= MANY + 2


def test_a_helper_called_in_several_places_is_shown_node_by_node():
    r = fakes.Recorder()
    h = r.leaf("x", (4,))
    for _ in range(3):  # one line makes them all, but the program is short
        h = r.op("matmul", [h, r.leaf(None, (4, 4))], (4,), 3, 4)
        h = r.op("relu", [h], (4,), 4, 4)
    picture = Picture(r.graph(h))
    assert picture.top.starts_each
    assert len(picture.top.each.children) == 1 + 3 * 3 + 1
    assert not any(e.back for e in picture.top.each.edges)
    assert not Picture(fakes.loop(500)).top.starts_each


def test_nothing_is_drawn_one_by_one_beyond_the_limit():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    for _ in range(EACH_LIMIT - 1):
        x = r.op("mul", [x], (4,), 5, 8)
    assert len(Picture(r.graph(x)).top.each.children) == EACH_LIMIT + 1  # and the result
    x = r.op("mul", [x], (4,), 5, 8)
    assert Picture(r.graph(x)).top.each is None


def test_a_storage_kept_by_two_counts_once():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    a = r.op("exp", [x], (4,), 2, 4, keeps=0)
    b = r.op("sin", [a], (4,), 3, 4, keeps=0)
    for index in (a[0], b[0]):
        r.nodes[index].saved.append(Saved("result", (4,), "float32", 16, 77))
    picture = Picture(r.graph(b))
    assert picture.top.totals.saved == 16
    assert [c.totals.saved for c in picture.top.merged.children if c.kind == "op"] == [16, 16]


def test_parameters_lie_in_their_modules():
    graph = fakes.transformer(2)
    picture = Picture(graph)
    gpt = inside(picture, "GPT")
    leaves = [graph.nodes[c.nodes[0]].label for c in gpt.merged.children if c.kind == "leaf"]
    assert leaves == ["position"]
    assert not [c for c in picture.top.merged.children if c.kind == "leaf"]
    elements = 50257 * 768
    assert inside(picture, "GPT", "embed").totals.parameters == elements


def test_nameless_parameters_lie_where_they_are_used():
    graph = fakes.transformer(2)
    for node in graph.nodes:
        node.label = None
    picture = Picture(graph)
    assert not [c for c in picture.top.merged.children if c.kind == "leaf"]
    qkv = inside(picture, "GPT", "blocks.*", "attn", "qkv")
    assert sorted(c.kind for c in qkv.merged.children) == ["leaf", "op"]


def test_a_loss_module_is_not_the_model():
    r = fakes.Recorder()
    x = r.leaf("0.weight", (4,))
    with r.module("", "Net"), r.module("0", "Linear"):
        x = r.op("linear", [x], (4,), 3, 4)
    with r.module("", "MSELoss"):
        x = r.op("mse_loss", [x], (), 9, 4)
    picture = Picture(r.graph(x))
    labels = [c.label for c in picture.top.merged.children if c.cluster is not None]
    assert sorted(labels) == ["0", "MSELoss"]


def test_calls_around_a_node_tell_models_apart():
    r = fakes.Recorder()
    x = r.leaf("0.weight", (4,))
    for kind, line in (("Coder", 3), ("Judge", 5)):
        with r.module("", kind), r.module("0", "Sequential"), r.module("1", "Linear"):
            x = r.op("linear", [x], (4,), line, 4)
    with r.module("", "MSELoss"):
        x = r.op("mse_loss", [x], (), 9, 4)
    picture = Picture(r.graph(x, stacks=True))
    labels = [c.label for c in picture.top.merged.children if c.cluster is not None]
    assert sorted(labels) == ["Coder", "Judge", "MSELoss"]
    assert inside(picture, "Judge", "0").type == "Sequential"
    # The parameter lies in the model that uses it first.
    inner = inside(picture, "Coder", "0").merged.children
    assert {c.kind for c in inner} == {"cluster", "leaf"}
    assert [c.kind for c in inside(picture, "Judge", "0").merged.children] == ["cluster"]


def test_a_module_of_the_library_is_its_call():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    for column in (4, 8):
        with r.module("", "Linear"):
            x = r.op("linear", [x], (4,), 3, column)
        x = r.op("relu", [x], (4,), 3, column)
    content = Picture(r.graph(x)).top.merged
    assert sorted(c.label for c in content.children if c.cluster) == ["Linear", "Linear"]
    assert not any(e.back for e in content.edges)


def test_parameters_own_memory_is_not_kept_by_the_graph():
    r = fakes.Recorder()
    x = r.op("linear", [r.leaf("w", (4,))], (4,), 2, 4, keeps=2)
    graph = r.graph(x)
    assert Picture(graph).top.totals.saved == 32
    graph._leaf_storages = {r.nodes[x[0]].saved[1].storage}
    assert Picture(graph).top.totals.saved == 16


def test_several_results():
    r = fakes.Recorder()
    x = r.leaf("x", (4,))
    a, b = r.op("sin", [x], (4,), 1), r.op("cos", [x], (4,), 2)
    graph = r.graph(a, b)
    content = Picture(graph).top.merged
    assert [c.nodes for c in content.children if c.kind == "result"] == [[a[0]], [b[0]]]


GRAPHS = {
    "transformer": lambda: fakes.transformer(4),
    "placeless transformer": lambda: fakes.transformer(4, places=False),
    "tree": lambda: fakes.tree(300),
    "loop": lambda: fakes.loop(20),
    "placeless loop": lambda: fakes.loop(20, places=False),
    "diamond": fakes.diamond,
    "leaf": fakes.one_leaf,
    "parameters": fakes.parameters,
    "straight": lambda: fakes.straight(300),
    "pattern": lambda: sequential(["Linear", "ReLU"] * 9).graph,
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_content_accounts_for_every_node_and_edge(name):
    """Checked against the nodes themselves, whatever was merged, folded or grouped."""
    graph = GRAPHS[name]()
    picture = Picture(graph)
    for cluster, content in all_contents(picture):
        owner = {}
        for number, inner in enumerate(content.children):
            if inner.kind == "result":
                continue
            if inner.cluster is None:
                members = inner.nodes
            else:
                members = [n for box in inner.cluster.boxes for n in box.nodes]
            for index in members:
                assert index not in owner
                owner[index] = number
            assert inner.totals.nodes == len(members)
        assert set(owner) == {n for box in cluster.boxes for n in box.nodes}
        expected = {}
        one_of = {}  # of a node, the member of the cluster that it is in
        if content is cluster.merged:
            for number, scope in enumerate(cluster.instances):
                for inner in scope.walk():
                    for box in inner.boxes.values():
                        one_of |= dict.fromkeys(box.nodes, number)
        for node in graph.nodes:
            for edge in node.inputs:
                if edge is None:
                    continue
                a, b = owner.get(edge[0], -1), owner.get(node.index, -1)
                if a >= 0 and b >= 0 and one_of.get(edge[0]) != one_of.get(node.index):
                    pairs = [(a, -1), (-1, b)]
                elif a == b:
                    continue
                else:
                    pairs = [(a, b)]
                for pair in pairs:
                    expected[pair] = expected.get(pair, 0) + 1
        results = {i for i, inner in enumerate(content.children) if inner.kind == "result"}
        for index, _ in graph.roots:
            if index in owner:
                if cluster is picture.top:
                    assert any(e.a == owner[index] and e.b in results for e in content.edges)
                else:
                    pair = (owner[index], -1)
                    expected[pair] = expected.get(pair, 0) + 1
        found = {(e.a, e.b): e.count for e in content.edges if e.b not in results}
        assert found == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_layers_hold_each_child_once_and_edges_go_down(name):
    for _, content in all_contents(Picture(GRAPHS[name]())):
        items = [item for layer in content.layers for item in layer]
        assert len(items) == len(set(items))
        assert set(range(len(content.children))) <= set(items)
        rank = {item: r for r, layer in enumerate(content.layers) for item in layer}
        for edge in content.edges:
            if edge.back:
                assert not edge.via
                continue
            start = rank[edge.a] if edge.a >= 0 else -1
            end = rank[edge.b] if edge.b >= 0 else len(content.layers)
            assert [rank[point] for point in edge.via] == list(range(start + 1, end))


def test_a_hundred_thousand_nodes_take_seconds_at_most():
    graph = fakes.chain(100_000)
    begin = time.perf_counter()
    content = Picture(graph).top.merged
    assert time.perf_counter() - begin < 20
    assert [c.totals.nodes for c in content.children if c.kind == "op"] == [100_000]
    assert list(content.loops.values()) == [99_999]
