"""The simulation of many ranks: against formulas, and the page against what was measured."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
from bench import scaling

FREE = scaling.Link(0.0, math.inf)
MACHINE = scaling.Machine("ideal", 1e12, math.inf, 8, FREE, FREE, math.inf)
NET = dataclasses.replace(scaling.HERE, layers=8, batch=64)
ALONE = 3 * NET.layers * NET.work(NET.batch) / MACHINE.rate


@pytest.mark.parametrize("way", scaling.WAYS.values())
def test_one_rank_takes_what_its_operations_take(way):
    assert way(NET, MACHINE, 1).seconds == pytest.approx(ALONE)


@pytest.mark.parametrize("way", [scaling.data, scaling.sharded, scaling.tensor])
def test_a_network_that_costs_nothing(way):
    assert way(NET, MACHINE, 8).seconds == pytest.approx(ALONE / 8)


def test_a_pipeline_leaves_its_share_unused():
    S, M = 4, 16
    took = scaling.pipeline(NET, MACHINE, S).seconds
    assert took == pytest.approx(ALONE / S * (M + S - 1) / M)


def test_costs_of_messages():
    slow = dataclasses.replace(MACHINE, near=scaling.Link(1e-3, 1e9), far=scaling.Link(1e-2, 1e8))
    n = 8e6
    assert slow.gather(8, n) == pytest.approx(3e-3 + 7 / 8 * n / 1e9)
    assert slow.sum(8, n) == pytest.approx(6e-3 + 2 * 7 / 8 * n / 1e9)
    assert slow.sum(8, 8) == pytest.approx(3e-3, rel=1e-3)  # at once
    # Two nodes: an eighth of the bytes for each of the ranks that share the way between them.
    assert slow.sum(16, n) == pytest.approx(
        slow.sum(8, n) + min(2e-2 + n / 8 * 8 / 1e8, 1e-2 + n / 8 * 8 / 1e8)
    )
    data = scaling.data(NET, slow, 64).seconds
    assert data > 0.9 * slow.sum(64, NET.parameters * 4)


def test_more_ranks_take_no_longer_without_a_network():
    for way in scaling.WAYS.values():
        times = [way(NET, MACHINE, 2**i).seconds for i in range(7)]
        assert times == sorted(times, reverse=True)


def test_the_page_is_made_of_what_was_measured():
    root = Path(scaling.ROOT)
    records = json.loads((root / "bench" / "results" / "scaling.json").read_text())
    assert (root / "docs" / "scaling.md").read_text() == scaling.page(records)
