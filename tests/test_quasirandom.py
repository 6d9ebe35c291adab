"""Sobol points: those of the sequence's definition, however they are drawn."""

from __future__ import annotations

import time

import numpy as np
import pytest

import clew
from clew.quasirandom import SobolEngine

qmc = pytest.importorskip("scipy.stats.qmc")


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_points_are_scipys(dimension):
    want = qmc.Sobol(dimension, scramble=False).random_base2(6)
    engine = SobolEngine(dimension)
    parts = [engine.draw(n) for n in (1, 2, 5, 24, 32)]
    np.testing.assert_allclose(clew.cat(parts).numpy(), want)
    assert engine.num_generated == 64
    engine.reset()
    np.testing.assert_allclose(engine.draw_base2(6, dtype=clew.float64).numpy(), want)


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("left_out", [0, 1, 2, 7, 8, 30])
def test_left_out_points_are_those_that_would_be_drawn(scramble, left_out):
    plain, forward = (SobolEngine(3, scramble, seed=5) for _ in range(2))
    want = plain.draw(40)
    assert forward.draw(3).equal(want[:3])
    assert forward.fast_forward(left_out) is forward
    assert forward.draw(7).equal(want[3 + left_out : 10 + left_out])


def test_many_points_are_left_out_at_once():
    engine, start = SobolEngine(1000), time.monotonic()
    engine.fast_forward(2**30 - 3)  # a loop would take hours, a table of them 8 TB
    assert time.monotonic() - start < 5
    last = engine.draw(3, dtype=clew.float64)
    assert last.shape == (3, 1000) and engine.num_generated == 2**30
    # The first dim's points are the Gray codes of their numbers with the digits turned round.
    codes = [k ^ k >> 1 for k in range(2**30 - 3, 2**30)]
    want = [int(f"{code:030b}"[::-1], 2) / 2**30 for code in codes]
    assert last[:, 0].tolist() == want
    with pytest.raises(RuntimeError, match="no more points"):
        engine.draw(1)
    with pytest.raises(RuntimeError, match="no more points"):
        engine.fast_forward(1)


@pytest.mark.parametrize("n", [1.5, "a", None, True])
def test_a_number_of_points_is_an_int(n):
    engine = SobolEngine(2)
    for call in (engine.draw, engine.fast_forward, engine.draw_base2):
        with pytest.raises(TypeError, match=r"SobolEngine\.\w+\(\): argument '[nm]' must be int"):
            call(n)


def test_a_number_of_points_is_not_negative():
    engine = SobolEngine(2)
    assert engine.draw(0).shape == (0, 2) and engine.num_generated == 0
    for call in (engine.draw, engine.fast_forward):
        with pytest.raises(RuntimeError, match=r"SobolEngine\.\w+: n must not be negative; got -1"):
            call(-1)
    with pytest.raises(ValueError, match=r"SobolEngine\.draw_base2: m must be in \[0, 30\]"):
        engine.draw_base2(-1)
    with pytest.raises(TypeError, match=r"SobolEngine\(\): argument 'dimension' must be int"):
        SobolEngine(1.5)
