"""A Tree-LSTM: recursion over trees of any shape, batches of graphs of differing structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import clew
import clew.nn.functional as F
from clew import Tensor, nn


@dataclass(frozen=True)
class Leaf:
    word: int


@dataclass(frozen=True)
class Inner:
    children: tuple[Tree, ...]


Tree: TypeAlias = Leaf | Inner


class State(NamedTuple):
    h: Tensor
    c: Tensor


class ChildSum(nn.Module):
    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.words = nn.Embedding(words, size)
        self.gates = nn.Linear(2 * size, 3 * size)
        self.forget = nn.Linear(2 * size, size)
        self.start = nn.Parameter(clew.zeros(size))

    def forward(self, tree: Tree) -> State:
        if isinstance(tree, Leaf):
            x: Tensor = self.words(clew.tensor(tree.word))
            return self.join(x, [])
        below = [self.forward(child) for child in tree.children]
        return self.join(self.start, below)

    def join(self, x: Tensor, below: Sequence[State]) -> State:
        h = sum((s.h for s in below), clew.zeros(self.size))
        i, o, u = self.gates(clew.cat((x, h))).chunk(3)
        c = i.sigmoid() * u.tanh()
        for s in below:
            c = c + clew.sigmoid(self.forget(clew.cat((x, s.h)))) * s.c
        return State(o.sigmoid() * c.tanh(), c)


class Classifier(nn.Module):
    def __init__(self, words: int, size: int, classes: int) -> None:
        super().__init__()
        self.encoder = ChildSum(words, size)
        self.head = nn.Linear(size, classes)

    def forward(self, trees: Sequence[Tree]) -> Tensor:
        rows = [self.encoder(t).h for t in trees]
        scores: Tensor = self.head(clew.stack(rows))
        return scores


def leaves(tree: Tree) -> Iterator[int]:
    match tree:
        case Leaf(word):
            yield word
        case Inner(children):
            for child in children:
                yield from leaves(child)


def accuracy(scores: Tensor, labels: Tensor) -> float:
    return (scores.argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    clew.manual_seed(0)
    trees: list[Tree] = [
        Inner((Leaf(0), Inner((Leaf(1), Leaf(2), Leaf(3))))),
        Leaf(4),
        Inner((Leaf(4), Leaf(4))),
        Inner((Inner((Leaf(1),)), Leaf(0))),
    ]
    labels = clew.tensor([sum(leaves(t)) % 2 for t in trees])
    model = Classifier(5, 8, 2)
    optimizer = clew.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        scores = model(trees)
        loss = F.cross_entropy(scores, labels, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss = F.cross_entropy(model(trees), labels)
    graph = clew.graph(loss)
    print(accuracy(model(trees), labels), str(graph).count("\n") > 3, loss.grad_fn is not None)
