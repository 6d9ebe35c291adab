"""Who holds memory, and what grows from step to step."""

from __future__ import annotations

import functools
import gc
import os
import re
import threading

import pytest

import clew
from clew import nn

STATE: list[clew.Tensor] = []


def train(model, optimizer, keep=None):
    optimizer.zero_grad()
    loss = model(clew.ones(16, 100)).relu().sum()
    loss.backward(retain_graph=keep is not None)
    optimizer.step()
    if keep is not None:
        keep.append(loss)


@pytest.fixture
def model():
    gc.collect()
    return nn.Sequential(nn.Linear(100, 50), nn.BatchNorm1d(50))


@pytest.mark.at_once
def test_every_owner_has_its_bytes(model):
    optimizer = clew.optim.Adam(model.parameters())
    train(model, optimizer)
    mine = clew.ones(1000)  # noqa: F841
    out = model(clew.ones(16, 100))
    loss = (out * 2).exp().sum()  # noqa: F841
    table = clew.debug.memory()
    rows = {(h.kind, h.name): h for h in table}
    assert rows["parameters", "0.weight"].bytes == 100 * 50 * 4
    assert rows["gradients", "0.weight"].bytes == 100 * 50 * 4
    assert rows["optimizer", "Adam: exp_avg"].bytes == (100 * 50 + 3 * 50) * 4
    assert rows["buffers", "1.running_mean"].bytes == 200
    exp = rows["saved", "Exp"]
    assert exp.bytes == 16 * 50 * 4 and "test_memory_table.py" in exp.place
    assert rows["variables", "mine"].bytes == 4000
    assert table.by_kind()["optimizer"] == sum(h.bytes for h in table if h.kind == "optimizer")
    assert table[0].bytes == max(h.bytes for h in table)
    text = str(table)
    assert "0.weight" in text and "mine" in text and "parameters" in text


def test_blocks_count_once_and_views_not_at_all():
    x = clew.ones(500)
    y, z = x[:10], x.view(5, 100)  # noqa: F841
    before = sum(h.bytes for h in clew.debug.memory() if h.name in ("x", "y", "z"))
    assert before == 2000


def test_the_sum_is_what_the_allocator_counts():
    def counted():
        gc.collect()
        return clew.debug.memory().bytes, clew.memory_stats()["live_bytes"]

    before = counted()  # others may hold memory of NumPy's, which the allocator does not know
    model = nn.Sequential(nn.Linear(100, 50), nn.BatchNorm1d(50))
    train(model, clew.optim.SGD(model.parameters(), 0.1))
    table, live = (now - then for now, then in zip(counted(), before))
    assert live > 2 * 100 * 50 * 4 and table == pytest.approx(live, rel=0.1)


def test_nothing_grows_in_a_sound_loop(model):
    optimizer = clew.optim.Adam(model.parameters())
    for _ in range(2):
        train(model, optimizer)
    with clew.debug.leaks() as found:
        train(model, optimizer)
    assert len(found) == 0 and str(found) == "nothing grew"


def test_losses_kept_in_a_list(model):
    optimizer = clew.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(2):
        train(model, optimizer, losses)
    with clew.debug.leaks() as found:
        train(model, optimizer, losses)
    kinds = [g.holding.kind for g in found]
    assert "saved" in kinds and "variables" in kinds
    saved = next(g for g in found if g.holding.kind == "saved")
    assert "test_memory_table.py" in saved.holding.place and "item()" in saved.remedy
    kept = next(g for g in found if g.holding.kind == "variables")
    assert kept.holding.name.startswith("losses[") and "losses" in str(found)


@pytest.mark.at_once
def test_a_state_that_is_never_detached():
    w = clew.ones(50, 50, requires_grad=True)
    STATE[:] = [clew.ones(50)]

    def step():
        STATE[0] = (w @ STATE[0]).tanh()

    step()
    step()
    with clew.debug.leaks() as found:
        step()
    assert found[0].holding.kind == "saved" and "detach()" in found[0].remedy
    STATE.clear()


