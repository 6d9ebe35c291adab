"""Samples of autobatch.map that are closed because another one failed."""

from __future__ import annotations

import gc
import weakref

import pytest

import clew

pytest.importorskip("greenlet")


class Resource:
    """What a sample holds."""


def test_a_sample_may_ask_for_values_while_it_is_closed():
    held, closed = [], []

    def run(i):
        resource = Resource()
        held.append(weakref.ref(resource))
        x = clew.ones(2) * i
        if x.sum().item() == 4:
            raise KeyError("two")
        try:
            x = x + 1
            x.sum().item()
        finally:
            closed.append((i, (x * 2).sum().item()))

    with pytest.raises(KeyError, match="two"):
        clew.autobatch.map(run, range(5))
    assert closed == [(0, 4), (1, 8)]  # the others had not come so far
    gc.collect()
    assert all(ref() is None for ref in held)


def test_a_sample_that_goes_on_although_it_is_closed_runs_to_its_end():
    ended = []

    def run(i):
        x = clew.ones(2) * i
        for _ in range(3):
            try:
                if x.sum().item() == 4:
                    raise KeyError("two")
            except BaseException as error:
                if i == 2:
                    raise
                assert type(error).__name__ == "GreenletExit"
            x = x + 10
        ended.append(i)

    with pytest.raises(KeyError, match="two"):
        clew.autobatch.map(run, range(4))
    assert ended == [0, 1, 3]


def test_errors_of_closing_do_not_keep_others_open():
    closed = []

    def run(i):
        x = clew.ones(2) * i
        try:
            if x.sum().item() == 2:
                raise KeyError("one")
            x.max().item()
        finally:
            closed.append(i)
            if i == 2:
                raise ValueError("while closing")

    with pytest.raises(KeyError, match="one") as caught:
        clew.autobatch.map(run, range(4))
    assert closed == [1, 0, 2, 3]
    assert caught.value.__notes__ == [
        "in sample 1 of autobatch.map",
        "sample 2 raised ValueError when it was closed: while closing",
    ]
    assert clew.autobatch.map(lambda x: (x * 2).sum().item(), [clew.ones(2)] * 2) == [4, 4]


def test_an_interrupt_between_samples_closes_all(monkeypatch):
    """One that is left parked would switch its modes on when it is freed, whoever runs then."""
    from clew._program import autobatch

    closed = []

    def run(i):
        try:
            (clew.ones(2) * i).sum().item()
        finally:
            closed.append(i)

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(autobatch, "_run_parked", interrupted)
    try:
        clew.autobatch.map(run, range(4))
    except KeyboardInterrupt as error:
        assert not getattr(error, "__notes__", [])  # it is no sample's
    monkeypatch.undo()
    assert closed == [0, 1, 2, 3]
    gc.collect()
    assert not clew._C._gathers() and not clew._C._parks()
    assert clew.autobatch.map(lambda i: (clew.ones(1) * i).item(), range(3)) == [0, 1, 2]


@pytest.mark.parametrize("region", [clew.autobatch, clew.deferred])
def test_a_region_that_an_interrupt_kept_from_being_left_ends(region):
    class Cut(region):
        def __exit__(self, *error):
            raise KeyboardInterrupt

    x = clew.ones(3)
    try:
        with Cut():
            y = x * 2
    except KeyboardInterrupt:
        pass
    assert not clew._C._gathers()
    assert clew._C._defer(None) is None
    assert y.tolist() == [2, 2, 2]
