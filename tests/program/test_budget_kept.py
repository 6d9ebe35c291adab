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


def tanhs(h, w, n=60):
    for _ in range(n):
        h = clew.tanh(h @ w) + h * 0.5
    return h


def gradients_gathered(x, w):
    for _ in range(4):
        tanhs(x, w, 30).sum().backward()


def two_losses(x, w):
    tanhs(x, w).sum().backward()
    tanhs(x, w).square().sum().backward()


def a_graph_kept(x, w):
    h = tanhs(x, w)
    h.sum().backward(retain_graph=True)
    h.square().sum().backward()


def penalty_of_the_gradient(x, w):
    x = x.detach().requires_grad_()
    h = tanhs(x, w)
    (g,) = clew.autograd.grad(h.square().mean(), x, create_graph=True)
    (h.mean() + g.square().sum()).backward()


@pytest.mark.parametrize("share", [0.7, 0.9, 0.97])
@pytest.mark.parametrize(
    "way", [gradients_gathered, two_losses, a_graph_kept, penalty_of_the_gradient]
)
def test_many_equal_steps_all_pass(monkeypatch, way, share):
    monkeypatch.setattr("clew._program.budget._SMALL_NS", 1 << 30)  # also on a busy machine
    clew.manual_seed(3)
    x, w = clew.randn(64, 16), (clew.randn(16, 16) * 0.3).requires_grad_()

    def step():
        w.grad = None
        way(x, w)
        return [w.grad.clone()]

    step()
    want, floor, peak = peak_of(step)
    for _ in range(8):
        with clew.memory_budget(int(floor + share * (peak - floor))):
            got = step()
        assert same(want, got)
