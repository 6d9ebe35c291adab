"""Random programs give the same bits whether their calls wait or not."""

from __future__ import annotations

import pytest

import clew
from program import random_passes
from program.random_programs import compare

PROGRAMS, BLOCK = 300, 25


@pytest.mark.parametrize("block", range(PROGRAMS // BLOCK))
def test_waiting_changes_nothing(block):
    threads = clew.get_num_threads()
    try:
        for seed in range(block * BLOCK, (block + 1) * BLOCK):
            compare(seed, 1 + seed % 2)
    finally:
        clew.set_num_threads(threads)


@pytest.mark.parametrize("block", range(PROGRAMS // BLOCK))
def test_passes_over_rows_change_nothing(block):
    threads = clew.get_num_threads()
    try:
        for seed in range(block * BLOCK, (block + 1) * BLOCK):
            random_passes.compare(seed, 1 + seed % 2)
    finally:
        clew.set_num_threads(threads)
