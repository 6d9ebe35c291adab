"""Draws the recorded graph behind a tensor: a box a node, gradients flowing down to the leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import clew


def collect(root: Any, limit: int) -> tuple[list[Any], list[tuple[int, int]]]:
    """The nodes reachable from root (at most limit, breadth first) and the edges between them, by
    index.
    """
    nodes, index, edges = [root], {root: 0}, []
    for node in nodes:
        for child, _ in node.next_functions:
            if child is None:
                continue
            if child not in index:
                if len(nodes) >= limit:
                    continue
                index[child] = len(nodes)
                nodes.append(child)
            edges.append((index[node], index[child]))
    return nodes, edges


def layers(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """The longest distance of every node from the root."""
    into = [0] * count
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        into[b] += 1
        below[a].append(b)
    depth, ready = [0] * count, [i for i in range(count) if into[i] == 0]
    for a in ready:
        for b in below[a]:
            depth[b] = max(depth[b], depth[a] + 1)
            into[b] -= 1
            if into[b] == 0:
                ready.append(b)
    return depth


def draw(
    tensor: clew.Tensor,
    path: Path,
    names: dict[int, str] | None = None,
    title: str = "",
    limit: int = 400,
) -> int:
    """Writes a picture of the graph of ``tensor`` to ``path`` (format by suffix) and returns the
    number of nodes drawn.

    Args:
        tensor: the root; must have a grad_fn.
        path: where to write (.png, .svg, .pdf).
        names: names of leaves by id(), for example of a module's parameters.
        title: a line above the picture.
        limit: how many nodes to draw at most.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    nodes, edges = collect(tensor.grad_fn, limit)
    depth = layers(len(nodes), edges)
    rows: dict[int, list[int]] = {}
    for i, d in enumerate(depth):
        rows.setdefault(d, []).append(i)
    # Within a row nodes stand where the mean of their consumers stands, which keeps crossings few.
    x = [0.0] * len(nodes)
    for d in sorted(rows):
        wish = {i: [x[a] for a, b in edges if b == i] for i in rows[d]}
        rows[d].sort(key=lambda i: (sum(wish[i]) / len(wish[i]) if wish[i] else 0.0, i))
        for k, i in enumerate(rows[d]):
            x[i] = k - (len(rows[d]) - 1) / 2
    widest = max(len(r) for r in rows.values())
    fig, ax = plt.subplots(figsize=(min(40, 2 + 1.9 * widest), min(60, 2 + 0.62 * len(rows))))
    for a, b in edges:
        ax.annotate(
            "",
            (x[b], -depth[b] + 0.22),
            (x[a], -depth[a] - 0.22),
            arrowprops={"arrowstyle": "-|>", "color": "#8a8f98", "lw": 0.8},
        )
    for i, node in enumerate(nodes):
        leaf = node.name() == "AccumulateGrad"
        label = node.name().removesuffix("Backward0")
        if leaf:
            v = node.variable
            label = f"{(names or {}).get(id(v), 'leaf')}\n{list(v.shape)}"
        color = "#ffe2b8" if leaf else "#cfe3ff"
        ax.text(
            x[i],
            -depth[i],
            label,
            ha="center",
            va="center",
            fontsize=7,
            bbox={"boxstyle": "round,pad=0.3", "fc": color, "ec": "#5b6470", "lw": 0.7},
        )
    ax.set_xlim(-widest / 2 - 0.2, widest / 2 + 0.2)
    ax.set_ylim(-max(depth) - 0.8, 0.8)
    ax.set_title(title or f"{len(nodes)} nodes", fontsize=10)
    ax.axis("off")
    fig.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(fig)
    return len(nodes)


def loss_curve(losses: list[float], accuracies: list[float], path: Path, title: str) -> None:
    """Writes the training loss and the held-out accuracy by epoch to ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    epochs = range(1, len(losses) + 1)
    fig, left = plt.subplots(figsize=(6, 3.6))
    left.plot(epochs, losses, color="#d1495b", marker="o", ms=3, label="training loss")
    left.set_xlabel("epoch")
    left.set_ylabel("training loss", color="#d1495b")
    right = left.twinx()
    right.plot(
        epochs,
        [100 * a for a in accuracies],
        color="#2e6fba",
        marker="s",
        ms=3,
        label="held-out accuracy",
    )
    right.set_ylabel("held-out accuracy, %", color="#2e6fba")
    right.set_ylim(0, 100)
    left.set_title(title)
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)
