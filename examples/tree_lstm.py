"""A recursive Tree-LSTM tells which package of Python's standard library a function comes from.

Every sample is the syntax tree of one function, so every sample makes its own graph: the model is
a Python recursion over
the tree. Child-sum Tree-LSTM of Tai, Socher and Manning (2015), section 3.1.
"""

from __future__ import annotations

import ast
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import clew
import clew.nn.functional as F
from clew import nn, optim

PACKAGES = (
    "asyncio",
    "email",
    "multiprocessing",
    "unittest",
    "xml",
    "http",
    "importlib",
    "logging",
)
NAME_BUCKETS = 512  # identifiers are known by a hash of their spelling


class Node(NamedTuple):
    """A node of a syntax tree: kind, bucket of its identifier (0 for none), children."""

    kind: int
    name: int
    children: list[Node]


KINDS = {
    c.__name__: i
    for i, c in enumerate(
        sorted(
            (c for c in vars(ast).values() if isinstance(c, type) and issubclass(c, ast.AST)),
            key=lambda c: c.__name__,
        )
    )
}


def identifier(tree: ast.AST) -> int:
    text = getattr(tree, "id", None) or getattr(tree, "attr", None) or getattr(tree, "arg", None)
    return 1 + zlib.crc32(text.encode()) % (NAME_BUCKETS - 1) if isinstance(text, str) else 0


def convert(tree: ast.AST) -> Node:
    skip = (ast.expr_context,)
    children = [convert(c) for c in ast.iter_child_nodes(tree) if not isinstance(c, skip)]
    return Node(KINDS[type(tree).__name__], identifier(tree), children)


def size(node: Node) -> int:
    return 1 + sum(size(c) for c in node.children)


def preorder(node: Node) -> Iterator[tuple[int, int]]:
    """Kind and name of every node, parents before children."""
    yield node.kind, node.name
    for child in node.children:
        yield from preorder(child)


def load(
    per_package: int = 170, smallest: int = 25, largest: int = 110, seed: int = 0
) -> list[tuple[Node, int]]:
    """Functions of the standard library as (tree, package) pairs, in random order."""
    import sysconfig

    library = Path(sysconfig.get_paths()["stdlib"])
    rng = random.Random(seed)
    data: list[tuple[Node, int]] = []
    for label, package in enumerate(PACKAGES):
        found = []
        for file in sorted((library / package).rglob("*.py")):
            if "test" in file.relative_to(library / package).parts:
                continue
            for tree in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace"))):
                if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    node = convert(tree)
                    if smallest <= size(node) <= largest:
                        found.append((node, label))
        rng.shuffle(found)
        data += found[:per_package]
    rng.shuffle(data)
    return data


class TreeLSTM(nn.Module):
    """Child-sum Tree-LSTM over syntax trees, a recursion without any batching.

    Args:
        features: size of the hidden state.
        classes: number of packages.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.kind = nn.Embedding(len(KINDS), 3 * features)
        self.name = nn.Embedding(NAME_BUCKETS, 3 * features)
        self.forget_in = nn.Embedding(len(KINDS), features)
        self.hidden = nn.Linear(features, 3 * features, bias=False)
        self.forget = nn.Linear(features, features)
        self.out = nn.Linear(features, classes)
        for table in (self.kind, self.name, self.forget_in):
            nn.init.normal_(table.weight, std=0.3)

    def node(
        self, node: Node, rows: Iterator[tuple[clew.Tensor, clew.Tensor]]
    ) -> tuple[clew.Tensor, clew.Tensor]:
        """The hidden and cell state, each (1, features), of the subtree at ``node``; takes its
        input rows from ``rows``.
        """
        x, bias = next(rows)
        if not node.children:
            i, o, u = x.chunk(3, 1)
            c = i.sigmoid() * u.tanh()
            return o.sigmoid() * c.tanh(), c
        states = [self.node(child, rows) for child in node.children]
        total = states[0][0]
        for h, _ in states[1:]:
            total = total + h
        i, o, u = (x + self.hidden(total)).chunk(3, 1)
        c = i.sigmoid() * u.tanh()
        for h, memory in states:
            c = c + (self.forget(h) + bias).sigmoid() * memory
        return o.sigmoid() * c.tanh(), c

    def forward(self, tree: Node) -> clew.Tensor:
        """Scores of the packages, (1, classes)."""
        kinds, names = (clew.tensor(ids) for ids in zip(*preorder(tree)))
        x = self.kind(kinds) + self.name(names)
        rows = zip(x.split(1), self.forget_in(kinds).split(1))
        return self.out(self.node(tree, rows)[0])


def accuracy(model: TreeLSTM, data: list[tuple[Node, int]]) -> float:
    """The share of functions whose package the model names rightly."""
    with clew.no_grad():
        return sum(model(tree).argmax().item() == label for tree, label in data) / len(data)


def train(
    epochs: int = 8,
    features: int = 64,
    batch: int = 16,
    seed: int = 0,
    on_step: Callable[..., Any] = lambda *a: None,
) -> dict[str, Any]:
    """Trains the model; on_step(epoch, step, steps, loss) is called after every step.

    Returns:
        model, losses and held-out accuracies by epoch, the majority class's share, the scores of
        one tiny tree.
    """
    clew.manual_seed(seed)
    data = load(seed=seed)
    cut = len(data) * 4 // 5
    training, held_out = data[:cut], data[cut:]
    model = TreeLSTM(features, len(PACKAGES))
    optimizer = optim.Adam(model.parameters(), lr=4e-3, weight_decay=1e-5)
    rng = random.Random(seed)
    losses, accuracies = [], []
    for epoch in range(epochs):
        rng.shuffle(training)
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1 - epoch / epochs)
        total, steps = 0.0, (len(training) + batch - 1) // batch
        for step in range(steps):
            part = training[step * batch : (step + 1) * batch]
            scores = clew.cat([model(tree) for tree, _ in part])
            loss = F.cross_entropy(scores, clew.tensor([label for _, label in part]))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
            on_step(epoch, step + 1, steps, loss.item())
        losses.append(total / steps)
        accuracies.append(accuracy(model, held_out))
    counts = Counter(label for _, label in held_out)
    tiny = convert(ast.parse("x + 1", mode="eval").body)  # small enough to draw
    return {
        "model": model,
        "losses": losses,
        "accuracies": accuracies,
        "training": len(training),
        "held_out": len(held_out),
        "majority": counts.most_common(1)[0][1] / len(held_out),
        "nodes": sum(size(t) for t, _ in training),
        "root": model(tiny),
    }


if __name__ == "__main__":
    result = train(
        on_step=lambda e, s, n, loss: s == n and print(f"epoch {e + 1}: loss {loss:.3f}")
    )
    print(
        f"held-out accuracy {100 * result['accuracies'][-1]:.1f}% (majority class "
        f"{100 * result['majority']:.1f}%)"
    )
