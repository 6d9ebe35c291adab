"""Two tools at once: none switches another off, in whatever order they begin and end."""

from __future__ import annotations

import itertools

import pytest

import clew
from clew import nn
from clew._insight.debug.hooks import Patches


class Doctor:
    """Finds a softmax before cross_entropy."""

    def __init__(self, folder):
        self.tool = clew.debug.doctor(quiet=True)

    def start(self):
        self.tool.__enter__()

    def stop(self):
        self.tool.__exit__(None, None, None)
        return [found.mistake for found in self.tool.findings] == ["softmax before cross_entropy"]


class Watch(Doctor):
    """Finds the step's one infinity."""

    def __init__(self, folder):
        self.tool = clew.debug.nan_watch(action="record")

    def stop(self):
        self.tool.__exit__(None, None, None)
        return "log" in [found.operation for found in self.tool.found]


class Record(Doctor):
    """Saves the step that raises."""

    def __init__(self, folder):
        self.path = folder / "crash.clew"
        self.tool = clew.debug.record(steps=2, path=str(self.path))

    def stop(self):
        error = ValueError("stop")
        self.tool.__exit__(ValueError, error, None)
        return self.path.exists()


class Profiler(Doctor):
    """Sees the operations and their gradient rules."""

    def __init__(self, folder):
        self.tool = clew.profiler.profile(activities=[clew.profiler.ProfilerActivity.CPU])

    def stop(self):
        self.tool.__exit__(None, None, None)
        names = [event.name for event in self.tool.events()]
        return "aten::log" in names or "log" in names


class Anomaly(Doctor):
    """Is on until its end."""

    def __init__(self, folder):
        self.tool = clew.autograd.detect_anomaly()

    def stop(self):
        on = clew.is_anomaly_enabled() and bool(clew._C._set_anomaly(True))
        self.tool.__exit__(None, None, None)
        return on


class Observed(Doctor):
    """Keeps every value."""

    def __init__(self, folder):
        pass

    def start(self):
        from clew._insight.debug.observing import Observation

        self.seen = []
        self.tool = Observation(lambda name, given, got: self.seen.append(name), {"log"})

    def stop(self):
        self.tool.close()
        return {"log", "backward"} <= set(self.seen)


TOOLS = [Doctor, Watch, Record, Profiler, Anomaly, Observed]


def train(steps=3):
    clew.manual_seed(0)
    net = nn.Linear(4, 3)
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    x, y = clew.randn(6, 4), clew.arange(6) % 3
    for _ in range(steps):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x).softmax(1), y).backward()
        opt.step()
    clew.zeros(2).log()


@pytest.mark.parametrize(
    ("first", "second"),
    list(itertools.product(TOOLS, repeat=2)),
    ids=lambda tool: tool.__name__,
)
@pytest.mark.parametrize("nested", [True, False], ids=["nested", "crossed"])
def test_both_see_everything(first, second, nested, tmp_path):
    same = first is second
    if same and (first in (Profiler, Watch) or (first is Anomaly and not nested)):
        pytest.skip("a second profiler raises; of the others the inner one is what holds")
    (tmp_path / "1").mkdir()
    one, two = first(tmp_path), second(tmp_path / "1")
    one.start()
    train()  # what begins later leaves what was seen before
    two.start()
    train()
    results = [t.stop() for t in ((two, one) if nested else (one, two))]
    assert results == [True, True]
    # All is as before.
    assert not clew.is_anomaly_enabled()
    clew._C._observe(None, frozenset())


@pytest.mark.parametrize("first", [Doctor, Record, Observed])
@pytest.mark.parametrize("second", [Doctor, Record, Observed])
def test_the_end_of_one_does_not_end_the_other(first, second, tmp_path):
    one, two = first(tmp_path), second(tmp_path)
    one.start()
    two.start()
    two.stop()
    train()
    assert one.stop()


def test_patches_are_taken_out_in_any_order():
    class Owner:
        def call(self):
            return ["own"]

    own = Owner.__dict__["call"]
    for order in itertools.permutations(range(3)):
        patches = [Patches() for _ in range(3)]
        for i, each in enumerate(patches):
            each.put(Owner, "call", lambda original, owner, i=i: [i, *original(owner)])
        left = [2, 1, 0]
        assert Owner().call() == [*left, "own"]
        for i in order:
            patches[i].remove()
            left.remove(i)
            assert Owner().call() == [*left, "own"]
        assert Owner.__dict__["call"] is own
