"""Paths for the suites, and the same random numbers for every test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent / part) for part in ("", "ops", "amp")]


@pytest.fixture(autouse=True)
def _seed():
    import clew

    clew.manual_seed(0)