class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum = self.sum + value  # the line of the meter


def test_graphs_are_found_among_many_other_tensors(model):
    """Those without a graph, which a program may hold by the thousand."""
    x = clew.ones(8, model[0].in_features)
    model.sum, crowd = 0, iter(())
    for step in range(4):
        with clew.debug.leaks() as found:
            loss = model(x).square().mean()
            loss.backward()
            model.sum = model.sum + loss
            del loss
            crowd = iter([clew.ones(()) for _ in range(1000)])  # no variable leads to them
        if step >= 2:
            assert "Sequential.sum" in {g.holding.name for g in found if g.holding.kind == "graphs"}
    del crowd


def test_a_sum_of_losses_whose_graphs_go_on(model):
    """Backward has let go of what was saved: no bytes grow, but the graph does."""
    optimizer = clew.optim.SGD(model.parameters(), 0.1)
    total, meter, sums, model.sum = 0, Meter(), {"train": 0}, 0
    x = clew.ones(8, model[0].in_features)
    for step in range(4):
        with clew.debug.leaks() as found:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            total = total + loss  # the line of the variable
            meter.update(loss)
            sums["train"] += loss  # the line of the dict
            model.sum = model.sum + loss  # the line of the module
        if step >= 2:
            rows = {g.holding.name: g for g in found}
            assert sorted(rows) == [
                "Sequential.sum",
                "the variable meter.sum",
                "the variable sums['train']",
                "the variable total",
            ]
            growth = rows["the variable total"]
            assert growth.holding.kind == "graphs" and growth.holding.tensors >= 3
            assert "total = total + loss" in growth.holding.place
            assert "self.sum = self.sum + value" in str(rows["the variable meter.sum"])
            assert "loss.item()" in growth.remedy and "loss.item()" in str(found)
    del model.sum


def test_a_sum_of_numbers_and_of_one_step_does_not_grow(model):
    optimizer = clew.optim.SGD(model.parameters(), 0.1)
    numbers, detached = 0.0, 0.0
    for step in range(4):
        with clew.debug.leaks() as found:
            optimizer.zero_grad()
            of_step = 0
            for _ in range(3):
                loss = model(clew.ones(8, model[0].in_features)).square().mean()
                of_step = of_step + loss
            of_step.backward()
            optimizer.step()
            numbers += loss.item()
            detached = detached + loss.detach()
        if step >= 2:
            assert str(found) == "nothing grew"


def test_what_no_variable_holds():
    hold = {}

    def closure(x):
        hold.setdefault("all", []).append(x)

    keeper = (lambda kept: lambda t: kept.append(t))([])
    keeper(clew.ones(300))
    with clew.debug.leaks() as found:
        keeper(clew.ones(300))
        closure(clew.ones(200))
    names = {g.holding.kind: g.holding for g in found}
    assert names["unknown"].bytes == 1200
    assert names["variables"].name == "hold['all'][...]" and names["variables"].bytes == 800


@pytest.mark.skipif(
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 8 << 30, reason="a small machine"
)
def test_looking_at_variables_keeps_none_of_them():
    """Frames keep what `f_locals` showed; memory that a handler frees has to go."""
    big = clew.ones(100_000)
    known = locals()
    clew.debug.memory()
    assert known["big"] is big  # somebody's locals() stay
    del known
    clew.debug.memory()
    before = clew._C._memory_stats()["live_bytes"]
    del big
    assert before - clew._C._memory_stats()["live_bytes"] == 400_000


def test_an_allocation_that_fails_says_what_holds_memory():
    ballast = clew.ones(3_000_000)  # noqa: F841
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), hard))
    try:
        with pytest.raises(clew.OutOfMemoryError) as caught:
            clew.empty(4 << 30, dtype=clew.uint8)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    text = str(caught.value)
    assert "tried to allocate 4294967296 bytes" in text
    assert "what holds memory now" in text and "variables: ballast" in text
    with pytest.raises(clew.OutOfMemoryError) as caught:
        clew.empty(1 << 50, dtype=clew.uint8)
    assert "what holds memory" not in str(caught.value)
    assert re.search(r"this machine has \d+ GB in all", str(caught.value))


