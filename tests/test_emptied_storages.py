"""Storages whose memory a program gives back: resize_(0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew

GONE = "given back by resize_"


def test_an_emptied_storage_has_no_bytes_and_its_tensors_keep_their_shapes() -> None:
    w = clew.ones(3)
    view, s = w[1:], w.untyped_storage()
    assert s.resize_(0) is s
    assert (s.size(), s.nbytes(), len(s), s.data_ptr()) == (0, 0, 0, 0)
    assert w.untyped_storage().nbytes() == w.storage().size() == 0
    assert w.shape == (3,) and view.shape == (2,) and w.device.type == "cpu"
    s.resize_(12)
    w.copy_(clew.arange(3.0))
    assert s.nbytes() == 12 and view.tolist() == [1, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w + 1,
        lambda w: w.add_(1),
        lambda w: w.fill_(1),
        lambda w: w.copy_(clew.ones(3)),
        lambda w: w[0].item(),
        lambda w: w.tolist(),
        lambda w: w.numpy(),
        lambda w: w.data_ptr(),
        lambda w: w[1:].clone(),
        lambda w: repr(w),
        lambda w: clew.ones(3).copy_(w),
        lambda w: clew.save(w, __import__("io").BytesIO()),
    ],
)
def test_who_asks_for_an_element_is_told(use: Callable[[clew.Tensor], Any]) -> None:
    w = clew.ones(3)
    w.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=GONE):
        use(w)


def test_memory_is_given_back() -> None:
    big = clew.ones(1_000_000)
    before = clew.memory_stats()["live_bytes"]
    big.untyped_storage().resize_(0)
    assert before - clew.memory_stats()["live_bytes"] == 4_000_000
    big.storage().resize_(1_000_000)
    assert big.sum().item() == 0
    assert clew.memory_stats()["live_bytes"] == before


def test_what_was_saved_is_asked_for_in_backward() -> None:
    x = clew.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match=GONE):
        y.backward()


def test_a_call_that_waits_reads_before() -> None:
    with clew.deferred(least=0):
        x = clew.ones(3)
        y = x * 2
        x.untyped_storage().resize_(0)
    assert y.tolist() == [2, 2, 2]


def test_sizes_that_are_refused() -> None:
    w = clew.ones(3)
    s = w.untyped_storage()
    with pytest.raises(RuntimeError, match="must not be negative"):
        s.resize_(-1)
    s.resize_(0)
    s.resize_(0)
    with pytest.raises(RuntimeError, match="need 12 bytes"):
        s.resize_(4)
    s.resize_(100)
    assert s.nbytes() == 100
    shared = clew.ones(3)
    array = shared.numpy()
    with pytest.raises(RuntimeError, match="others hold"):
        shared.untyped_storage().resize_(0)
    assert array.tolist() == [1, 1, 1]
    assert clew.empty(0).untyped_storage().resize_(0).nbytes() == 0


def test_all_tensors_share_a_storage_that_has_grown() -> None:
    x = clew.arange(4.0)
    s, part = x.untyped_storage(), x[1:3]
    kept = (clew.ones(4, requires_grad=True) * x).sum()
    s.resize_(24)
    assert (s.nbytes(), x.untyped_storage().nbytes(), x.storage().size()) == (24, 24, 6)
    assert x.tolist() == [0, 1, 2, 3] and part.tolist() == [1, 2]
    s.fill_(0)
    assert x.tolist() == [0] * 4 and part.tolist() == [0, 0]
    part.fill_(5)
    assert s.tolist()[4:8] == list(clew.tensor([5.0]).untyped_storage().tolist())
    kept.backward()  # with what was there before it grew


def test_set_grows_the_storage_for_all() -> None:
    x = clew.ones(2)
    longer = clew.empty(0).set_(x.untyped_storage(), 0, (4,))
    assert longer.shape == (4,) and x.untyped_storage().nbytes() == 16
    longer.fill_(3)
    assert x.tolist() == [3, 3]
    y = clew.ones(2)
    strided = clew.empty(0).set_(y.storage(), 1, (3,), (2,))
    assert strided.stride() == (2,) and y.storage().size() == 6
    own = clew.ones(2)
    own.set_(own, 0, (5,), (1,))
    assert own[:2].tolist() == [1, 1] and own.untyped_storage().nbytes() == 20
    array = np.ones(2, np.float32)
    with pytest.raises(RuntimeError, match="others hold"):
        clew.empty(0).set_(clew.from_numpy(array), 0, (4,), (1,))
    # No elements, no bytes.
    assert clew.empty(0).set_(x, 100, (0, 3), (3, 1)).numel() == 0
    assert x.untyped_storage().nbytes() == 16
    with clew.deferred(least=0):
        z = clew.ones(2)
        doubled = z * 2
        clew.empty(0).set_(z, 0, (4,), (1,)).fill_(7)
    assert doubled.tolist() == [2, 2] and z.tolist() == [7, 7]


def test_a_storage_takes_its_values_in_one_argument() -> None:
    with pytest.raises(RuntimeError, match="FloatStorage: expected .* got 2 arguments"):
        clew.FloatStorage(2, 3)
