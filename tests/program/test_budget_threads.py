"""clew.memory_budget holds for the whole process: what other threads compute is given up, too."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from budgeted_steps import deep, live, peak_of, same, stepping

import clew
from clew import nn

pytestmark = pytest.mark.usefixtures("young_heap")  # they collect garbage hundreds of times


def in_new_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0] if found else None


@pytest.fixture(params=["new thread", "pool"])
def elsewhere(request):
    """Calls a function in another thread, which is there already where it is a pool's."""
    if request.param == "new thread":
        yield in_new_thread
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        yield lambda function: pool.submit(function).result()


def test_a_step_in_another_thread_in_half_the_bytes(elsewhere):
    step = stepping(deep(), clew.randn(512, 64))
    want, floor, peak = peak_of(step)
    want = [g.clone() for g in want]
    limit = int(floor + 0.5 * (peak - floor)) + 2 * sum(4 * g.numel() for g in want)
    for _ in range(3):
        with clew.memory_budget(limit) as budget:
            got = elsewhere(step)
        assert same(want, got)
        assert budget.report().peak <= limit and budget.report().given_up > 0
    with clew.memory_budget(limit) as budget:  # and in the thread that opened it
        assert same(want, step())
    assert budget.report().peak <= limit and budget.report().given_up > 0


def test_calls_of_other_threads_are_not_noted_after_the_budget(elsewhere):
    w, x = clew.randn(64, 64, requires_grad=True), clew.randn(64, 64)

    def forward():
        return clew.tanh(x @ w).sum()

    with clew.memory_budget(live() + 10_000_000):
        elsewhere(forward)
    before = clew._C._budget_counts()[8]
    elsewhere(forward)
    assert clew._C._budget_counts()[8] == before


def test_threads_that_train_replicas_in_one_budget():
    def train(k):
        clew.manual_seed(k)
        model = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(64, 64), nn.Tanh())])
        return [g.clone() for g in stepping(model, clew.ones(256, 64) * (k + 1))()]

    want, floor, peak = peak_of(lambda: train(0))
    want = [want, train(1), train(2)]
    limit = int(floor + 1.3 * (peak - floor)) + 6 * sum(4 * g.numel() for g in want[0])
    lock = threading.Lock()  # the generator that models are made with is one

    def guarded(k):
        with lock:
            clew.manual_seed(k)
            model = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(64, 64), nn.Tanh())])
        return [g.clone() for g in stepping(model, clew.ones(256, 64) * (k + 1))()]

    with ThreadPoolExecutor(3) as pool, clew.memory_budget(limit) as budget:
        got = list(pool.map(guarded, range(3)))
    assert all(map(same, want, got))
    assert budget.report().peak <= limit


def test_noting_that_begins_late_begins_in_all_threads():
    """A line that did not need its limit notes nothing at first; a thread then needs more."""
    w, x = clew.randn(64, 64, requires_grad=True), clew.randn(256, 64)
    with clew.no_grad():
        w.mul_(0.1)

    def step(layers):
        w.grad = None
        h = x
        for _ in range(layers):
            h = clew.tanh(h @ w)
        h.sum().backward()
        return w.grad.clone()

    _, floor, peak = peak_of(lambda: step(20))
    want = step(60)
    limit = peak + (peak - floor) // 50 + 50_000
    for layers in (20, 20, 20, 60, 60):
        gc.collect()
        with clew.memory_budget(limit) as budget:
            got = in_new_thread(lambda n=layers: step(n))
        assert budget.report().peak <= limit
    assert same(got, want) and budget.report().given_up > 0


def test_a_budget_that_is_closed_in_backward_notes_nothing_afterwards():
    w, x = clew.randn(64, 64, requires_grad=True), clew.randn(64, 64)
    budget = clew.memory_budget(live() + 10_000_000)
    budget.__enter__()
    h = clew.tanh(x @ w)
    h.register_hook(lambda g: budget.__exit__(None, None, None))
    h.sum().backward()
    before = clew._C._budget_counts()[8]
    clew.tanh(x @ w).sum().backward()
    assert clew._C._budget_counts()[8] == before


def test_a_budget_that_is_opened_in_backward_notes_afterwards():
    model, x = deep(12), clew.randn(512, 64)
    want, floor, peak = peak_of(stepping(model, x))
    want = [g.clone() for g in want]
    limit = int(floor + 0.5 * (peak - floor)) + 2 * sum(4 * g.numel() for g in want)
    budget = clew.memory_budget(limit)
    one = clew.ones(3, requires_grad=True)
    y = one * 2
    y.register_hook(lambda g: budget.__enter__() and None)
    y.sum().backward()
    got = stepping(model, x)()
    budget.__exit__(None, None, None)
    assert same(want, got)
    assert budget.report().given_up > 0 and budget.report().peak <= limit


def test_regions_that_end_out_of_order_report_their_own_peaks():
    base = live()
    outer, inner = clew.memory_budget(base + 10_000_000), clew.memory_budget(base + 5_000_000)
    outer.__enter__()
    clew.ones(1_000_000)
    inner.__enter__()
    clew.ones(500_000)
    assert outer.report().peak >= base + 4_000_000  # of its own beginning, while both are open
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert base + 2_000_000 <= inner.report().peak < base + 2_100_000
    assert base + 4_000_000 <= outer.report().peak < base + 4_100_000


def test_refusals_in_several_threads_at_once_each_say_what_would_do():
    models = [deep(6) for _ in range(3)]
    x, meet = clew.randn(512, 64), threading.Barrier(3)
    said = []

    def train(model):
        meet.wait()
        try:
            model(x).square().sum().backward()
        except clew.OutOfMemoryError as error:
            said.append(str(error))

    for _ in range(5):
        with clew.memory_budget(live() + 3 * x.numel() * 4):
            threads = [threading.Thread(target=train, args=(m,)) for m in models]
            [t.start() for t in threads]
            [t.join() for t in threads]
    assert said
    for text in said:
        assert "a budget of" in text and "what holds memory now" in text, text
