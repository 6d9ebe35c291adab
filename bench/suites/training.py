"""Wall time of whole training steps: forward, backward, optimizer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from bench.suites import models
from bench.timer import milliseconds

UNIT = "ms"
BETTER = "lower"


def stepper(t: Any, model: Any, loss: Callable[[], Any], **options: Any) -> Callable[[], None]:
    """One training step with Adam."""
    optimizer = t.optim.Adam(model.parameters(), lr=1e-3, **options)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def mlp(t: Any, batch: int, *widths: int) -> Callable[[], None]:
    nn = t.nn
    layers: list[Any] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    x, y = t.randn(batch, widths[0]), t.randint(0, widths[-1], (batch,))
    return stepper(t, model, lambda: nn.functional.cross_entropy(model(x), y))


def gpt(t: Any, batch: int, autocast: bool = False, **size: int) -> Callable[[], None]:
    model = models.gpt(t, **size)
    ids = t.randint(0, 96, (batch, 128))
    f = t.nn.functional

    def loss() -> Any:
        if autocast:
            with t.autocast("cpu", dtype=t.bfloat16):
                scores = model(ids)
            return f.cross_entropy(scores.float().view(-1, 96), ids.view(-1))
        return f.cross_entropy(model(ids).view(-1, 96), ids.view(-1))

    return stepper(t, model, loss)


def images(t: Any, model: Any, batch: int, *shape: int) -> Callable[[], None]:
    x, y = t.randn(batch, *shape), t.randint(0, 10, (batch,))
    return stepper(t, model, lambda: t.nn.functional.cross_entropy(model(x), y))


def wide_convolutions(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(128, 128, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def lstm(t: Any) -> Callable[[], None]:
    model = t.nn.LSTM(64, 128, batch_first=True)
    x = t.randn(16, 50, 64)
    return stepper(t, model, lambda: model(x)[0].pow(2).mean())


def unrolled_lstm(t: Any) -> Callable[[], None]:
    cell = t.nn.LSTMCell(64, 128)
    x = t.randn(50, 16, 64)

    def loss() -> Any:
        h, c = t.zeros(16, 128), t.zeros(16, 128)
        for row in x:
            h, c = cell(row, (h, c))
        return h.pow(2).mean()

    return stepper(t, cell, loss)


def trees(t: Any) -> Callable[[], None]:
    model = models.tree_lstm(t)
    rng = random.Random(0)
    data = [models.random_tree(rng, rng.randint(25, 110)) for _ in range(32)]
    labels = t.tensor([rng.randrange(8) for _ in data])

    def loss() -> Any:
        scores = t.cat([model(tree) for tree in data])
        return t.nn.functional.cross_entropy(scores, labels)

    return stepper(t, model, loss)


def policy(t: Any) -> Callable[[], None]:
    """Twenty single decisions of a small policy, then one REINFORCE update."""
    nn = t.nn
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    states = t.randn(20, 4)

    def loss() -> Any:
        logs = []
        for s in states:
            scores = nn.functional.log_softmax(model(s), dim=-1)
            action = int(scores.argmax())
            logs.append(scores[action])
        return -t.stack(logs).sum()

    return stepper(t, model, loss)


CASES: dict[str, Callable[[Any], Callable[[], None]]] = {
    "tiny MLP 8-16-4, batch 4": lambda t: mlp(t, 4, 8, 16, 4),
    "MLP 784-512-512-10, batch 128": lambda t: mlp(t, 128, 784, 512, 512, 10),
    "char-GPT, 4 layers of 128, batch 8": lambda t: gpt(t, 8, layers=4, width=128, heads=4),
    "GPT, 6 layers of 384, batch 4": lambda t: gpt(t, 4, layers=6, width=384, heads=6),
    "char-GPT, bfloat16 autocast": lambda t: gpt(t, 8, True, layers=4, width=128, heads=4),
    "ResNet-20, 32x32, batch 32": lambda t: images(t, models.resnet20(t), 32, 3, 32, 32),
    "wide 3x3 convolutions, 28x28, batch 16": lambda t: images(
        t, wide_convolutions(t), 16, 64, 28, 28
    ),
    "LSTM module, 50 steps of 128": lstm,
    "LSTMCell unrolled, 50 steps of 128": unrolled_lstm,
    "recursive Tree-LSTM, 32 trees": trees,
    "policy gradient, 20 single steps": policy,
}


# Each case in a process of its own, next to the other library's.
PARTS = len(CASES)


def run(t: Any, part: int) -> dict[str, float]:
    """ms a step; autocast only where the library has it."""
    name, make = list(CASES.items())[part]
    if "autocast" in name and not hasattr(t, "autocast"):
        return {}
    t.manual_seed(0)
    return {name: milliseconds(make(t), seconds=1.0)}
