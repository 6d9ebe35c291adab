"""`clew run --memory`: the peak, who held it, and a program that is not disturbed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import clew
from clew import _C
from clew._insight.debug.peak import PeakWatch

SOURCE = """
import sys, torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256))
opt = torch.optim.Adam(net.parameters())
x = torch.randn(2048, 256)
for _ in range(3):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
print("done")
END
"""


def run(tmp_path, end, *options):
    path = tmp_path / "train.py"
    path.write_text(SOURCE.replace("END", end), encoding="utf-8")
    return run_with(tmp_path, *options, str(path))


def run_with(tmp_path, *words):
    env = {**os.environ, "PYTHONPATH": str(Path(clew.__file__).parents[1])}
    command = [sys.executable, "-m", "clew", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)


@pytest.mark.parametrize(
    ("end", "code"), [("", 0), ("raise ValueError('mine')", 1), ("sys.exit(7)", 7)]
)
def test_the_report_at_the_end(tmp_path, end, code):
    done = run(tmp_path, end, "--memory")
    assert done.returncode == code and done.stdout == "done\n", done.stderr
    assert ("mine" in done.stderr) == (code == 1)
    report = done.stderr[done.stderr.index("peak of the memory of tensors: ") :]
    # Parameters and two moments are 1.6 MB; x and what forward saves are five of x. Gradients are
    # not alive then: zero_grad took them before.
    peak = float(report.split()[6])
    assert report.split()[7] == "MB" and 12 < peak < 16
    share = int(report.split("when ")[1].split("%")[0])
    assert 85 <= share <= 100
    for kind in ("parameters", "optimizer", "saved", "variables"):
        assert kind in report
    assert "at train.py:9" in report and "Gelu" in report and "exp_avg_sq" in report
    assert str(tmp_path / "train.py") not in report


def test_one_option_at_a_time(tmp_path):
    done = run(tmp_path, "", "--memory", "--doctor")
    assert done.returncode == 2 and done.stdout == "" and "one of" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["/nope.py"], 2, "clew run: can't open file '/nope.py'\n"),
        (["-m"], 2, "clew run: -m needs the name of a module\n"),
        (["-m", "no_such_module"], 1, "No module named no_such_module\n"),
        (["-c", "1 +"], 1, "SyntaxError: invalid syntax\n"),
        (["-c", "import no_such"], 1, "ModuleNotFoundError: No module named 'no_such'\n"),
        (["--check", "/nope.py"], 2, "No such file or directory: '/nope.py'\n"),
    ],
)
def test_where_no_program_runs_there_is_the_error_alone(tmp_path, words, code, said):
    done = run_with(tmp_path, "--memory", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.endswith(said) and "peak of" not in done.stderr


@pytest.mark.parametrize(("text", "code"), [("", 0), ("raise SystemExit(3)", 3)])
def test_a_program_without_tensors_is_told_so(tmp_path, text, code):
    done = run_with(tmp_path, "--memory", "-c", text)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("peak of the memory of tensors: 0 B")


def test_a_moment_inside_of_the_program_is_seen(capsys):
    n = max(4_000_000, clew._C._memory_stats()["live_bytes"] // 16)  # beside what tests left alive

    def inner():
        for_a_while = clew.ones(n)
        return for_a_while.sum().item()

    with PeakWatch() as watch:
        inner()
        small = clew.ones(10)  # noqa: F841
    row = max(watch.table, key=lambda h: h.bytes if h.name == "for_a_while" else 0)
    assert (row.name, row.bytes) == ("for_a_while", 4 * n)
    # Tables have memory of NumPy's, too, which the allocator does not count.
    assert watch.peak >= 4 * n and watch.table.bytes >= 4 * n
    assert "test_run_memory" in watch.place.text
    assert capsys.readouterr().err == f"{watch}\n"


def test_nothing_is_left_behind():
    with pytest.raises(ZeroDivisionError), PeakWatch() as watch:
        1 / 0  # noqa: B018
    before = watch.peak
    x = clew.ones(3_000_000)
    assert watch.peak == before and x.numel()
    assert not clew.optim.optimizer._global_pre_hooks
    assert not clew.optim.optimizer._global_post_hooks


def test_the_same_bits_as_without():
    def losses():
        clew.manual_seed(0)
        net = clew.nn.Sequential(clew.nn.Linear(20, 30), clew.nn.Dropout(), clew.nn.Linear(30, 1))
        opt = clew.optim.Adam(net.parameters(), 0.01)
        found = []
        for _ in range(5):
            opt.zero_grad()
            loss = net(clew.randn(16, 20)).square().mean()
            loss.backward()
            opt.step()
            found.append(loss.item())
        return found

    want = losses()
    with PeakWatch():
        assert losses() == want
    assert _C._memory_stats()["live_bytes"] >= 0


def test_other_threads_are_looked_at_too():
    n, before = 3_000_000, threading.getprofile()

    def work():
        kept = [clew.ones(n) * 2]
        assert sys.getprofile() is None
        return kept

    with PeakWatch() as watch:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert threading.getprofile() is before
    assert watch.table.bytes >= 4 * n
    assert "in test_other_threads_are_looked_at_too.<locals>.work" in watch.place.text
