"""What clew.graph reads from the core: nodes, edges, saved tensors, of ordinary and odd graphs."""

from __future__ import annotations

import gc
import math
import os
import sys
import time
import weakref

import numpy as np
import pytest

import clew
from clew import _C, nn


def ops(g):
    return [node.op for node in g if node.op != "leaf"]


def test_nodes_stand_in_order_of_creation_leaves_first():
    a = clew.ones(2, 3, requires_grad=True)
    b = clew.ones(3, requires_grad=True, dtype=clew.float64)
    late = clew.ones(2, 1, requires_grad=True)
    g = clew.graph(((a * b).exp() + late).sum())
    assert [(n.index, n.name, n.op) for n in g] == [
        (0, "AccumulateGrad", "leaf"),
        (1, "AccumulateGrad", "leaf"),
        (2, "AccumulateGrad", "leaf"),
        (3, "MulBackward0", "mul"),
        (4, "ExpBackward0", "exp"),
        (5, "AddBackward0", "add"),
        (6, "SumBackward0", "sum"),
    ]
    assert [n.inputs for n in g] == [
        [],
        [],
        [],
        [(0, 0), (1, 0)],
        [(3, 0)],
        [(4, 0), (2, 0)],
        [(5, 0)],
    ]
    assert [n.outputs for n in g][:4] == [
        [((2, 3), "float32")],
        [((3,), "float64")],
        [((2, 1), "float32")],
        [((2, 3), "float64")],
    ]
    sequences = [n.sequence for n in g]
    assert sequences[:3] == [0, 0, 0]
    assert sequences[3:] == sorted(set(sequences[3:]))
    assert sequences[-1] > 0 and g.roots == [(6, 0)]


def test_the_order_is_that_of_creation_not_of_the_walk():
    x = clew.ones(2, requires_grad=True)
    early, middle, late = x.exp(), x.sin(), x.cos()
    g = clew.graph(late * middle + early)
    assert ops(g) == ["exp", "sin", "cos", "mul", "add"]


def test_inputs_without_gradient_are_none():
    x = clew.ones(3, requires_grad=True)
    g = clew.graph(clew.ones(3) * x)
    assert g[1].inputs == [None, (0, 0)]


def test_saved_tensors_have_the_names_of_the_signature():
    x = clew.ones(2, 3, requires_grad=True)
    w = clew.ones(4, 3, requires_grad=True)
    g = clew.graph((nn.functional.linear(x, w).exp() * clew.ones(4)).sum())
    kept = {node.op: [(s.role, s.shape, s.dtype, s.nbytes) for s in node.saved] for node in g}
    assert kept["linear"] == [("input", (2, 3), "float32", 24), ("weight", (4, 3), "float32", 48)]
    assert kept["exp"] == [("result", (2, 4), "float32", 32)]
    assert kept["mul"] == [("other", (4,), "float32", 16)]
    assert kept["sum"] == kept["leaf"] == []


def test_only_what_a_wanted_gradient_needs_is_there():
    x = clew.ones(2, 3)
    w = clew.ones(4, 3, requires_grad=True)
    g = clew.graph(nn.functional.linear(x, w))
    assert [s.role for s in g[1].saved] == ["input"]


def test_a_view_holds_the_bytes_of_its_whole_storage():
    big = clew.ones(100, 10)
    x = clew.ones(10, requires_grad=True)
    g = clew.graph((big[3] * x).sum())
    (saved,) = g.find(op="mul")[0].saved
    assert (saved.shape, saved.nbytes) == ((10,), 4000)


def test_a_storage_counts_once_however_often_it_is_kept():
    x = clew.ones(5, requires_grad=True)
    y = x.exp()  # keeps its result
    g = clew.graph((y * y).sum())  # keeps it twice more
    storages = [s.storage for _, s in g.saved]
    assert len(storages) == 3 and len(set(storages)) == 1
    assert g.saved_bytes == g.activation_bytes == 20


def test_leaves_memory_is_told_apart():
    x = clew.ones(5, requires_grad=True)
    g = clew.graph((x * x).sum())
    assert (g.saved_bytes, g.activation_bytes) == (20, 0)


def test_packed_tensors_say_so():
    x = clew.ones(5, requires_grad=True)
    with clew.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), clew.from_numpy):
        y = x.exp()
    g = clew.graph(y.exp())
    first, second = g.find(op="exp")
    assert [(s.role, s.nbytes) for s in first.saved] == [("result (packed by a hook)", 0)]
    assert [(s.role, s.nbytes) for s in second.saved] == [("result", 20)]
    assert g.saved_bytes == 20


