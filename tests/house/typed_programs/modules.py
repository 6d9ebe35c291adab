"""Modules of several shapes: recurrent, recursive, attention; hooks; subclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clew
import clew.nn as nn
import clew.nn.functional as F
from clew import Tensor
from clew.optim import Optimizer
from clew.optim.lr_scheduler import LambdaLR
from clew.utils.data import DataLoader, IterableDataset


@dataclass
class Tree:
    value: Tensor
    children: list[Tree]


class TreeNet(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * size, size)
        self.gates = nn.ModuleDict({"in": nn.Linear(size, size), "out": nn.Linear(size, size)})
        self.extra = nn.ParameterList([nn.Parameter(clew.zeros(size))])

    def forward(self, tree: Tree) -> Tensor:
        below = clew.zeros_like(tree.value)
        for child in tree.children:
            below = below + self(child)
        both = clew.cat([tree.value, below])
        first: Tensor = self.extra[0]
        return clew.tanh(self.mix(both)) + first


class Reader(nn.Module):
    def __init__(self, words: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size, batch_first=True)
        self.attention = nn.MultiheadAttention(size, 2, batch_first=True)
        self.cell = nn.GRUCell(size, size)
        self.out = nn.Linear(size, words)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Tensor:
        x = self.embedding(tokens)
        h: Tensor
        hn: Tensor
        cn: Tensor
        h, (hn, cn) = self.lstm(x, state)
        a: Tensor
        weights: Tensor
        a, weights = self.attention(h, h, h)
        c: Tensor = self.cell(a[:, -1])
        scores: Tensor = self.out(c)
        clew.stack([hn.sum(), cn.sum(), weights.sum()])
        return scores


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Any:
        for i in range(10):
            yield clew.tensor(float(i))


def watch(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
    print(type(module).__name__, len(args), output.shape)


def conv() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 8, kernel_size=3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 10),
    )


def warm(optimizer: Optimizer) -> LambdaLR:
    return LambdaLR(optimizer, lambda epoch: min(1.0, epoch / 10))


def twice(x: Tensor) -> Tensor:
    return x * 2


def main() -> None:
    tree = Tree(clew.ones(3), [Tree(clew.zeros(3), [])])
    net = TreeNet(3)
    print(net(tree))
    reader = Reader(11, 4)
    handle = reader.out.register_forward_hook(watch)
    tokens = clew.randint(0, 11, (2, 5))
    loss = F.cross_entropy(reader(tokens), clew.tensor([1, 2]))
    loss.backward()
    handle.remove()
    print(F.softmax(clew.ones(3), dim=0), F.mse_loss(clew.ones(2), clew.zeros(2)).item())
    model = conv()
    print(model(clew.rand(2, 3, 8, 8)).shape, model[0], len(model))
    for p in reader.parameters():
        assert p.grad is None or p.grad.shape == p.shape
        p.requires_grad = False
    optimizer = clew.optim.Adam(net.parameters())
    warm(optimizer).step()
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    item: Tensor
    for item in DataLoader(Stream(), batch_size=2):
        print(item.sum())
    weight = reader.out.weight
    print(weight.data.abs().max().item(), reader.embedding.weight.grad)
    dist = clew.distributions.Normal(clew.zeros(2), clew.ones(2))
    sample = dist.rsample()
    print(dist.log_prob(sample).sum())
    with clew.amp.autocast("cpu"):
        print(reader(tokens).dtype)
    compiled = clew.compile(twice)
    print(compiled(clew.ones(2)))
    checkpoint: dict[str, Any] = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
    clew.save(checkpoint, "x.clew")
    print(clew.load("x.clew").keys())


if __name__ == "__main__":
    main()
