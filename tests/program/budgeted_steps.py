"""Steps of training, and the bytes that they take."""

from __future__ import annotations

import gc

import numpy as np

import clew
from clew import nn


def live():
    gc.collect()
    return clew._C._memory_stats()["live_bytes"]


def peak_of(step):
    """What the step gives, the bytes that were there before, and the most there were."""
    gc.collect()
    floor = clew._C._memory_stats()["live_bytes"]
    with clew.memory_budget(None) as budget:
        result = step()
    return result, floor, budget.report().peak


def same(a, b):
    if isinstance(a, clew.Tensor):
        return bool(np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True))
    return all(same(x, y) for x, y in zip(a, b, strict=True))


def check(step, share=0.5, needs=True):
    """The step in a share of what it takes beyond what was there before."""
    clew.manual_seed(1)
    plain, floor, peak = peak_of(step)
    plain = [t.detach().clone() for t in plain]
    gc.collect()
    limit = int(floor + sum(t.numel() * t.element_size() for t in plain) + share * (peak - floor))
    clew.manual_seed(1)
    with clew.memory_budget(limit) as budget:
        got = step()
    report = budget.report()
    assert same(plain, got)
    assert report.peak <= limit
    if needs:
        assert report.given_up > 0
        assert report.made_again > 0
    return report


def stepping(model, *inputs, loss=lambda y: y.square().sum()):
    def step():
        model.zero_grad()
        loss(model(*inputs)).backward()
        return [p.grad for p in model.parameters()]

    return step


def deep(layers=12, width=64, act=nn.Tanh):
    clew.manual_seed(0)
    return nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), act())])
