"""Grad modes that a signal handler's exception, such as Ctrl-C, interrupts."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import time
from typing import Any

import pytest

import clew


@pytest.mark.skipif(os.name == "nt", reason="there is no interval timer")
@pytest.mark.parametrize("mode", [clew.no_grad, clew.enable_grad, clew.inference_mode])
def test_an_interrupt_leaves_the_mode_as_it_was(mode: Any):
    class Interrupt(Exception):
        pass

    armed = False

    def handler(*args: Any) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    interrupts = 0
    end = time.monotonic() + 0.3
    try:
        with clew.set_grad_enabled(mode is not clew.enable_grad):
            outside = clew.is_grad_enabled()
            signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.00037)
            while time.monotonic() < end:
                try:
                    armed = True
                    while True:
                        with mode():
                            pass
                except Interrupt:
                    interrupts += 1
                    assert clew.is_grad_enabled() is outside
                    assert not clew.is_inference_mode_enabled()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 20


def test_one_object_is_entered_again_copied_and_pickled():
    mode = clew.no_grad()
    with mode:
        with clew.enable_grad(), mode, pickle.loads(pickle.dumps(mode)), copy.deepcopy(mode):
            assert not clew.is_grad_enabled()
        assert not clew.is_grad_enabled()
    assert clew.is_grad_enabled()
    with clew.inference_mode(), clew.inference_mode(False):
        assert clew.is_grad_enabled()
    with pytest.raises(RuntimeError, match="left more often than entered"):
        mode.__exit__(None, None, None)
    assert clew.is_grad_enabled()
