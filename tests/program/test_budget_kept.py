"""clew.memory_budget: what results keep after their region, and that no value is overlooked."""

from __future__ import annotations

import numpy as np
import pytest
from budgeted_steps import deep, live, peak_of, same

import clew

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times


def test_a_result_keeps_nothing_else_after_the_region():
    base = live()
    x, w = clew.randn(50, 50), clew.randn(50, 50, requires_grad=True)
    with clew.memory_budget("100 MB"):
        doubled = x * 2
        scale = doubled.tanh()
        y = (x @ w).tanh()
        metric = y.detach() * 3
        y.sum().backward()
    w.grad = None
    del doubled, x, y
    assert live() - base == 3 * w.numel() * w.element_size()  # w, scale, metric
    assert scale.numel() == metric.numel()


def test_states_that_are_carried_on_do_not_gather_inputs():
    state = clew.zeros(40, 40)
    kept = []
    for k in range(6):
        x = clew.randn(40, 40)
        with clew.memory_budget(10**7 + k):  # each notes its calls
            state = clew.tanh(state * 0.5 + x)
        kept.append(live())
    assert len(set(kept)) == 1


def test_what_a_waiting_value_needs_stays():
    """Its graph goes on after the region, so what makes it again does, and nothing else."""
    w = clew.randn(64, 64, requires_grad=True)

    def forward():
        h = w
        for _ in range(12):
            h = clew.tanh(h * 1.1)
        return h.sum(), h.detach() * 2

    (loss, _), floor, peak = peak_of(forward)
    (want,) = clew.autograd.grad(loss, w)
    del loss
    with clew.memory_budget(int(floor + 0.5 * (peak - floor))) as budget:
        loss, metric = forward()
    assert budget.report().given_up > 0
    (got,) = clew.autograd.grad(loss, w)
    assert same(want, got)
    assert np.isfinite(metric.numpy()).all()


def test_a_new_dear_value_goes_where_old_cheap_ones_are_held():
    a, w = clew.randn(100, 100), clew.randn(100, requires_grad=True)

    def step():
        held, h = [], w
        for _ in range(20):
            h = clew.tanh(h)
            held.append(h)
        for _ in range(1500):
            clew.linalg.svdvals(a)
        h = h + w * clew.linalg.svdvals(a)
        loss = h.sum()
        clew.ones(100_000)
        loss.backward()

    step()
    _, _, peak = peak_of(step)
    with clew.memory_budget(peak - 100) as budget:  # the singular values must go
        step()
    assert budget.report().given_up == 1


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_larger_batch_after_steps_that_noted_what_was_needed(monkeypatch, share):
    monkeypatch.setattr("clew._program.budget._SMALL_NS", 1 << 30)  # also on a busy machine
    model = deep(100, 8)

    def step(rows):
        model.zero_grad(set_to_none=False)
        model(clew.full((rows, 8), 0.1)).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    step(1)
    want, floor, peak = peak_of(lambda: step(96))
    limit = int(floor + share * (peak - floor))
    larger = step(192)
    for rows, right in [(96, want)] * 7 + [(192, larger), (96, want)]:
        with clew.memory_budget(limit) as budget:
            got = step(rows)
        assert same(right, got) and budget.report().peak <= limit
