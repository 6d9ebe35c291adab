"""What the caching allocator keeps: bounded by what was live, by time, and by what there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew import _C

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="it keeps freed memory"),
]

MEASURE = """
import os, random, sys, threading
import clew
from clew import nn

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def check():
    peak = clew.memory_stats()["peak_bytes"]
    grown = resident() - before
    assert grown <= 1.3 * peak + (64 << 20), (grown >> 20, peak >> 20, clew.memory_stats())

clew.set_num_threads(1)
rnd = random.Random(0)
before = resident()
"""

VARYING = {
    "growing": """
for k in range(1, 120):
    x = clew.ones(80_000 * k); y = x * 2; z = y + x
    del x, y, z
check()
""",
    "random": """
live = []
for k in range(1500):
    live.append(clew.full((int(2 ** rnd.uniform(8, 22)),), float(k)))
    if len(live) > 40:
        live.pop(rnd.randrange(len(live)))
    if k % 100 == 0:
        check()
check()
""",
    "alternating": """
kept = []
for k in range(40):
    large = clew.ones(10_000_000)
    small = [clew.ones(3000 + 70 * k) for _ in range(400)]
    kept.append(small[k])
    del large, small
    check()
""",
    "kilobytes, then more": """
for n in (750, 300, 12_000, 1000):
    x = [clew.ones(n) for _ in range(40_000_000 // n)]
    del x
check()
""",
    "sequences": """
model = nn.LSTM(64, 128)
step = clew.optim.SGD(model.parameters(), lr=0.01)
for k in range(30):
    model(clew.randn(rnd.randrange(20, 500), 16, 64))[0].square().mean().backward()
    step.step(); step.zero_grad()
check()
""",
    "threads": """
def work(seed):
    rnd = random.Random(seed)
    for _ in range(200):
        x = clew.ones(int(2 ** rnd.uniform(10, 21))); y = x * 2; z = y.exp()
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
for t in threads: t.start()
for t in threads: t.join()
check()
""",
}


def run(code: str, timeout: float = 60) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE + code], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", VARYING)
def test_resident_memory_follows_what_was_live(name: str):
    run(VARYING[name])


def test_steady_steps_ask_the_system_for_nothing():
    run("""
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
step = clew.optim.Adam(model.parameters())
x = clew.randn(2000, 256)
for k in range(13):
    if k == 3:
        asked = clew.memory_stats()["fresh_bytes"]
    model(x).square().mean().backward()
    step.step(); step.zero_grad()
assert clew.memory_stats()["fresh_bytes"] == asked
check()
""")


def test_what_is_no_longer_used_goes_back():
    run("""
kept = clew.ones(1_000_000)
for n in (20_000_000, 500_000, 3_000, 700):  # 80 MB of each
    x = [clew.ones(n) for _ in range(20_000_000 // n)]
    del x
    assert resident() - before > 70 << 20
    clew._C._age_cache(8)
    assert resident() - before > 70 << 20, "what was live lately is kept"
    clew._C._age_cache(25)
    assert resident() - before < 40 << 20, (n, resident() - before)
    assert clew.memory_stats()["cached_bytes"] < 20 << 20
    assert kept.sum().item() == 1e6
""")


def test_a_smaller_working_set_shrinks_the_process():
    run("""
x = [clew.ones(1_000_000) for _ in range(20)]
del x
for _ in range(40):
    y = clew.ones(1_000_000) + 1
    clew._C._age_cache()
assert resident() - before < 40 << 20, resident() - before
""")


@pytest.mark.slow
def test_an_idle_process_gives_memory_back():
    run(
        """
import time
x = clew.ones(50_000_000)
del x
assert resident() - before > 150 << 20
for _ in range(60):
    time.sleep(1)
    if resident() - before < 40 << 20: break
else:
    raise AssertionError(resident() - before)
""",
        100,
    )


def test_the_end_of_a_process_that_caches_and_of_its_forks():
    run("""
x = clew.ones(20_000_000)
del x  # from now on a thread looks after what is cached
child = os.fork()
if child == 0:
    x = clew.ones(20_000_000)
    del x
    sys.exit(0)  # through the interpreter's end, unlike os._exit
assert os.waitpid(child, 0)[1] == 0
""")


def test_values_stay_whatever_is_cut_joined_and_given_back():
    run("""
live = {}
for k in range(4000):
    n = int(2 ** rnd.uniform(0, rnd.choice([8, 14, 18, 20])))
    live[k] = clew.full((n,), float(k), dtype=clew.float64)
    if len(live) > 60:
        for j in rnd.sample(sorted(live), rnd.randrange(1, 40)):
            assert (live.pop(j) == float(j)).all().item()
    if k % 100 == 0:
        clew._C._age_cache(rnd.randrange(1, 30))
    if k % 500 == 0:
        clew.empty_cache()
for j, t in live.items():
    assert (t == float(j)).all().item()
""")


def test_a_limit_of_the_address_space():
    run("""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
sizes = []
for n in (1_000_003, 30_000_000):
    live = []
    try:
        while True:
            live.append(clew.empty(n))
    except clew.OutOfMemoryError:
        sizes.append(4 * n * len(live))
    del live
assert min(sizes) > 900 << 20, sizes  # what one size had serves the next
assert clew.ones(1000).sum().item() == 1000
""")


def written(root: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return str(root)


MACHINE = "MemTotal: 8000 kB\nMemFree: 100 kB\nMemAvailable: 6000 kB\nSwapFree: 10 kB\n"


def test_what_the_machine_has(tmp_path: Path):
    none = 2**63 - 1
    assert _C._available_memory(str(tmp_path)) == (none, none, none)
    root = written(tmp_path, {"proc/meminfo": MACHINE})
    assert _C._available_memory(root) == (8000 << 10, 6000 << 10, none)


def test_what_control_groups_grant(tmp_path: Path):
    second = written(
        tmp_path / "v2",
        {
            "proc/meminfo": MACHINE,
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.current": "1\n",
            "sys/fs/cgroup/a/memory.max": f"{1000 << 10}\n",
            "sys/fs/cgroup/a/memory.current": f"{700 << 10}\n",
            "sys/fs/cgroup/a/memory.stat": f"anon 1\ninactive_file {40 << 10}\nactive_file 0\n",
        },
    )
    assert _C._available_memory(second) == (1000 << 10, 340 << 10, 350 << 10)
    # In a container the path is the host's, and the group's files lie at the top.
    first = written(
        tmp_path / "v1",
        {
            "proc/meminfo": MACHINE,
            "proc/self/cgroup": "5:cpu:/x\n4:hugetlb,memory:/docker/abc\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2000 << 10}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{500 << 10}\n",
            "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 1024\ntotal_active_file 0\n",
        },
    )
    assert _C._available_memory(first) == (2000 << 10, 1501 << 10, 1511 << 10)


def test_more_than_there_is_raises():
    for count in (2**40, 2**45, 2**58):
        with pytest.raises(clew.OutOfMemoryError, match="tried to allocate"):
            clew.empty(count)