class Keeper:
    """Keeps tensors where no variable of the program leads."""

    def __init__(self):
        self.cache = {}


def test_what_no_variable_leads_to_is_told_by_who_holds_it():
    callbacks, keepers = [], {None: [Keeper()]}
    arrays = []

    def with_closure():
        t = clew.ones(1000, 3)
        callbacks.append(lambda: t.sum())

    def in_an_object():
        kept = keepers[None][0].cache
        kept[len(kept)] = clew.ones(1000, 5)

    def by_numpy():
        arrays.append(clew.ones(1000, 7).numpy())

    for step, holder in (
        (with_closure, "held by a closure of "),
        (in_an_object, "held by Keeper.cache[...]"),
        (by_numpy, "held outside of Python's objects, as by a NumPy array"),
    ):
        step()
        with clew.debug.leaks() as found:
            step()
        (growth,) = found
        assert growth.holding.kind == "unknown" and holder in growth.holding.name, str(growth)
    table = [h.name for h in clew.debug.memory() if h.kind == "unknown"]
    closure = next(name for name in table if "[1000, 3]" in name)
    assert "with_closure.<locals>.<lambda> at " in closure and "test_memory_table.py" in closure


def test_what_only_an_iterator_or_a_partial_function_holds():
    held = [iter([clew.ones(1000, 11)]), functools.partial(print, clew.ones(1000, 13))]
    table = {h.bytes: h.name for h in clew.debug.memory() if h.kind == "unknown"}
    assert "held by a list_iterator that no variable leads to" in table[44_000]
    assert "held by a partial that no variable leads to" in table[52_000]
    del held


def test_variables_of_other_threads_are_named():
    kept = [clew.ones(1000, 17)]
    limit, told = clew.memory_stats()["live_bytes"] + 100, []

    def ask():
        told.append(clew.debug.memory())
        with pytest.raises(clew.OutOfMemoryError) as refused, clew.memory_budget(limit):
            clew.ones(1000)
        told.append(str(refused.value))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert next(h for h in told[0] if h.bytes == 68_000).name == "kept[0]"
    assert "variables: kept[0]" in told[1]
    del kept


def test_a_dict_that_grows_is_one_row():
    cache = {i: clew.ones(100) for i in range(4)}
    with clew.debug.leaks() as found:
        cache |= {i: clew.ones(100) for i in range(4, 8)}
    assert [(g.holding.name, g.holding.tensors) for g in found] == [("cache[...]", 4)]
    del cache


def test_only_what_is_new_in_a_list_counts():
    kept = [clew.ones(100), clew.ones(100)]
    with clew.debug.leaks() as found:
        kept += [clew.ones(100), clew.ones(100)]
    assert [(g.holding.name, g.holding.bytes) for g in found] == [("kept[...]", 800)]
    del kept


def test_looking_leaves_no_trace_in_what_messages_tell():
    """A tensor made of plain numbers afterwards was said to have left a graph at the line that
    asked for the table."""
    kept = (clew.ones(3) * clew.ones(3, requires_grad=True)).sum()
    before = [leaving[:2] for leaving in clew._C._leavings()]
    clew.debug.memory()
    kept.untyped_storage().nbytes()
    assert [leaving[:2] for leaving in clew._C._leavings()] == before
    del kept


@pytest.mark.at_once
def test_what_waits_holds_nothing_and_goes_on_waiting():
    w = clew.ones(100, 100, requires_grad=True)
    with clew.autobatch():
        gathered = (w * 2).sum()
        names = {h.name for h in clew.debug.memory()}
        assert clew._C._is_pending(gathered)
    del gathered
    with clew.deferred(0):
        waiting = w.detach() * 3
        names |= {h.name for h in clew.debug.memory()}
        assert clew._C._is_pending(waiting)
    assert "w" in names and not names & {"gathered", "waiting"}
    assert "waiting" in {h.name for h in clew.debug.memory() if waiting.sum() == 30_000}
