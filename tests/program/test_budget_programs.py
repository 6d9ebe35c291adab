"""Random programs give the same bits under a budget, or say that it is too small."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import pytest
from budgeted_steps import check

import clew
from clew import nn
from clew.nn import functional as F
from clew.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times

UNARY = ("exp tanh sin sigmoid abs square relu cos neg erf".split(), "tanh_ sin_ sigmoid_".split())


def program(seed: int) -> list[Any]:
    """Forward and backward of steps that the seed decides; few values stay in variables."""
    r = random.Random(seed)
    clew.manual_seed(seed)
    rows, columns = r.choice([(64, 64), (300, 20), (17, 130), (128, 32)])
    dtype = r.choice([clew.float32, clew.float32, clew.float64])
    weights = [
        (clew.randn(columns, columns, dtype=dtype) * 0.2).requires_grad_(r.random() < 0.8)
        for _ in range(3)
    ]
    vector = clew.randn(columns, dtype=dtype, requires_grad=True)
    buffer = clew.zeros(rows, columns, dtype=dtype)
    values = [clew.randn(rows, columns, dtype=dtype)]
    seen: list[Any] = []
    for _ in range(r.randint(8, 50)):
        x = r.choice(values[-2:])
        kind = r.randrange(16)
        if kind < 3:
            y = clew.tanh(x @ r.choice(weights))
        elif kind < 6:
            y = getattr(clew, r.choice(UNARY[0]))(x * 0.5)
        elif kind == 6:
            y = x * 1.5 if r.random() < 0.5 else x + vector
            getattr(y, r.choice(UNARY[1]))()
        elif kind == 7:
            y = F.dropout(x, 0.3)
        elif kind == 8:
            y = F.layer_norm(x, (columns,), vector)
        elif kind == 9:
            y = clew.softmax(x, r.randrange(2)) + x
        elif kind == 10:
            y = x.t().contiguous().t()[:, r.randrange(columns) :]
            y = F.pad(y, (columns - y.shape[1], 0))
        elif kind == 11:
            buffer.mul_(0.5).add_(r.random())  # what recipes read changes
            y = x * (buffer + 1)
        elif kind == 12:
            y = x * 1.5
            y[: rows // 2] = r.random()
        elif kind == 13:
            y, _ = x.sort(r.randrange(2))
        elif kind == 14:
            y = clew.where(x > 0, x, x * 0.1)
            y += x
        else:
            y = clew.cat([x[1:], values[0][:1]]) * 0.9
            seen.append(float(y.mean()))
        values = [values[0], values[-1], y][-r.choice([2, 3]) :]
    loss = values[-1].square().mean()
    wanted = [t for t in (*weights, vector) if t.requires_grad]
    again = r.random() < 0.3
    if loss.requires_grad:
        del values, x, y
        create = r.random() < 0.3
        found = clew.autograd.grad(
            loss, wanted, retain_graph=again or create, create_graph=create, allow_unused=True
        )
        seen += found
        if again:
            seen += clew.autograd.grad(loss, wanted, retain_graph=create, allow_unused=True)
        if create:
            total = sum((g.square().sum() for g in found if g is not None and g.requires_grad), 0)
            if isinstance(total, clew.Tensor):
                seen += clew.autograd.grad(total, wanted, allow_unused=True)
    return [*seen, clew.rand(2)]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, clew.Tensor):
        return np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)
    return a == b or (a != a and b != b)


def compare(seed: int) -> tuple[int, int]:
    """Raises at a difference; how often there was enough room, how many calls ran again."""
    gc.collect()
    with clew.memory_budget(None) as free:
        floor = clew._C._memory_stats()["live_bytes"]
        want = program(seed)
    enough = again = 0
    for share in (0.9, 0.7, 0.5):
        now = clew._C._memory_stats()["live_bytes"]
        limit = int(now + share * (free.report().peak - floor))
        try:
            with clew.memory_budget(limit) as budget:
                got = program(seed)
        except clew.OutOfMemoryError:
            continue
        finally:
            assert budget.report().peak <= limit
        enough += 1
        again += budget.report().made_again
        assert len(want) == len(got)
        for k, (a, b) in enumerate(zip(want, got, strict=True)):
            assert same(a, b), f"seed {seed}, share {share}, observation {k}: {a} {b}"
        del got
    return enough, again


def test_a_budget_changes_no_bit():
    counts = [compare(seed) for seed in range(16)]
    assert sum(enough for enough, _ in counts) > 12
    assert sum(again for _, again in counts) > 50


@pytest.mark.parametrize("threads", [1, 2])
def test_with_threads(threads):
    before = clew.get_num_threads()
    try:
        clew.set_num_threads(threads)
        for seed in range(100, 104):
            compare(seed)
    finally:
        clew.set_num_threads(before)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    totals = [0, 0]
    for number in range(first, first + count):
        try:
            for k, n in enumerate(compare(number)):
                totals[k] += n
        except AssertionError as problem:
            print(str(problem)[:400], flush=True)
    print(f"{count} programs, {totals[0]} of {3 * count} had room, {totals[1]} calls ran again")


@pytest.mark.parametrize("share", [0.95, 0.8, 0.7])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_checkpoint_runs_again_can_be_given_up_too(use_reentrant, share):
    clew.manual_seed(0)
    blocks = nn.ModuleList(
        nn.Sequential(
            *[m for _ in range(4) for m in (nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2))]
        )
        for _ in range(3)
    )
    x = clew.randn(1024, 32, requires_grad=use_reentrant)

    def step():
        blocks.zero_grad()
        h = x
        for block in blocks:
            h = h + checkpoint(block, h, use_reentrant=use_reentrant)
        h.square().mean().backward()
        return [p.grad for p in blocks.parameters()]

    check(step, share)
