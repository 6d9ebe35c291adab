"""Programs for one sample, in Python: as they are, and with their operations in batches.

PyTorch runs them as they are in both columns, for it has no such mode. B batch, D width.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

from bench.suites import models
from bench.suites.compile import alternated

UNIT = "ms"
BETTER = "lower"
BATCHED, EAGER, BY_HAND = ", batched", ", eager", ", batched by hand"

# Of the samples, a function of one of them that gives a loss, and the parameters.
Program = tuple[list[Any], Callable[[Any], Any], list[Any]]


def trees(t: Any, width: int) -> Program:
    """A Tree-LSTM on some 1,300 nodes of 32 trees."""
    rng = random.Random(0)
    model = models.tree_lstm(t, width)
    samples = [models.random_tree(rng, rng.randrange(12, 70)) for _ in range(32)]
    label = t.tensor([3])
    return (
        samples,
        lambda tree: t.nn.functional.cross_entropy(model(tree), label),
        list(model.parameters()),
    )


def tensor_network(t: Any) -> Program:
    """A recursive neural tensor network (Socher et al. 2013) of width 30 on binary trees."""
    rng = random.Random(0)
    D = 30
    form = (t.randn(D, 2 * D, 2 * D) * 0.01).requires_grad_()
    leaf = t.randn(D, requires_grad=True)
    linear = t.nn.Linear(2 * D, D)

    def grow(n: int) -> Any:
        if n == 1:
            return None
        left = rng.randint(1, n - 1)
        return grow(left), grow(n - left)

    def value(tree: Any) -> Any:
        if tree is None:
            return leaf * 1
        x = t.cat([value(tree[0]), value(tree[1])])
        return ((form @ x) @ x + linear(x)).tanh()

    samples = [grow(rng.randint(5, 40)) for _ in range(32)]
    return samples, lambda s: value(s).square().mean(), [form, leaf, *linear.parameters()]


def molecules(t: Any) -> Program:
    """Three rounds of message passing on each of 64 graphs of 9 to 30 atoms."""
    rng = random.Random(0)
    nn = t.nn
    embed, message, update, head = (
        nn.Linear(16, 64), nn.Linear(64, 64), nn.GRUCell(64, 64), nn.Linear(64, 1),
    )  # fmt: skip

    def loss(sample: Any) -> Any:
        atoms, bonds = sample
        h = embed(atoms).relu()
        for _ in range(3):
            h = update(bonds @ message(h), h)
        return head(h.sum(0)).square().mean()

    sizes = [rng.randint(9, 30) for _ in range(64)]
    samples = [(t.randn(n, 16), (t.rand(n, n) < 0.2).float()) for n in sizes]
    parts = (embed, message, update, head)
    return samples, loss, [p for part in parts for p in part.parameters()]


def sequences(t: Any) -> Program:
    """64 sequences of 5 to 200 steps through an LSTMCell in a Python loop."""
    rng = random.Random(0)
    cell = t.nn.LSTMCell(64, 128)

    def loss(sequence: Any) -> Any:
        h = c = t.zeros(1, 128)
        for x in sequence:
            h, c = cell(x[None], (h, c))
        return h.square().mean()

    samples = [t.randn(rng.randint(5, 200), 64) for _ in range(64)]
    return samples, loss, list(cell.parameters())


def pondering(t: Any) -> Program:
    """Adaptive computation time (Graves 2016): `.item()` decides when a sample is done."""
    cell, halt = t.nn.GRUCell(32, 64), t.nn.Linear(64, 1)

    def loss(x: Any) -> Any:
        h, total, steps = t.zeros(1, 64), 0.0, 0
        while total < 1 and steps < 20:
            h = cell(x[None], h)
            total += halt(h).sigmoid().item() * 0.3
            steps += 1
        return h.square().mean()

    return list(t.randn(64, 32)), loss, list(cell.parameters())


def experts(t: Any) -> Program:
    """A mixture of eight experts, chosen in Python for each of 256 tokens."""
    nn = t.nn
    each = [nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(8)]
    tokens = t.randn(256, 64)
    choice = nn.Linear(64, 8)(tokens).argmax(-1).tolist()
    samples = list(zip(tokens, choice, strict=True))
    return (
        samples,
        lambda s: each[s[1]](s[0]).square().mean(),
        [p for e in each for p in e.parameters()],
    )


def one_sample(t: Any) -> Program:
    """Nothing to batch."""
    model = t.nn.Sequential(t.nn.Linear(64, 128), t.nn.Tanh(), t.nn.Linear(128, 10))
    return [t.randn(64)], lambda x: model(x).square().mean(), list(model.parameters())


def different_shapes(t: Any) -> Program:
    """64 samples, no two of one shape."""
    linear = t.nn.Linear(32, 32)
    samples = [t.randn(8 + i, 32) for i in range(64)]
    return samples, lambda x: linear(x).tanh().mean(), list(linear.parameters())


def searches(t: Any) -> Program:
    """64 agents that search a tree each and ask a policy of width 256 at every node."""
    nn = t.nn
    D = 256
    policy = nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, 2 * D), nn.ReLU())
    head = nn.Linear(2 * D, 9)
    moves = t.randn(8, D)

    class Node:
        def __init__(self, state: Any) -> None:
            self.state, self.visits, self.worth = state, 0, 0.0
            self.chances: list[float] = []
            self.children: dict[int, Node] = {}

        def promise(self, move: int) -> float:
            child = self.children.get(move)
            visits, worth = (child.visits, child.worth) if child else (0, 0.0)
            return worth / max(visits, 1) + 1.5 * self.chances[move] * self.visits**0.5 / (
                1 + visits
            )

    def evaluate(node: Node) -> float:
        out = head(policy(node.state))
        node.chances = out[:8].softmax(0).tolist()
        return out[8].tanh().item()

    def search(state: Any) -> int:
        root = Node(state)
        for _ in range(16):
            path = [root]
            while path[-1].chances:
                node = path[-1]
                move = max(range(8), key=node.promise)
                if move not in node.children:
                    node.children[move] = Node(node.state + moves[move])
                path.append(node.children[move])
            worth = evaluate(path[-1])
            for node in path:
                node.visits += 1
                node.worth += worth
        return max(root.children, key=lambda move: root.children[move].visits)

    return list(t.randn(64, D)), search, []


WORKLOADS: dict[str, Callable[[Any], Program]] = {
    "Tree-LSTM, width 64": lambda t: trees(t, 64),
    "Tree-LSTM, width 150": lambda t: trees(t, 150),
    "Tree-LSTM, width 300": lambda t: trees(t, 300),
    "recursive neural tensor network": tensor_network,
    "64 molecules": molecules,
    "64 sequences, LSTMCell": sequences,
    "adaptive computation time": pondering,
    "experts chosen per token": experts,
    "64 tree searches, a policy call a node": searches,
    "one sample": one_sample,
    "64 different shapes": different_shapes,
}
PARTS = len(WORKLOADS)
# Programs that ask for values in the middle, which need autobatch.map.
ASKING = ("adaptive computation time", "64 tree searches, a policy call a node")
# What a batched step may take of the eager one's time.
WITHIN = {
    name + BATCHED: (name + EAGER, most)
    for name, most in {
        "Tree-LSTM, width 64": 0.5,
        "Tree-LSTM, width 150": 0.35,
        "Tree-LSTM, width 300": 0.28,
        "recursive neural tensor network": 0.4,
        "64 molecules": 0.4,
        "64 sequences, LSTMCell": 0.3,
        "adaptive computation time": 0.5,
        "experts chosen per token": 0.3,
        "64 tree searches, a policy call a node": 0.4,
        "one sample": 1.05,
        "64 different shapes": 1.05,
    }.items()
}


def run(t: Any, part: int) -> dict[str, float]:
    """A training step of one program."""
    name = list(WORKLOADS)[part]
    t.manual_seed(0)
    samples, loss, parameters = WORKLOADS[name](t)
    region = getattr(t, "autobatch", None)

    def step(batched: bool) -> None:
        for p in parameters:
            p.grad = None
        if not parameters:
            with t.no_grad():
                region.map(loss, samples) if batched and region else [loss(s) for s in samples]
            return
        if batched and region and name in ASKING:
            losses = region.map(loss, samples)
        else:
            with region() if batched and region else contextlib.nullcontext():
                losses = [loss(s) for s in samples]
        t.stack(losses).mean().backward()

    steps = {EAGER: lambda: step(False), BATCHED: lambda: step(True)}
    if name.startswith("Tree-LSTM"):
        model = models.tree_lstm(t, int(name.split()[-1]))
        run_all = models.tree_lstm_by_height(t, model, samples)
        labels = t.full((len(samples),), 3)

        def by_hand() -> None:
            model.zero_grad()
            t.nn.functional.cross_entropy(run_all(), labels).backward()

        steps[BY_HAND] = by_hand
    times = alternated(list(steps.values()), 1.5)
    return {name + way: ms for way, ms in zip(steps, times, strict=True)}
