"""Threads: waiting ones do not burn the processor, children of fork compute, counts agree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import clew

HOME = os.path.dirname(os.path.dirname(clew.__file__))

WAITING = """
import time
import clew
clew.set_num_threads(2)
x = clew.ones(4_000_000)
burnt = []
for _ in range(9):
    x + x
    before = time.process_time()
    time.sleep(0.1)
    burnt.append(time.process_time() - before)
print(sorted(burnt)[4] * 1000)
import os
assert "GOMP_SPINCOUNT" not in os.environ
"""


def run(program, **environment):
    kept = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**kept, "PYTHONPATH": HOME, **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_threads_that_wait_leave_the_processor_to_others():
    milliseconds = float(run(WAITING))
    assert milliseconds < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_after_the_parent_used_threads():
    x = clew.ones(500_000)
    want = (x * 2).sum().item()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        w = clew.ones(300, 300, requires_grad=True)
        (w @ w).sum().backward()
        p = clew.nn.Parameter(x.clone())
        p.grad = x.clone()
        clew.optim.Adam([p]).step()
        clew.nn.utils.clip_grad_norm_([p], 1.0)
        os.write(writer, str((x * 2).sum().item()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert float(os.read(reader, 100)) == want
    os.close(reader)
    os.close(writer)
    assert (x * 2).sum().item() == want


def test_equal_thread_counts_give_equal_bits():
    before = clew.get_num_threads()
    x = clew.randn(300, 1111)
    w = clew.randn(1111, 77)
    try:
        for n in (1, 2, 5, 8):
            clew.set_num_threads(n)

            def result():
                y = clew.nn.functional.softmax(x @ w, 1)
                return [*y.flatten(), x.sum(), x.sum(0)[7], x.var()]

            assert all(a.equal(b) for a, b in zip(result(), result(), strict=True))
    finally:
        clew.set_num_threads(before)


SMALL_STEPS = """
import time
import clew
clew.set_num_threads(2)
w = clew.randn(192, 64, requires_grad=True)
rows = [clew.randn(1, 64) for _ in range(512)]
def backward():
    sum(clew.nn.functional.linear(x, w).tanh().sum() for x in rows).backward()
backward()
burnt = []
for _ in range(9):
    time.sleep(0.05)
    before = time.process_time() - time.thread_time()
    backward()
    burnt.append(time.process_time() - time.thread_time() - before)
print(sorted(burnt)[7] * 1000)
"""


def test_small_products_gathered_by_backward_wake_no_thread():
    # A woken thread waits for more work, in a loop, for half a millisecond at least.
    assert float(run(SMALL_STEPS)) < 0.2


def test_gathered_products_leave_the_thread_count_alone():
    before = clew.get_num_threads()
    clew.set_num_threads(3)
    try:
        w = clew.randn(8, 8, requires_grad=True)
        linear = clew.nn.functional.linear
        clew.cat([linear(clew.randn(1, 8), w) for _ in range(200)]).sum().backward()
        assert clew.get_num_threads() == 3
    finally:
        clew.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_few_rows_on_many_threads(threads, turned):
    before = clew.get_num_threads()
    clew.manual_seed(0)
    clew.set_num_threads(threads)
    try:
        for m, k, n in (
            (128, 784, 512),
            (64, 500, 333),
            (192, 401, 900),
            (193, 401, 900),
            (7, 9999, 99),
        ):
            a, b, bias = clew.randn(m, k), clew.randn(n, k), clew.randn(n)
            b = b if turned else b.t().contiguous().t()
            got = clew.nn.functional.linear(a, b, bias)
            want = a.double() @ b.double().t() + bias.double()
            assert (got - want).abs().max() < 1e-5 * k**0.5 * 4
    finally:
        clew.set_num_threads(before)


@pytest.mark.parametrize(
    "shapes", [((2, 169, 300), (2, 300, 640)), ((16, 512, 300), (16, 300, 512))]
)
def test_products_of_a_batch_on_two_threads(shapes):
    # Each thread runs the same product of matrices at the same time.
    before = clew.get_num_threads()
    clew.set_num_threads(2)
    try:
        for dtype in (clew.bfloat16, clew.float16, clew.float32):
            for _ in range(3):
                a, b = (clew.randn(*s).to(dtype) for s in shapes)
                worst = ((a @ b).float() - a.float() @ b.float()).abs().max()
                assert worst < (0.5 if dtype == clew.bfloat16 else 0.1)
    finally:
        clew.set_num_threads(before)


def test_one_convolution_from_several_python_threads():
    x, w = clew.randn(4, 32, 28, 28), clew.randn(64, 32, 3, 3)
    bits = clew.randn(64, 300).bfloat16(), clew.randn(300, 256).bfloat16()

    def results():
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        loss = clew.nn.functional.conv2d(a, b, padding=1, stride=2).square().sum()
        return [*clew.autograd.grad(loss, [a, b]), (bits[0] @ bits[1]).float()]

    want = results()
    wrong = []

    def run():
        for _ in range(20):
            for got, expected in zip(results(), want, strict=True):
                if (got - expected).abs().max() > 1e-3 * expected.abs().max():
                    wrong.append(got.shape)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


AMONG_OTHERS = """
import os, statistics, subprocess, sys, time
import clew

