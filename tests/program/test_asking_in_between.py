"""Code that runs in between, finalizers and signal handlers, asks for values that wait."""

from __future__ import annotations

import signal
import weakref

import pytest

import clew


def test_a_finalizer_of_a_dying_result_asks_for_values() -> None:
    class Reader:
        def __del__(self) -> None:
            (clew.ones(2) * 2).sum().item()

    for _ in range(20):
        with clew.autobatch():
            waiting = [(clew.ones(n + 3) * n) * 2 for n in range(10)]
            for t in waiting:
                t.reader = Reader()  # type: ignore[attr-defined]
            del t
            while waiting:
                waiting.pop()
            new = [clew.ones(n + 1) + n for n in range(10)]
        assert [x[0].item() for x in new] == [n + 1 for n in range(10)]


def test_a_weak_reference_to_a_dying_result_asks_for_values() -> None:
    seen = []
    for k in range(20):
        with clew.autobatch():
            y = clew.ones(3) * k
            r = weakref.ref(y, lambda _: seen.append((clew.ones(3) * 2).sum().item()))
            z = y + 1
            del y
        assert z.tolist() == [k + 1] * 3
        assert r() is None
    assert seen == [6] * 20


@pytest.mark.parametrize("region", ["autobatch", "deferred"])
def test_a_signal_handler_asks_for_what_is_being_computed(region: str) -> None:
    pending: list[clew.Tensor] = []
    refused = []

    def handler(*_: object) -> None:
        try:
            if pending:
                pending[-1].sum().item()
        except RuntimeError as error:
            refused.append(str(error))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    w = clew.randn(64, 64)
    try:
        for _ in range(10):
            with clew.autobatch() if region == "autobatch" else clew.deferred(least=0):
                for i in range(200):
                    pending.append((w * (i + 1)).sin() @ w)
                pending[-1].sum().item()
            pending.clear()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all("signal handler asked for values" in text for text in refused)
