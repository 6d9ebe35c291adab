"""Who holds what grew: owners that are no variables, and the keepers of graphs."""

from __future__ import annotations

import subprocess
import sys
from collections import deque

import pytest

import clew
from clew import nn
from clew._insight.debug.memory import Count, Holding


def grown(step):
    step()
    step()
    with clew.debug.leaks() as found:
        step()
    return list(found)


class OfAClass:
    seen: list = []  # noqa: RUF012


class WithSlots:
    __slots__ = ("buffer", "empty")

    def __init__(self):
        self.buffer = []


QUEUE = deque()


def _of_a_class():
    return lambda: OfAClass.seen.append(clew.ones(1000)), "held by OfAClass.seen[...]"


def _in_a_slot():
    keepers = [[[[[WithSlots()]]]]]

    def step():
        keepers[0][0][0][0][0].buffer.append(clew.ones(1000))

    return step, "held by WithSlots.buffer[...]"


def _in_a_default():
    def step(kept=[]):  # noqa: B006
        kept.append(clew.ones(1000))

    return step, "held by a default argument of _in_a_default.<locals>.step at "


def _in_a_keyword_default():
    def step(*, kept=[]):  # noqa: B006
        kept.append(clew.ones(1000))

    return step, "held by a default argument of _in_a_keyword_default.<locals>.step at "


def _of_a_function():
    def step():
        step.kept = [*getattr(step, "kept", []), clew.ones(1000)]

    return step, "held by _of_a_function.<locals>.step.kept[...]"


def _in_a_generator():
    def steps():
        kept = []
        while True:
            kept.append(clew.ones(1000))
            yield

    run = steps()
    return lambda: next(run), "held by kept in _in_a_generator.<locals>.steps at "


def _in_a_traceback():
    errors = []

    def step():
        batch = clew.ones(1000)
        try:
            raise ValueError(batch.shape)
        except ValueError as error:
            errors.append(error)

    return step, "held by the traceback of a ValueError that is kept by a closure of "


@pytest.mark.parametrize(
    "case",
    [
        _of_a_class,
        _in_a_slot,
        _in_a_default,
        _in_a_keyword_default,
        _of_a_function,
        _in_a_generator,
        _in_a_traceback,
    ],
)
def test_the_owner_of_what_no_variable_leads_to(case):
    step, holder = case()
    (growth,) = grown(step)
    OfAClass.seen.clear()
    assert growth.holding.kind == "unknown" and holder in growth.holding.name, str(growth)


def test_a_deque_is_a_variable_like_a_list():
    (growth,) = grown(lambda: QUEUE.append(clew.ones(1000)))
    QUEUE.clear()
    assert growth.holding.kind == "variables" and growth.holding.name.startswith("QUEUE[")


def test_a_frozen_set_is_a_container_like_a_set():
    kept = frozenset([clew.ones(1003)])
    names = [h.name for h in clew.debug.memory() if h.bytes == 4012]
    assert names == ["kept[0]"] and len(kept) == 1


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(8, 16)
        self.state = clew.zeros(50, 16)

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


def test_who_keeps_a_graph_is_named():
    x = clew.ones(50, 8)
    model, cell, state = Recurrent(), nn.RNNCell(8, 16), {"h": clew.zeros(50, 16)}

    def carried_in_a_closure():
        state["h"] = cell(x, state["h"])

    linear, losses = nn.Linear(8, 16), []

    def retained():
        loss = linear(x).tanh().sum()
        loss.backward(retain_graph=True)
        losses.append(loss)

    (growth,) = grown(lambda: model(x) is None)
    assert growth.keeper == "Recurrent.state" and "kept by Recurrent.state" in str(growth)
    (growth,) = grown(carried_in_a_closure)
    assert growth.keeper == "the variable state['h']"
    kept = {g.keeper for g in grown(retained) if g.holding.kind == "saved"}
    assert kept == {"the variable losses[2]"}


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_that_keep_their_graph_are_named():
    linear, x = nn.Linear(8, 16), clew.ones(50, 8)

    def step():
        linear(x).square().sum().backward(create_graph=True)

    found = [g for g in grown(step) if g.holding.kind == "saved"]
    assert found
    assert {g.keeper for g in found} == {"the gradient of a leaf, made with create_graph=True"}


def test_the_last_memory_suffices_to_say_who_holds_it():
    program = """
import resource
import clew
from clew import nn

size = next(int(x.split()[1]) for x in open("/proc/self/status") if x.startswith("VmSize"))
limit = size * 1024 + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(20))
kept = []
try:
    while True:
        x = clew.ones(4200, 64)
        for layer in layers:
            x = layer(x).relu()
        kept.append(x.sum())
except clew.OutOfMemoryError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr
    assert "tried to allocate 1075200 bytes" in found.stdout
    assert "what holds memory now" in found.stdout
    assert "saved: Linear" in found.stdout


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_whose_graph_goes_on_are_named_once():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)), clew.ones(5, 8)

    def step():
        model(x).square().mean().backward(create_graph=True)

    found = grown(step)
    model.zero_grad()
    assert found
    assert {g.keeper for g in found} == {"the gradient of a leaf, made with create_graph=True"}


def test_the_order_in_which_owners_of_one_kind_are_met_is_no_growth():
    """Where two graphs saved one tensor the walk may come to either first."""
    before = Count()
    before.add_block(1, 100, "saved", "Mul", "here")
    before.add_block(1, 100, "saved", "Exp", "there")
    after = Count(before)
    after.add_block(1, 100, "saved", "Exp", "there")
    after.add_block(1, 100, "saved", "Mul", "here")
    after.add_block(1, 100, "variables", "x")
    after.add_block(2, 50, "saved", "Exp", "there")
    assert before.table() == (Holding("saved", "Mul", "here", 100, 1),)
    assert after.table() == (*before.table(), Holding("saved", "Exp", "there", 50, 1))
