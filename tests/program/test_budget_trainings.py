"""clew.memory_budget with a fraction: of what each training that runs the line takes."""

from __future__ import annotations

import gc
import threading

import pytest
from budgeted_steps import deep, same

import clew
from clew import nn

pytestmark = pytest.mark.usefixtures("young_heap")


def one_line():
    """A step whose budget stands on one line, apart from those of other tests."""

    def step(model, x, before=lambda: None, gradients=None):
        gc.collect()
        with clew.memory_budget(0.85) as budget:
            before()
            model(x).square().sum().backward()
        if gradients is not None:
            gradients += [p.grad for p in model.parameters()]
        model.zero_grad()
        return budget.report()

    made = {}
    code = step.__code__.replace(co_name=f"step_{one_line.count}")
    one_line.count += 1
    made["step"] = type(step)(code, step.__globals__, "step", step.__defaults__)
    return made["step"]


one_line.count = 0


def peak_of_one(model, x):
    gc.collect()
    with clew.memory_budget(None) as budget:
        model(x).square().sum().backward()
    model.zero_grad()
    return budget.report().peak


def test_a_large_model_then_a_small_one():
    step = one_line()
    large, small = deep(10), deep(6, width=32)
    x, few = clew.randn(8000, 64), clew.randn(8000, 32)
    first = [step(large, x) for _ in range(3)]
    assert first[0].limit is None
    assert [r.limit for r in first[1:]] == [int(0.85 * first[0].peak)] * 2
    then = [step(small, few) for _ in range(3)]
    assert then[0].limit is None and then[0].peak < first[1].limit
    assert [r.limit for r in then[1:]] == [int(0.85 * then[0].peak)] * 2
    assert all(r.given_up > 0 and r.peak <= r.limit for r in first[1:] + then[1:])


def test_a_small_model_then_a_large_one_and_two_in_turn():
    step = one_line()
    large, small = deep(10), deep(6, width=32)
    x, few = clew.randn(8000, 64), clew.randn(8000, 32)
    want = peak_of_one(small, few), peak_of_one(large, x)
    limits = [(step(small, few).limit, step(large, x).limit) for _ in range(3)]
    assert limits[0] == (None, None)
    for share in limits[1:]:
        for got, peak in zip(share, want, strict=True):
            assert 0.8 * peak < got < 0.9 * peak
    gradients = []
    assert step(large, x, gradients=gradients).given_up > 0
    large(x).square().sum().backward()
    assert same(gradients, [p.grad for p in large.parameters()])


def test_what_is_made_before_the_model_is_called_counts():
    step = one_line()
    small, x = deep(2, width=16), clew.ones(10, 16)

    def much():
        clew.ones(500_000)

    assert step(small, x, before=much).peak > 2_000_000
    with pytest.raises(clew.OutOfMemoryError):
        step(small, x, before=much)
    gc.collect()
    # That one was not known yet, and the limit may have been another's: the next goes on.
    again = step(small, x, before=much)
    assert again.limit is not None and again.peak > 2_000_000


def test_models_that_run_once_each_share_what_the_last_one_took():
    step = one_line()
    x = clew.randn(8000, 64)
    reports = []
    for _ in range(6):
        model = deep(6)
        reports.append(step(model, x))
        del model
    assert [r.limit is None for r in reports] == [True] * 3 + [False] * 3
    assert reports[-1].limit == int(0.85 * reports[2].peak)


def test_a_model_that_only_evaluates_does_not_count():
    step = one_line()
    teacher, student = deep(2), deep(8)
    x = clew.randn(8000, 64)

    def look():
        with clew.no_grad():
            teacher(x)

    reports = [step(student, x, before=look) for _ in range(2)]
    assert reports[1].limit == int(0.85 * reports[0].peak)
    other = deep(2, width=32)
    assert step(other, clew.randn(10, 32), before=look).limit is None


def test_the_watch_ends_with_the_region():
    hooks = nn.modules.module._hooks.global_forward_pre
    before = len(hooks)
    with clew.memory_budget(0.9):
        assert len(hooks) == before + 1
        clew.ones(10).sum()
    assert len(hooks) == before
    with pytest.raises(ValueError, match="mine"), clew.memory_budget(0.9):
        raise ValueError("mine")
    assert len(hooks) == before
    model = nn.Linear(2, 1)
    with clew.memory_budget(0.9):
        model(clew.ones(1, 2)).sum().backward()
        assert len(hooks) == before


def test_a_module_that_another_thread_calls_is_not_the_training():
    step = one_line()
    elsewhere, model, x = deep(2), deep(6), clew.randn(8000, 64)

    def call():
        thread = threading.Thread(target=lambda: elsewhere(x))
        thread.start()
        thread.join()

    reports = [step(model, x, before=call) for _ in range(2)]
    assert reports[1].limit == int(0.85 * reports[0].peak)
    assert step(deep(2), x, before=call).limit is None