def test_writes_into_views_are_copy_slices_of_the_op():
    x = clew.zeros(4, 4, requires_grad=True)
    y = x * 1
    y[0].mul_(clew.ones(4, requires_grad=True))
    g = clew.graph(y.sum())
    (node,) = g.find(name="CopySlices")
    assert node.op == "mul"
    assert node.outputs == [((4, 4), "float32")]
    assert node.flops == 4  # only the row is computed
    assert {s.role for s in node.saved} == {"input", "other"}
    assert [g[e[0]].op for e in node.inputs] == ["mul", "leaf"]


def test_writes_in_place_continue_the_history():
    x = clew.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1).sigmoid_()
    assert ops(clew.graph(y)) == ["exp", "add", "sigmoid"]


def test_custom_functions():
    class Twice(clew.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, ga, gb):
            return ga * 2, gb * 3

    x = clew.ones(3, requires_grad=True)
    y = clew.ones(2, 2, requires_grad=True)
    a, b = Twice.apply(x, y)
    g = clew.graph(a.sum(), b.sum())
    (node,) = g.find(name="Twice*")
    assert (node.name, node.op, node.flops) == ("TwiceBackward", "TwiceBackward", None)
    assert [o[0] for o in node.outputs] == [(3,), (2, 2)]
    assert [(s.role, s.shape) for s in node.saved] == [
        ("saved_tensors[0]", (3,)),
        ("saved_tensors[1]", (2, 2)),
    ]
    assert sorted(g[root].inputs[0] for root, _ in g.roots) == [(node.index, 0), (node.index, 1)]


def test_several_outputs():
    x = clew.arange(6.0, requires_grad=True)
    parts = x.reshape(2, 3).unbind(0)
    g = clew.graph(parts[1] * 2)
    (unbind,) = g.find(op="unbind")
    assert [o[0] for o in unbind.outputs] == [(3,), (3,)]
    assert g[-1].inputs[0] == (unbind.index, 1)
    values = x.reshape(2, 3).max(1).values
    (node,) = clew.graph(values).find(op="max*")
    assert [dtype for _, dtype in node.outputs] == ["float32", "int64"]


def test_lists_of_tensors():
    xs = [clew.ones(i + 1, requires_grad=True) for i in range(3)]
    g = clew.graph(clew.cat(xs))
    assert g[-1].inputs == [(0, 0), (1, 0), (2, 0)]
    assert g[-1].outputs == [((6,), "float32")]


def test_a_shared_weight_is_one_leaf():
    w = clew.eye(3).requires_grad_()
    g = clew.graph(((w @ w) @ w).sum())
    assert len(g.leaves) == 1
    assert [edge.target for edge in g.edges if edge.source == 0] == [1, 1, 2]
    assert [(e.source, e.output, e.target, e.input) for e in g.edges][:3] == [
        (0, 0, 1, 0),
        (0, 0, 1, 1),
        (1, 0, 2, 0),
    ]


def test_a_leaf_is_a_graph_of_one_node():
    g = clew.graph(clew.ones(2, requires_grad=True))
    assert [n.op for n in g] == ["leaf"] and g.roots == [(0, 0)]
    assert g.edges == [] and g.flops == 0
    assert "0 operations" in str(g)


def test_graphs_of_gradients():
    x = clew.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()  # the line
    (grad,) = clew.autograd.grad(y, x, create_graph=True)
    g = clew.graph(grad.sum())
    assert len(g.leaves) == 1 and "pow" in ops(g)
    lines = {n.location.line for n in g.operations if n.op != "sum"}
    assert y.grad_fn.location.line in lines  # a gradient's node has the line of what it is of
    (second,) = clew.autograd.grad(grad.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_after_backward():
    x = clew.ones(3, requires_grad=True)
    y = x.exp().sum()
    before = clew.graph(y)
    assert not before.released and not before.has_run()
    y.backward()
    after = clew.graph(y)
    assert after.released and after.saved_bytes == 0
    assert before.has_run()  # looks at the living graph
    assert [n.op for n in after] == [n.op for n in before]


def test_under_vmap():
    w = clew.ones(3, 2, requires_grad=True)
    y = clew.vmap(lambda row: (row @ w).exp().sum())(clew.ones(5, 3))
    g = clew.graph(y.sum())
    assert "exp" in ops(g)
    (exp,) = g.find(op="exp")
    assert exp.outputs == [((5, 2), "float32")]  # all samples at once
    assert [(s.shape, s.nbytes) for s in exp.saved] == [((5, 2), 40)]


def test_under_autocast():
    w = clew.ones(4, 4, requires_grad=True)
    with clew.autocast("cpu", dtype=clew.bfloat16):
        y = clew.ones(2, 4) @ w
    g = clew.graph(y.float().sum())
    (product,) = g.find(op="m*m*", shape=(2, 4), dtype="bfloat16")
    assert {s.dtype for s in product.saved} == {"bfloat16"}


def test_checkpoints_keep_little():
    layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))
    x = clew.ones(16, 8, requires_grad=True)
    from clew.utils.checkpoint import checkpoint

    plain = clew.graph(layers(x).sum())
    for reentrant in (True, False):
        kept = clew.graph(checkpoint(layers, x, use_reentrant=reentrant).sum())
        assert kept.activation_bytes < plain.activation_bytes


