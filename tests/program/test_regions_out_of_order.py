"""Regions that do not end in the order in which they began, as those of coroutines."""

from __future__ import annotations

import asyncio

import pytest

import clew
from clew import _C


def is_on():
    least = _C._defer(None)
    _C._defer(least)
    return least is not None or _C._gathers()


REGIONS = {"deferred": lambda: clew.deferred(0), "autobatch": clew.autobatch}


@pytest.fixture(params=REGIONS)
def region(request):
    return REGIONS[request.param]


def test_after_the_last_region_nothing_waits(region):
    x = clew.ones(3)
    for outer in (0, 1):
        first, second, third = region(), region(), region()
        regions = [first, second, third]
        for r in regions:
            r.__enter__()
        y = x * 2
        for r in (first, third, second) if outer else (second, first, third):
            r.__exit__(None, None, None)
        assert not is_on()
        assert y.tolist() == [2, 2, 2]


def test_the_outermost_region_goes_on(region):
    with region():
        first, second = region(), region()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert is_on()
    assert not is_on()


def test_coroutines(region):
    async def task(k):
        with region():
            x = clew.ones(3) * k
            for _ in range(k):
                await asyncio.sleep(0)
                x = x + 1
        return x

    async def main():
        return await asyncio.gather(*(task(k) for k in (3, 1, 2)))

    found = asyncio.run(main())
    assert [x.tolist() for x in found] == [[6] * 3, [2] * 3, [4] * 3]
    assert not is_on()