x = clew.randn(300_000)
w = clew.randn(16, 64, 64)

def results():
    return [x.sum(), x.exp().var(), x.view(300, 1000).softmax(1).sum(0), w @ w, x.sort()[1]]

def timed(threads):
    clew.set_num_threads(threads)
    took = []
    for _ in range(100):
        before = time.perf_counter()
        x.exp()
        took.append(time.perf_counter() - before)
    return statistics.median(took)

clew.set_num_threads(2)
alone = results()
others = [
    subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())
]
try:
    one, two = zip(*((timed(1), timed(2)) for _ in range(5)))
    for _ in range(20):
        assert all(a.equal(b) for a, b in zip(alone, results()))
finally:
    for process in others:
        process.kill()
print(statistics.median(two) / statistics.median(one))
"""


def test_where_others_have_the_processors_nobody_waits_for_threads():
    # Waiting for a thread that comes a millisecond late took 15 times as long as one thread.
    assert float(run(AMONG_OTHERS)) < 5


HUGE = """
import clew
clew.set_num_threads(100_000)
assert clew.get_num_threads() == 100_000
x = clew.randn(300, 4000)
parts = (x.sum(), x.exp().sum(0)[7], x.view(-1).sort()[0][3], (x @ x.t()).trace(), x.var(1)[5])
clew.nn.functional.conv2d(clew.randn(2, 8, 20, 20), clew.randn(8, 8, 3, 3), stride=2)
assert all(p.isfinite() for p in parts)
table = clew.zeros(50, 64).index_add_(0, clew.randint(0, 50, (4000,)), clew.ones(4000, 64))
assert table.sum() == 4000 * 64
print(len(os.listdir("/proc/self/task")))
"""


def test_a_huge_thread_count_starts_a_sane_number_of_threads():
    assert int(run("import os\n" + HUGE)) < 100 + 2 * (os.cpu_count() or 1)


REFUSED = """
import resource, sys, threading
stack = 1 << 30  # of every thread, for programs that start with this limit
if resource.getrlimit(resource.RLIMIT_STACK)[0] != stack:
    resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.RLIM_INFINITY))
    os.execv(sys.executable, sys.orig_argv)
import clew
clew.set_num_threads(1)
clew.manual_seed(0)
x = clew.randn(1000, 300)
w = clew.ones(5, 3, 3, 3)
clew.set_num_threads(8)
before = len(os.listdir("/proc/self/task"))
def results():
    y = clew.nn.functional.conv2d(x.view(10, 3, 100, 100), w, stride=2)
    return [x.sum(), x.exp().var(), x.t() @ x, x.view(-1).sort()[1], y]
if LIMITED:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + stack // 2, resource.RLIM_INFINITY))
    try:
        threading.Thread(target=print).start()
        raise SystemExit("the limit does not hold")
    except RuntimeError:
        pass