def test_meta_tensors():
    w = clew.ones(4, 4, requires_grad=True, device="meta")
    g = clew.graph((clew.ones(2, 4, device="meta") @ w).sum())
    assert g.flops == 2 * 2 * 4 * 4 + 8


def test_several_results_and_nests():
    x = clew.ones(2, requires_grad=True)
    out = {"loss": x.exp(), "more": [(x * 2, clew.ones(2)), None, 3]}
    g = clew.graph(out)
    assert ops(g) == ["exp", "mul"]
    assert [node.op for node in g.outputs] == ["exp", "mul"]  # those with a history


def test_nothing_recorded_says_why():
    w = nn.Linear(2, 2)
    with clew.no_grad():
        y = w(clew.ones(1, 2))  # cut
    with pytest.raises(RuntimeError, match=r"graph: nothing was recorded.*\(1, 2\).*\n.*no_grad"):
        clew.graph(y)
    with pytest.raises(TypeError, match="graph: expected Tensors.*got int, str"):
        clew.graph(3, "loss")
    with pytest.raises(TypeError, match="got nothing"):
        clew.graph()


def test_a_million_nodes():
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y * 1.0
    start = time.process_time()
    columns = _C._export_graph((y,))
    assert time.process_time() - start < 6
    assert len(columns["op"]) == 1_000_001
    assert columns["op"].count("mul") == 1_000_000
    assert len(columns["places"]) == 1  # one line, one object
    assert len(set(map(id, columns["name"]))) == 2


def test_a_wide_and_a_deep_graph():
    x = clew.ones(1, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y + x
    g = clew.graph(y)
    assert len(g) == 50_001 and len(g.consumers[0]) == 50_001
    assert len(g.summary()) < 3000


def test_the_graph_keeps_nothing_alive():
    gc.collect()
    gc.disable()
    try:
        layer = nn.Linear(300, 300)
        middle = layer(clew.ones(300, 300))
        loss = middle.exp().sum()
        g = clew.graph(loss)
        fn, tensor, weight = map(weakref.ref, (loss.grad_fn, middle, layer.weight))
        before = clew._C._memory_stats()["live_bytes"]
        del loss, middle
        assert fn() is None and tensor() is None
        freed = before - clew._C._memory_stats()["live_bytes"]
        assert freed >= 2 * 300 * 300 * 4
        del layer
        assert weight() is None
        assert len(g) == 5 and g.summary() and g.why("weight").reached
        gone = weakref.ref(g)
        del g
        assert gone() is None  # and it is part of no cycle
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it keeps freed memory")
def test_asking_again_and_again_takes_no_memory():
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    net = nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    loss = net(clew.ones(1, 1, 6, 6)).logsumexp(1).sum()
    for _ in range(200):
        _C._export_graph((loss,))
    gc.collect()
    before = resident()
    for _ in range(3000):
        _C._export_graph((loss,))
    gc.collect()
    assert resident() - before < 200_000


def test_a_tensor_that_holds_its_own_graph_is_collected():
    x = clew.ones(3, requires_grad=True)
    y = x.exp()
    y.graph = clew.graph(y)
    there = weakref.ref(y)
    del y
    gc.collect()
    assert there() is None


def test_numbers_of_flops_by_hand():
    n, k, m = 6, 5, 7
    model = nn.Sequential(nn.Linear(k, m), nn.ReLU(), nn.Linear(m, 1))
    g = clew.graph(model(clew.ones(n, k)).mean())
    assert g.flops == 2 * n * k * m + n * m + 2 * n * m + n
    image = clew.ones(2, 3, 8, 8)
    g = clew.graph(nn.functional.max_pool2d(nn.Conv2d(3, 4, 3)(image), 2))
    assert g.flops == 2 * (2 * 4 * 6 * 6) * 27 + 2 * 4 * 3 * 3 * 4  # the window is an attribute


def test_inputs_without_gradient_still_count():
    # Its shape is known only by what is kept.
    x, w = clew.ones(2, 5, 6), clew.ones(6, 3, requires_grad=True)
    g = clew.graph(x @ w)
    assert g.flops == 2 * 2 * 5 * 6 * 3


def test_what_is_unknown_is_none_and_said():
    class Same(clew.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad

    g = clew.graph(Same.apply(clew.ones(3, requires_grad=True)) * 2)
    assert [n.flops for n in g] == [0, None, 3]
    assert g.flops == 3
    assert "without 1 operation of which no formula is known" in str(g)


def test_threads_and_hooks_do_not_matter():
    x = clew.ones(3, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    g = clew.graph(y.sum())
    assert ops(g) == ["exp", "sum"]
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * math.e)
