"""Training steps in a part of the memory that they take: with a budget, and as they are.

PyTorch has no budget: where a model has blocks, both run `checkpoint` at every block, too. A case
is the share of the peak that is allowed; parameters, gradients and optimizer state count.
B batch, T time, D width.
"""

from __future__ import annotations

import functools
import gc
import random
import sys
from collections.abc import Callable
from typing import Any

from bench.suites import models
from bench.suites.compile import alternated

UNIT = "ms"
BETTER = "lower"
BUDGET, PLAIN, BLOCKS = ", budget", ", plain", ", checkpoint at every block"

# A step, and the same with checkpoint at every block where there are blocks.
Steps = tuple[Callable[[], Any], Callable[[], Any] | None]


def trained(t: Any, parameters: list[Any], *losses: Callable[[], Any]) -> list[Callable[[], Any]]:
    """Forward, backward and AdamW for each of the losses, which share the optimizer."""
    optimizer = t.optim.AdamW(parameters, 1e-4)

    def step(loss: Callable[[], Any]) -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return [functools.partial(step, loss) for loss in losses]


def language_model(t: Any, layers: int, width: int, heads: int, B: int, T: int = 128) -> Steps:
    model = models.gpt(t, layers, width, heads, T=T)
    tokens = t.randint(0, 96, (B, T))
    target = t.randint(0, 96, (B * T,))
    cross_entropy, checkpoint = t.nn.functional.cross_entropy, t.utils.checkpoint.checkpoint
    parameters = list(model.parameters())
    blocks = [m for m in model.modules() if type(m).__name__ == "Block"]

    def loss() -> Any:
        return cross_entropy(model(tokens).reshape(B * T, -1), target)

    def by_block() -> Any:
        before = [b.forward for b in blocks]
        for b, forward in zip(blocks, before, strict=True):
            b.forward = lambda x, f=forward: checkpoint(f, x, use_reentrant=False)
        try:
            return loss()
        finally:
            for b in blocks:
                del b.forward

    step, blockwise = trained(t, parameters, loss, by_block)
    return step, blockwise


def resnet(t: Any) -> Steps:
    model = models.resnet20(t)
    x, y = t.randn(32, 3, 32, 32), t.randint(0, 10, (32,))
    cross_entropy = t.nn.functional.cross_entropy
    (step,) = trained(t, list(model.parameters()), lambda: cross_entropy(model(x), y))
    return step, None


def lstm(t: Any) -> Steps:
    """By hand, over 500 steps."""
    D = 128
    gates, x = t.nn.Linear(2 * D, 4 * D), t.randn(500, 16, D)

    def loss() -> Any:
        h = c = t.zeros(16, D)
        for now in x:
            i, f, g, o = gates(t.cat([now, h], 1)).chunk(4, 1)
            c = t.sigmoid(f) * c + t.sigmoid(i) * t.tanh(g)
            h = t.sigmoid(o) * t.tanh(c)
        return h.square().mean()

    (step,) = trained(t, list(gates.parameters()), loss)
    return step, None


def trees(t: Any) -> Steps:
    """A Tree-LSTM on some 1,300 nodes of 32 trees."""
    rng = random.Random(0)
    model = models.tree_lstm(t, 150)
    samples = [models.random_tree(rng, rng.randrange(12, 70)) for _ in range(32)]
    label = t.tensor([3])
    cross_entropy = t.nn.functional.cross_entropy

    def loss() -> Any:
        return sum(cross_entropy(model(s), label) for s in samples)

    (step,) = trained(t, list(model.parameters()), loss)
    return step, None


def chain(t: Any) -> Steps:
    """4,096 equal layers that share their weight."""
    w, x = t.randn(64, 64, requires_grad=True), t.randn(64, 64)
    with t.no_grad():
        w.mul_(0.1)

    def step() -> None:
        h = x
        for _ in range(4096):
            h = t.tanh(h @ w)
        w.grad = None
        h.sum().backward()

    return step, None


# Parameters, gradients and moments alone are 0.6 of the peak with 128 tokens, 0.39 with 512, and
# 0.23 with 1024.
GPT = "GPT, 6 layers of 384, batch 4, 512 tokens"
LONGER = "GPT, 6 layers of 384, batch 4, 1024 tokens"
CASES: dict[str, tuple[Callable[[Any], Steps], float]] = {
    f"{GPT}, 0.6": (lambda t: language_model(t, 6, 384, 6, 4, 512), 0.6),
    f"{LONGER}, 0.4": (lambda t: language_model(t, 6, 384, 6, 4, 1024), 0.4),
    f"{GPT}, never reached": (lambda t: language_model(t, 6, 384, 6, 4, 512), 1.0),
    "ResNet-20, batch 32, 0.6": (resnet, 0.6),
    "ResNet-20, batch 32, 0.4": (resnet, 0.4),
    "ResNet-20, never reached": (resnet, 1.0),
    "char-GPT, 24 layers, 0.35": (lambda t: language_model(t, 24, 128, 4, 8), 0.35),
    "LSTM by hand, 500 steps, 0.3": (lstm, 0.3),
    "LSTM by hand, never reached": (lstm, 1.0),
    "Tree-LSTM, 32 trees, 0.6": (trees, 0.6),
    "Tree-LSTM, never reached": (trees, 1.0),
    "chain of 4,096 layers, 512 saved tensors": (chain, 0.0),
}
PARTS = len(CASES)
# What a step in the budget may take, in plain steps.
_MOST = (1.25, 1.45, 1.02, 1.25, 1.5, 1.02, 1.4, 1.5, 1.02, 1.4, 1.02, 2.2)
WITHIN = {name + BUDGET: (name + PLAIN, most) for name, most in zip(CASES, _MOST, strict=True)}


def page(record: dict[str, Any]) -> list[str]:
    """The table of docs/memory.md."""
    ours, theirs = record["median"]["clew"], record["median"].get("torch", {})
    lines = [
        "| step, and its budget: of the peak | time | target at most | `checkpoint` at every "
        "block, placed by hand | PyTorch's plain step | PyTorch's `checkpoint` at every block |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, most in zip(CASES, _MOST, strict=True):
        plain = ours[name + PLAIN]
        cells = [
            f"{found[name + kind] / plain:.2f}" if name + kind in found else ""
            for found, kind in ((ours, BUDGET), (ours, BLOCKS), (theirs, PLAIN), (theirs, BLOCKS))
        ]
        cells[0] = cells[0] or "refused"
        lines.append(f"| {name} | {cells[0]} | {most} | {' | '.join(cells[1:])} |")
    return lines


def run(t: Any, part: int) -> dict[str, float]:
    """A training step, as it is and in a budget."""
    name = list(CASES)[part]
    make, share = CASES[name]
    t.manual_seed(0)
    step, by_block = make(t)
    step()  # gradients and the optimizer's state are there
    calls, labels = [step], [PLAIN]
    if by_block and share < 1:
        calls, labels = [step, by_block], [PLAIN, BLOCKS]
    if hasattr(t, "memory_budget"):
        gc.collect()
        with t.memory_budget(None) as free:
            step()
        peak = free.report().peak
        floor = t._C._memory_stats()["live_bytes"]
        limit = int(share * peak) if share else floor + 512 * 64 * 64 * 4

        def bounded() -> None:
            with t.memory_budget(limit):
                step()

        try:
            bounded()
        except t.OutOfMemoryError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            calls.append(bounded)
            labels.append(BUDGET)
    times = alternated(calls, 1.5, 5)
    return {name + label: took for label, took in zip(labels, times, strict=True)}
