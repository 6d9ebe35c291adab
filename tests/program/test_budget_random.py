"""clew.memory_budget over random programs: the same bits, a peak within the limit, nothing left."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
from budgeted_steps import live

import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times

ROWS, WIDTH = 32, 16


class Cube(clew.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x * 0.1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 0.3 * x * x


def in_place(h, layer):
    y = h * 1.5
    y.add_(1).mul_(0.3)
    return layer(y).relu_()


def written_view(h, layer):
    y = h.clone()
    y[:, ::2] = clew.sigmoid(h[:, 1::2])
    return y


def in_half(h, layer):
    with clew.autocast("cpu", dtype=clew.bfloat16):
        y = layer(h)
    return y.float()


def hooked(h, layer):
    y = layer(h)
    y.register_hook(lambda g: g * 1.5)
    return y


PARTS = [
    lambda h, layer: clew.tanh(layer(h)),
    lambda h, layer: F.dropout(F.gelu(layer(h)), 0.3),
    lambda h, layer: F.layer_norm(h, [WIDTH]) + h,
    lambda h, layer: clew.cat([h[: ROWS // 2], h[ROWS // 2 :].flip(0)]) * 0.9,
    lambda h, layer: Cube.apply(clew.tanh(h)),
    lambda h, layer: checkpoint(layer, h, use_reentrant=False),
    lambda h, layer: checkpoint(lambda z: F.dropout(layer(z), 0.2), h, use_reentrant=True),
    lambda h, layer: h + clew.randn_like(h) * 0.1,
    lambda h, layer: h.masked_fill(clew.rand(ROWS, WIDTH) > 0.7, 0.0),
    lambda h, layer: h.t().contiguous().t().cumsum(0) * 0.1,
    lambda h, layer: h / (h.norm(dim=1, keepdim=True) + 1) + h[:, :1].expand(ROWS, WIDTH),
    lambda h, layer: F.gumbel_softmax(h, tau=0.7) * h,
    in_place, written_view, in_half, hooked,
]  # fmt: skip


def program(seed):
    choose = random.Random(seed)
    clew.manual_seed(seed)
    layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(4)])
    norm, x = nn.BatchNorm1d(WIDTH), clew.randn(ROWS, WIDTH)
    plan = choose.choices(PARTS, k=choose.randrange(4, 25))
    backwards = choose.randrange(1, 4)
    params = [*layers.parameters(), *norm.parameters()]

    def step():
        clew.manual_seed(seed + 1)
        norm.reset_running_stats()
        for p in params:
            p.grad = None
        h = norm(x.clone().requires_grad_())
        for i, part in enumerate(plan):
            h = part(h, layers[i % 4])
        loss = h.square().mean()
        for k in range(backwards):
            loss.backward(retain_graph=k + 1 < backwards)
        found = [p.grad for p in params if p.grad is not None]
        return [t.numpy().copy() for t in (*found, norm.running_mean, clew.rand(3))]

    return step


@pytest.mark.parametrize("seed", range(40))
def test_a_random_program(seed):
    base = live()
    step = program(seed)
    step()
    floor = live()
    with clew.memory_budget(None) as budget:
        want = step()
    peak = budget.report().peak
    for share in (1.0, 0.8, 0.6, 0.4):
        limit = int(floor + share * (peak - floor))
        try:
            with clew.memory_budget(limit) as budget:
                got = step()
        except clew.OutOfMemoryError:
            assert share < 1
            continue
        assert budget.report().peak <= limit
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(want, got, strict=True))
    del step
    gc.collect()
    assert live() == base


@pytest.mark.parametrize("seed", [3, 22, 54])
def test_a_little_below_the_peak_all_steps_pass(seed):
    step = program(seed)
    step()
    floor = live()
    with clew.memory_budget(None) as budget:
        step()
    limit = int(floor + 0.97 * (budget.report().peak - floor))
    given = []
    for _ in range(4):
        with clew.memory_budget(limit) as budget:
            step()
        given.append(budget.report().given_up)
    assert min(given) > 0
