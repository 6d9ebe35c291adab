"""The records themselves: what is written while a program runs, put together afterwards."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

import clew
import clew.nn.functional as F
from clew import nn
from clew.profiler import ProfilerActivity, profile, record_function

CPU = [ProfilerActivity.CPU]


def small_steps():
    """Operations whose gradients take every short way: saved operands, sums, numbers, copies."""
    x = clew.full((8, 8), 0.5, requires_grad=True)
    w, row = clew.full((8, 8), 0.9), clew.full((1, 8), 0.1, requires_grad=True)
    h = x
    for _ in range(3):
        h = (h * w + x).tanh()
        h = h.sigmoid() * h + row  # broadcast: the short way of a sum is refused
        h = h.t() * 2 - h / 3
    h.sum().backward()
    with clew.no_grad():
        x += 1
        x.mul_(row)
    return x.grad


def big_steps():
    """The same of tensors that are too long for any short way."""
    x = clew.full((40000,), 0.5, requires_grad=True)
    ((x * x).tanh() * 2 + x).sum().backward()
    return x.grad


def nesting(events):
    """Names with those around them, counted."""
    found = Counter()
    for event in events:
        path, at = [event.name], event.cpu_parent
        while at is not None:
            path.append(at.name)
            at = at.cpu_parent
        found[tuple(path)] += 1
    return found


@pytest.mark.parametrize("steps", [small_steps, big_steps])
def test_short_ways_write_what_long_ones_do(steps):
    with profile(activities=CPU) as short:
        steps()
    # Shapes are read from tensors, of which the short ways make fewer.
    with profile(activities=CPU, record_shapes=True) as long:
        steps()
    assert nesting(short.events()) == nesting(long.events())


def test_short_ways_compute_what_unwatched_ones_do():
    expected = small_steps()
    with profile(activities=CPU, profile_memory=True):
        found = small_steps()
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("steps", [small_steps, big_steps])
def test_events_lie_in_those_around_them_and_siblings_follow_each_other(steps):
    with profile(activities=CPU, with_modules=True) as prof, record_function("all"):
        steps()
    last = {}
    for event in prof.events():
        begin, end = event.time_range.start, event.time_range.end
        assert begin <= end
        around = event.cpu_parent
        if around is not None:
            assert around.time_range.start <= begin
            assert end <= around.time_range.end
        assert last.get(id(around), 0) <= begin
        last[id(around)] = end
        assert event.self_cpu_time_total >= 0


@pytest.mark.at_once
def test_a_rule_of_one_operation_begins_with_it():
    x = clew.ones(8, 8, requires_grad=True)
    y = x.tanh()
    with profile(activities=CPU) as prof:
        y.backward(clew.ones(8, 8))
    (rule,) = [e for e in prof.events() if e.name == "TanhBackward0"]
    assert [e.name for e in rule.cpu_children] == ["_tanh_backward"]
    assert rule.cpu_children[0].time_range.start == rule.time_range.start


def test_rules_follow_each_other_without_a_gap():
    x = clew.ones(8, 8, requires_grad=True)
    y = x.tanh().tanh()
    with profile(activities=CPU) as prof:
        y.sum().backward()
    first, second = (e for e in prof.events() if e.name == "TanhBackward0")
    assert first.time_range.end == second.time_range.start


@pytest.mark.parametrize("where", ["tensor", "leaf", "node", "after"])
def test_what_hooks_take_counts_for_no_rule_that_follows(where):
    x = clew.ones(8, 8, requires_grad=True)
    middle = x.tanh()
    out = middle.tanh()

    def pause(*_):
        time.sleep(0.03)

    if where == "tensor":
        middle.register_hook(pause)
    elif where == "leaf":
        x.register_hook(pause)
    elif where == "node":
        middle.grad_fn.register_prehook(pause)
    else:
        x.register_post_accumulate_grad_hook(pause)
    with profile(activities=CPU) as prof:
        out.sum().backward()
    rules = [e for e in prof.events() if e.name.endswith("Backward0")]
    sums = [e for e in prof.events() if e.name == "AccumulateGrad"]
    assert len(rules) == 3 and len(sums) == 1
    # What the sum itself calls belongs to it.
    shown = rules if where == "after" else rules + sums
    assert all(e.cpu_time_total < 20_000 for e in shown)
    (whole,) = [e for e in prof.events() if e.name == "backward"]
    assert whole.cpu_time_total >= 30_000


def test_a_range_may_last_longer_than_a_length_holds():
    # Lengths have 32 bits: 1.4 seconds of a counter of three gigahertz.
    with profile(activities=CPU) as prof:
        begun = time.perf_counter()
        with record_function("outer"), record_function("inner"):
            time.sleep(1.8)
        taken = time.perf_counter() - begun
        clew.ones(2).exp()
    outer, inner = (e for e in prof.events() if e.name in ("outer", "inner"))
    assert 1.79e6 <= inner.cpu_time_total <= outer.cpu_time_total <= 1.01e6 * taken
    (after,) = [e for e in prof.events() if e.name == "exp"]
    assert after.cpu_parent is None


def test_numbers_of_nodes_from_before_the_recording():
    x = clew.ones(3, requires_grad=True)
    old = x.exp()
    for _ in range(50):
        x.exp()
    with profile(activities=CPU) as prof:
        new = old.exp()
        new.sum().backward()
    nodes = [e for e in prof.events() if e.name == "ExpBackward0"]
    numbers = [new.grad_fn._sequence_nr(), old.grad_fn._sequence_nr()]
    assert [e.sequence_nr for e in nodes] == numbers
    (forward,) = [e for e in prof.events() if e.name == "exp"]
    assert forward.sequence_nr == numbers[0]


def test_lines_of_functions_of_the_library():
    x, y = clew.ones(4), clew.zeros(4)
    loss = nn.SmoothL1Loss()
    with profile(activities=CPU) as prof:
        for _ in range(3):
            F.smooth_l1_loss(x, y)
            F.smooth_l1_loss(y, x)
            loss(x, y)
    found = Counter(
        (e.place.location.source, e.place.module_type)
        for e in prof.events()
        if e.name == "_smooth_l1_loss"
    )
    assert found == {
        ("F.smooth_l1_loss(x, y)", None): 3,
        ("F.smooth_l1_loss(y, x)", None): 3,
        ("loss(x, y)", "SmoothL1Loss"): 3,
    }


def test_one_line_in_several_modules():
    class Twice(nn.Module):
        def forward(self, x):
            return x.exp()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Twice(), Twice()

        def forward(self, x):
            return self.second(self.first(x))

    net = Net()
    with profile(activities=CPU) as prof:
        for _ in range(2):
            net(clew.ones(2))
    found = Counter(e.place.module for e in prof.events() if e.name == "exp")
    assert found == {"first": 2, "second": 2}


def test_places_that_are_switched_off_meanwhile():
    def step():
        return clew.ones(2).exp()

    with profile(activities=CPU) as prof:
        step()
        clew._C._enable_provenance(False)
        try:
            step()
        finally:
            clew._C._enable_provenance(True)
        step()
    places = [e.place.location for e in prof.events() if e.name == "exp"]
    assert [at is None for at in places] == [False, True, False]


def test_many_lines():
    # More than the tables of lines seen lately hold.
    body = "\n".join(f"x.exp() if {i} else x.sin()" for i in range(1, 700))
    program = compile(body, "many.py", "exec")
    with profile(activities=CPU) as prof:
        for _ in range(2):
            exec(program, {"x": clew.ones(2)})
    lines = [e.place.location.line for e in prof.events() if e.name == "exp"]
    assert lines == [*range(1, 700), *range(1, 700)]


def test_more_records_than_one_piece_of_memory_holds():
    x = clew.ones(2)
    with profile(activities=CPU) as prof:
        for _ in range(3):
            with record_function("part"):
                for _ in range(100_000):
                    x.exp()
    events = prof.events()
    counts = Counter(e.name for e in events)
    assert counts == {"part": 3, "exp": 300_000}
    assert {len(e.cpu_children) for e in events if e.name == "part"} == {100_000}


def test_threads_have_their_own_nesting():
    def work():
        with record_function(threading.current_thread().name):
            for _ in range(50):
                clew.ones(4).exp()
                time.sleep(0)

    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(2)]
    with profile(activities=CPU) as prof:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    exps = [e for e in prof.events() if e.name == "exp"]
    assert Counter(e.cpu_parent.name for e in exps) == {"worker 0": 50, "worker 1": 50}
    assert len({e.thread for e in exps}) == 2
    assert all(e.thread == e.cpu_parent.thread for e in exps)


def test_blocks_of_short_ways_belong_to_their_operations():
    x = clew.ones(8, 8, requires_grad=True)
    y, seed = x * x, clew.ones(8, 8)
    with profile(activities=CPU, profile_memory=True) as prof:
        y.backward(seed)
    products = [e for e in prof.events() if e.name == "mul"]
    # The second product may write over the gradient, unless somebody else has it, as here.
    assert [e.self_cpu_memory_usage for e in products] == [256, 256]
    (rule,) = [e for e in prof.events() if e.name == "MulBackward0"]
    assert [e.name for e in rule.cpu_children] == ["mul", "mul", "add"]
    assert rule.cpu_memory_usage == rule.self_cpu_memory_usage + 512