bits = [r.sum().item() for r in results() for _ in range(3)]
print(bits, len(os.listdir("/proc/self/task")) > before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_where_the_system_refuses_threads_the_caller_computes_alone_with_equal_bits():
    def done(limited):
        program = f"import os\nLIMITED = {limited}\n" + REFUSED
        return run(program).replace("\n", "").rsplit(" ", 1)

    (free, threads), (limited, no_threads) = done(False), done(True)
    assert free == limited
    assert (threads, no_threads) == ("True", "False")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own():
    program = """
import os
import clew
clew.set_num_threads(2)
x = clew.randn(8_000_000)  # so long that threads are asked for whatever else runs
want = x.exp().sum()
count = lambda: len(os.listdir("/proc/self/task"))
assert count() > 1
child = os.fork()
if child == 0:
    alone = count() == 1 and clew.get_num_threads() == 2
    same = x.exp().sum().equal(want)
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if x.exp().sum().equal(want) else 1)
    below = os.waitpid(grandchild, 0)[1]
    os._exit(0 if alone and same and count() > 1 and below == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
assert x.exp().sum().equal(want)
"""
    run(program)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_other_threads_compute():
    program = """
import os, threading
import clew
clew.set_num_threads(2)
x = clew.randn(1_000_000)
want = x.exp().sum()
stop = False
def busy():
    while not stop:
        x.exp()
threads = [threading.Thread(target=busy) for _ in range(3)]
for t in threads:
    t.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0 if x.exp().sum().equal(want) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
for t in threads:
    t.join()
"""
    run(program)


def test_many_python_threads_compute_at_once():
    before = clew.get_num_threads()
    clew.set_num_threads(4)
    try:
        x = clew.randn(600_000)
        w = clew.randn(200, 300)
        results = lambda: [x.exp().sum(), w @ w.t(), x.sort()[0], x.view(600, 1000).softmax(1)]
        want = results()
        wrong = []

        def compute():
            for _ in range(3):
                wrong.extend(1 for a, b in zip(results(), want, strict=True) if not a.equal(b))

        threads = [threading.Thread(target=compute) for _ in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert not any(t.is_alive() for t in threads)
        assert not wrong
    finally:
        clew.set_num_threads(before)


def test_an_error_in_a_piece_reaches_the_caller():
    before = clew.get_num_threads()
    clew.set_num_threads(4)
    try:
        for place in (0, 999_999, 1_999_999):
            index = clew.zeros(2_000_000, dtype=clew.int64)
            index[place] = 7
            for _ in range(3):
                with pytest.raises(IndexError):
                    clew.ones(3)[index]
            index[place] = 2
            assert clew.ones(3)[index].sum() == 2_000_000
    finally:
        clew.set_num_threads(before)


BUSY_AT_EXIT = """
import threading
import clew
clew.set_num_threads(4)
x = clew.randn(200_000)  # not enough for other Python threads to be let in
def busy():
    while True:
        x.exp()
for _ in range(4):
    threading.Thread(target=busy, daemon=True).start()
x.exp().sum()
"""


def test_a_process_ends_while_threads_compute():
    for _ in range(3):
        run(BUSY_AT_EXIT)


@pytest.mark.parametrize(
    ("mounts", "cgroup", "files", "processors"),
    [
        ("", "", {}, None),
        ("garbage\n - \n1 2 3", "x\n:\n", {}, None),
        # The second version: one file, the process in a group of its own.
        (
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
            "0::/jobs/one\n",
            {"sys/fs/cgroup/jobs/one/cpu.max": "100000 100000\n"},
            1,
        ),
        # The limit of a group further up.
        (
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/jobs/one\n",
            {
                "sys/fs/cgroup/jobs/cpu.max": "50000 100000\n",
                "sys/fs/cgroup/jobs/one/cpu.max": "max 100000\n",
            },
            1,
        ),
        # Within a container the group is the mounted one.
        (
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/\n",
            {"sys/fs/cgroup/cpu.max": "120000 100000"},
            1,
        ),
        # No quota, an unreadable one, one of more processors than there are.
        (
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/\n",
            {"sys/fs/cgroup/cpu.max": "max 100000"},
            None,
        ),
        (
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/\n",
            {"sys/fs/cgroup/cpu.max": "many of them"},
            None,
        ),
        (
            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/\n",
            {"sys/fs/cgroup/cpu.max": "99999900000 100000"},
            None,
        ),
        # The first version: two files in the hierarchy of processors.
        (
            "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
            "5:memory:/elsewhere\n4:cpu,cpuacct:/box\n",
            {
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        (
            "32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            "4:cpu:/box\n",
            {
                "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        # A container without a name space of its own: the group's name is that of outside.
        (
            "32 23 0:28 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            "4:cpu:/docker/abc\n",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "20000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
    ],
)
def test_the_quota_of_a_control_group_counts(tmp_path, mounts, cgroup, files, processors):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    everything = len(os.sched_getaffinity(0))
    found = clew._C._usable_processors(str(tmp_path))
    assert found == (everything if processors is None else min(processors, everything))


def test_the_first_thread_count_follows_the_processors_and_the_environment():
    first = "import os, clew; print(clew.get_num_threads(), clew._C._usable_processors(''))"
    kept = {"OMP_NUM_THREADS": ""}
    count, usable = run(first, **kept).split()
    assert count == usable
    assert run(first, OMP_NUM_THREADS="7").split()[0] == "7"
    assert run(first, OMP_NUM_THREADS="3,2").split()[0] == "3"
    assert run(first, OMP_NUM_THREADS="nonsense").split()[0] == usable
    bound = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    assert run(bound + first, **kept).split()[0] == "1"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_threads_under_thread_sanitizer(tmp_path):
    top = Path(__file__).parent.parent
    sources = [top / "tests/native/pool.cpp"]
    sources += [
        top / f"csrc/base/{name}.cpp"
        for name in ("parallel", "pool", "processors", "long_work", "scratch")
    ]
    program = tmp_path / "pool"
    flags = ["-std=c++20", "-O1", "-fopenmp", "-fsanitize=thread", f"-I{top / 'csrc'}", "-pthread"]
    subprocess.run(["g++", *flags, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "ok\n", done.stderr


SECOND = """
import _xxsubinterpreters as interpreters
import clew
load = (
    "from importlib.util import module_from_spec, spec_from_file_location; "
    f"spec = spec_from_file_location('clew._C', {clew._C.__file__!r}); "
    "spec.loader.exec_module(module_from_spec(spec))"
)
second = interpreters.create()
try:
    interpreters.run_string(second, load)
except interpreters.RunFailedError as error:
    assert "ImportError" in str(error), error
else:
    raise AssertionError("loaded twice")
interpreters.destroy(second)
assert repr(clew.ones(2) + 1) == "tensor([2., 2.])"
"""


def test_a_second_interpreter_leaves_the_first_one_alone():
    pytest.importorskip("_xxsubinterpreters")
    run(SECOND)
