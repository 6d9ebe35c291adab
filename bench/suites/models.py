"""The models that the training suite runs, for any library with PyTorch's names.

B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple


def gpt(t: Any, layers: int, width: int, heads: int, V: int = 96, T: int = 128) -> Any:
    """A decoder of pre-norm transformer blocks over characters."""
    nn, f = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            B, T, C = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(C, dim=2)
            q, k, v = (y.view(B, T, heads, C // heads).transpose(1, 2) for y in (q, k, v))
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
            return x + self.down(f.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(V, width), nn.Embedding(T, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, V, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places(t.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def resnet20(t: Any) -> Any:
    """ResNet-20 for 32x32 images (He et al. 2016, section 4.2)."""
    nn = t.nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.skip = nn.Identity()
            if stride > 1 or before != after:
                self.skip = nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            y = self.bn1(self.conv1(x)).relu()
            return (self.bn2(self.conv2(y)) + self.skip(x)).relu()

    blocks = [Block(16, 16, 1) for _ in range(3)]
    blocks += [Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1)]
    blocks += [Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1)]
    first = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Tree(NamedTuple):
    """A node of a random tree."""

    kind: int
    children: list[Tree]


def random_tree(rng: random.Random, size: int) -> Tree:
    """A tree of that many nodes with one to three children a node, as syntax trees have."""
    children = []
    left = size - 1
    while left > 0:
        part = left if len(children) == 2 else rng.randint(1, left)
        children.append(random_tree(rng, part))
        left -= part
    return Tree(rng.randrange(64), children)


def tree_lstm(t: Any, width: int = 64) -> Any:
    """A child-sum Tree-LSTM (Tai et al. 2015), a recursion over each tree without batching."""
    nn = t.nn

    class TreeLSTM(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kind, self.forget_in = nn.Embedding(64, 3 * width), nn.Embedding(64, width)
            self.hidden = nn.Linear(width, 3 * width, bias=False)
            self.forget, self.out = nn.Linear(width, width), nn.Linear(width, 8)

        def node(self, tree: Tree) -> tuple[Any, Any]:
            ids = t.tensor([tree.kind])
            x = self.kind(ids)
            if not tree.children:
                i, o, u = x.chunk(3, 1)
                c = i.sigmoid() * u.tanh()
                return o.sigmoid() * c.tanh(), c
            states = [self.node(child) for child in tree.children]
            total = states[0][0]
            for h, _ in states[1:]:
                total = total + h
            i, o, u = (x + self.hidden(total)).chunk(3, 1)
            c = i.sigmoid() * u.tanh()
            bias = self.forget_in(ids)
            for h, memory in states:
                c = c + (self.forget(h) + bias).sigmoid() * memory
            return o.sigmoid() * c.tanh(), c

        def forward(self, tree: Tree) -> Any:
            return self.out(self.node(tree)[0])

    return TreeLSTM()


def tree_lstm_by_height(t: Any, model: Any, trees: list[Any]) -> Callable[[], Any]:
    """The same for many trees at once, as it is batched by hand: nodes of one height together.

    What is sorted and counted before the first step is not done again in a step.
    """
    height: dict[int, int] = {}
    by_height: list[list[Tree]] = []

    def put(tree: Tree) -> int:
        own = 1 + max((put(child) for child in tree.children), default=-1)
        height[id(tree)] = own
        by_height.extend([] for _ in range(own + 1 - len(by_height)))
        by_height[own].append(tree)
        return own

    for tree in trees:
        put(tree)
    # The nodes whose states somebody still needs: those that are kept, then the new ones.
    open_nodes: list[Tree] = []
    plan = []
    for nodes in by_height:
        place = {id(node): i for i, node in enumerate(open_nodes)}
        children = [place[id(child)] for node in nodes for child in node.children]
        parents = [i for i, node in enumerate(nodes) for _ in node.children]
        left = sorted(set(range(len(open_nodes))) - set(children))
        plan.append(
            tuple(t.tensor(x) for x in ([node.kind for node in nodes], children, parents, left))
        )
        open_nodes = [open_nodes[i] for i in left] + nodes
    roots = {id(node): i for i, node in enumerate(open_nodes)}
    order = t.tensor([roots[id(tree)] for tree in trees])

    def run() -> Any:
        h = c = None
        for ids, children, parents, left in plan:
            x = model.kind(ids)
            if h is None:
                i, o, u = x.chunk(3, 1)
                h_kept, c_kept, memory = [], [], 0
            else:
                below, before = h[children], c[children]
                zeros = t.zeros(len(ids), h.shape[1])
                i, o, u = (x + model.hidden(zeros.index_add(0, parents, below))).chunk(3, 1)
                forget = (model.forget(below) + model.forget_in(ids)[parents]).sigmoid()
                memory = zeros.index_add(0, parents, forget * before)
                h_kept, c_kept = [h[left]], [c[left]]
            c_new = i.sigmoid() * u.tanh() + memory
            h, c = t.cat([*h_kept, o.sigmoid() * c_new.tanh()]), t.cat([*c_kept, c_new])
        return model.out(h[order])

    return run
