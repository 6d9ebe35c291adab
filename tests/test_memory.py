"""apply_, map_, and the memory behind tensors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

import clew


def test_apply_and_map():
    x = clew.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda v: v * v) is x
    assert x.tolist() == [[1, 4], [9, 16]]
    t = x.t()  # a view, not contiguous
    t.map_(clew.tensor([10, 20]), lambda a, b: a - b)
    assert x.tolist() == [[-9, -6], [-11, -4]]
    b = clew.tensor([True, False])
    assert b.apply_(lambda v: not v).tolist() == [False, True]
    assert clew.zeros(0).apply_(lambda v: 1 / 0).tolist() == []
    assert clew.tensor(2.0).apply_(lambda v: v + 1).item() == 3.0


def test_refusals():
    w = clew.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="detach"):
        w.apply_(lambda v: v)
    with pytest.raises(TypeError, match="detach"):
        clew.ones(2).map_(w, lambda a, b: a)
    with pytest.raises(TypeError, match="dtypes"):
        clew.ones(2).map_(clew.ones(2, dtype=clew.float64), lambda a, b: a)
    with pytest.raises(RuntimeError):
        clew.ones(2).map_(clew.ones(3), lambda a, b: a)
    with pytest.raises(TypeError):
        clew.ones(2).map_(3, lambda a, b: a)


@pytest.mark.usefixtures("young_heap")
def test_collection_while_an_object_of_a_class_set_later_dies():
    class Collects:
        def __del__(self):
            gc.collect()

    class Sub(clew.Tensor):
        pass

    for _ in range(50):
        t = clew.ones(3)
        t.__class__ = Sub
        t.__dict__["last"] = Collects()
        del t
    gc.collect()


# In a process of its own: what other tests left in the allocator would decide where blocks lie.
EMPTIED = """
import os, sys
import clew

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

elements = int(sys.argv[1])
count = (80 << 20) // (4 * elements)
kept, dropped = [], []
for k in range(count):  # those that stay lie between those that go
    dropped.append(clew.full((elements,), float(k)))
    if k % 50 == 0:
        kept.append(clew.full((elements,), -float(k)))
before = resident()
del dropped
cached = clew.memory_stats()["cached_bytes"]
clew.empty_cache()
left = clew.memory_stats()["cached_bytes"]
if elements > 10_000:
    assert before - resident() > 40 << 20
    assert cached - left > 60 << 20
elif elements < 256:  # they lie among objects: they stay, and are counted
    assert left > 60 << 20
elif elements < 1000:
    assert before - resident() > 40 << 20
    assert cached - left > 40 << 20
again = [clew.full((elements,), float(k)) for k in range(count)]
for i in (0, 1, count // 2, count - 1):
    assert again[i].eq(float(i)).all()
for i, t in enumerate(kept):
    assert t.eq(-50.0 * i).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it keeps freed memory")
@pytest.mark.parametrize("elements", [100, 700, 5_000, 250_000, 3_000_000])
def test_an_emptied_cache_gives_memory_back_and_serves_again(elements: int):
    run = subprocess.run(
        [sys.executable, "-c", EMPTIED, str(elements)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
