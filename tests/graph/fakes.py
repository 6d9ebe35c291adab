"""Graphs made by hand, as the engine would export them: no tensor is computed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod

from clew._insight.graph.data import GraphNode, Saved


@dataclass(frozen=True)
class Place:
    file: str
    line: int
    column: int | None
    function: str
    source: str


@dataclass
class FakeGraph:
    nodes: list[GraphNode]
    roots: list[tuple[int, int]]


class Recorder:
    """Records calls like a define-by-run library; values are pairs (node, output)."""

    def __init__(self, places: bool = True) -> None:
        self.nodes: list[GraphNode] = []
        self.path: list[tuple[str, str]] = []
        self.stacks: list[tuple[tuple[str, str], ...]] = []
        self.places = places
        self.storages = 0

    @contextmanager
    def module(self, name: str, kind: str):
        path = f"{self.path[-1][0]}.{name}".strip(".") if self.path else ""
        self.path.append((path, kind))
        yield
        self.path.pop()

    def leaf(self, label: str | None, shape: tuple[int, ...]) -> tuple[int, int]:
        node = GraphNode(len(self.nodes), "AccumulateGrad", "leaf", len(self.nodes))
        node.outputs = [(shape, "float32")]
        node.label = label
        self.nodes.append(node)
        return node.index, 0

    def op(self, op, inputs, shape, line=0, column=0, *, keeps=1, function="forward", flops=None):
        index = len(self.nodes)
        name = "".join(part.capitalize() for part in op.split("_")) + "Backward0"
        node = GraphNode(index, name, op, index, list(inputs), [(shape, "float32")])
        for i in range(keeps):
            self.storages += 1
            role = ("input", "other", "result")[i]
            node.saved.append(Saved(role, shape, "float32", 4 * prod(shape), self.storages))
        if self.places:
            text = f"    y = {op}(x)  # line {line}"
            node.location = Place("/somewhere/model.py", line, column, function, text)
        if self.path:
            node.module, node.module_type = self.path[-1]
        self.stacks += [()] * (index - len(self.stacks)) + [tuple(self.path)]
        node.flops = flops if flops is not None else prod(shape)
        self.nodes.append(node)
        return index, 0

    def graph(self, *roots: tuple[int, int], stacks: bool = False) -> FakeGraph:
        """The graph; with `stacks` it also knows which modules lay around each call."""
        graph = FakeGraph(self.nodes, list(roots))
        if stacks:
            graph._scopes = self.stacks
            graph._places = range(len(self.nodes))
        return graph


def transformer(layers: int = 12, width: int = 768, *, places: bool = True) -> FakeGraph:
    """A decoder with `layers` equal blocks, its loss outside of any module."""
    r = Recorder(places)
    tokens, heads = 128, 12
    wide = (8, tokens, width)
    names = ["embed.weight", "position"]
    shapes = {"embed.weight": (50257, width), "position": (tokens, width)}
    for i in range(layers):
        for name, shape in (
            ("ln1.weight", (width,)),
            ("ln1.bias", (width,)),
            ("attn.qkv.weight", (3 * width, width)),
            ("attn.proj.weight", (width, width)),
            ("ln2.weight", (width,)),
            ("ln2.bias", (width,)),
            ("mlp.0.weight", (4 * width, width)),
            ("mlp.2.weight", (width, 4 * width)),
        ):
            names.append(f"blocks.{i}.{name}")
            shapes[names[-1]] = shape
    names += ["ln_f.weight", "head.weight"]
    shapes |= {"ln_f.weight": (width,), "head.weight": (50257, width)}
    p = {name: r.leaf(name, shapes[name]) for name in names}

    def linear(x, name, kind, weight, out, line, column):
        with r.module(name, "Linear"):
            flops = 2 * 8 * tokens * shapes[weight][0] * shapes[weight][1]
            return r.op("linear", [x, p[weight]], out, line, column, keeps=2, flops=flops)

    with r.module("", "GPT"):
        with r.module("embed", "Embedding"):
            x = r.op("embedding", [p["embed.weight"]], wide, 88, 12)
        x = r.op("add", [x, p["position"]], wide, 88, 12, keeps=0)
        for i in range(layers):
            at = f"blocks.{i}"
            with r.module("blocks", ""), r.module(str(i), "Block"):
                with r.module("ln1", "LayerNorm"):
                    n = r.op(
                        "layer_norm", [x, p[f"{at}.ln1.weight"], p[f"{at}.ln1.bias"]], wide, 60, 22
                    )
                with r.module("attn", "Attention"):
                    weight = f"{at}.attn.qkv.weight"
                    qkv = linear(n, "qkv", "Linear", weight, (8, tokens, 3 * width), 35, 14)
                    part = (8, heads, tokens, width // heads)
                    split = [
                        r.op("slice", [qkv], (8, tokens, width), 35 + k, 8, keeps=0)
                        for k in range(3)
                    ]
                    q, k, v = (r.op("transpose", [s], part, 38, 20, keeps=0) for s in split)
                    out = r.op("scaled_dot_product_attention", [q, k, v], part, 40, 12, keeps=3)
                    out = r.op("reshape", [out], wide, 41, 12, keeps=0)
                    out = linear(out, "proj", "Linear", f"{at}.attn.proj.weight", wide, 42, 15)
                x = r.op("add", [x, out], wide, 60, 12, keeps=0)
                with r.module("ln2", "LayerNorm"):
                    n = r.op(
                        "layer_norm", [x, p[f"{at}.ln2.weight"], p[f"{at}.ln2.bias"]], wide, 61, 21
                    )
                with r.module("mlp", "Sequential"):
                    up = (8, tokens, 4 * width)
                    h = linear(n, "0", "Linear", f"{at}.mlp.0.weight", up, 61, 16)
                    with r.module("1", "GELU"):
                        h = r.op("gelu", [h], up, 61, 16)
                    h = linear(h, "2", "Linear", f"{at}.mlp.2.weight", wide, 61, 16)
                x = r.op("add", [x, h], wide, 61, 12, keeps=0)
        with r.module("ln_f", "LayerNorm"):
            x = r.op("layer_norm", [x, p["ln_f.weight"]], wide, 92, 16)
        logits = linear(x, "head", "Linear", "head.weight", (8, tokens, 50257), 92, 15)
    loss = r.op("cross_entropy", [logits], (), 120, 8, function="train")
    for node in r.nodes:  # a list of modules is not called itself
        if node.module_type == "":
            node.module_type = None
    return r.graph(loss)


def tree(count: int = 2000) -> FakeGraph:
    """A recursive network over a lopsided binary tree with about `count` operations."""
    r = Recorder()
    words = r.leaf("words.weight", (1000, 64))
    weight, bias = r.leaf("mix.weight", (64, 128)), r.leaf("mix.bias", (64,))

    def node(size: int):
        if size <= 1:
            with r.module("words", "Embedding"):
                return r.op("embedding", [words], (1, 64), 14, 19)
        left = node(max(1, size // 3))
        right = node(size - max(1, size // 3))
        both = r.op("cat", [left, right], (1, 128), 17, 15)
        with r.module("mix", "Linear"):
            mixed = r.op("linear", [both, weight, bias], (1, 64), 17, 24, keeps=2)
        return r.op("tanh", [mixed], (1, 64), 18, 15)

    with r.module("", "TreeNet"):
        top = node(count // 4)
    return r.graph(r.op("sum", [top], (), 40, 7, function="train"))


def loop(steps: int = 500, *, places: bool = True) -> FakeGraph:
    """A recurrent cell unrolled over many steps, written without modules."""
    r = Recorder(places)
    w, u, b = (r.leaf(None, s) for s in ((32, 64), (64, 64), (64,)))
    h = r.leaf(None, (16, 64))
    losses = []
    for _ in range(steps):
        a = r.op("matmul", [None, w], (16, 64), 10, 13, function="step")
        c = r.op("matmul", [h, u], (16, 64), 10, 21, keeps=2, function="step")
        s = r.op("add", [r.op("add", [a, c], (16, 64), 10, 13, keeps=0), b], (16, 64), 10, 30)
        h = r.op("tanh", [s], (16, 64), 11, 9, function="step")
        losses.append(r.op("mean", [h], (), 22, 18, keeps=0, function="train"))
    total = r.op("stack", losses, (steps,), 24, 12, keeps=0, function="train")
    return r.graph(r.op("sum", [total], (), 24, 12, keeps=0, function="train"))


def diamond() -> FakeGraph:
    r = Recorder()
    x = r.leaf("x", (3,))
    a = r.op("exp", [x], (3,), 2, 4)
    left, right = r.op("sin", [a], (3,), 3, 4), r.op("cos", [a], (3,), 4, 4)
    return r.graph(r.op("mul", [left, right], (3,), 5, 4, keeps=2))


def one_leaf() -> FakeGraph:
    r = Recorder()
    return r.graph(r.leaf(None, (2, 2)))


@cache
def chain(count: int = 100_000) -> FakeGraph:
    r = Recorder()
    x = r.leaf("x", (8,))
    for _ in range(count):
        x = r.op("mul", [x], (8,), 5, 8)
    return r.graph(x)


def parameters(count: int = 200) -> FakeGraph:
    """Nothing but named leaves of different ranks, summed up."""
    r = Recorder()
    leaves = [
        r.leaf(f"{'abcdefghij'[i % 10] * (i // 10 + 1)}", (2,) * (i % 3)) for i in range(count)
    ]
    return r.graph(r.op("stack", leaves, (count,), 3, 4))


def straight(count: int = 5000) -> FakeGraph:
    """A program without any repetition: each operation has a line of its own."""
    r = Recorder()
    x = r.leaf("x", (8,))
    for i in range(count):
        x = r.op("mul" if i % 2 else "sin", [x], (8,), 10 + i, 8, function=f"part{i // 1500}")
    return r.graph(x)
