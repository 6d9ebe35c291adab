"""clew.debug.record and clew replay: the step that goes wrong, saved and gone back to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew

PROGRAM = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(64, 4)
x[41] = 1e30
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(x, x[:, :1].clamp(-1, 1)), batch_size=8, shuffle=True)

def train():
    for epoch in range(3):
        for inputs, y in loader:
            opt.zero_grad()
            out = net(inputs)
            loss = (out - y).square().mean()
            print(f"{loss.item():.9g}", float(inputs.abs().max()) > 1e20)
            loss.backward()
            opt.step()
            if "once" in sys.argv:
                return

if "record" in sys.argv:
    with torch.debug.record("crash.clew", steps=3) as kept:
        train()
    print("saved:", kept.saved)
else:
    train()
"""


def run(tmp_path, *args):
    env = {**os.environ, "PYTHONPATH": str(Path(clew.__file__).parents[1])}
    command = [sys.executable, "-m", "clew", *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)


def test_a_crash_is_saved_and_replayed(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    done = run(tmp_path, "run", "train.py", "record")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.split("\n") if line.endswith("True")]
    assert "saved: the loss is inf" in done.stdout and lines
    assert "clew replay crash.clew" in done.stderr
    again = run(tmp_path, "replay", "--no-debugger", "crash.clew")
    assert "clew replay: step" in again.stderr and "the loss is inf" in again.stderr
    # The very step: nan_watch ends it where the infinity is born.
    assert again.returncode == 1 and "infinity was born here" in again.stderr
    assert "loss = (out - y).square().mean()" in again.stderr


def test_what_is_saved_gives_the_same_numbers(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM.replace("1e30", "30.0"), encoding="utf-8")
    text = (tmp_path / "train.py").read_text()
    # An exception in the twelfth step is what is saved.
    fails = text.replace(
        "            loss.backward()\n",
        "            train.n = getattr(train, 'n', 0) + 1\n"
        "            if train.n == 12 and 'record' in sys.argv:\n"
        "                raise KeyError('twelfth')\n"
        "            loss.backward()\n",
    )
    (tmp_path / "train.py").write_text(fails, encoding="utf-8")
    done = run(tmp_path, "run", "train.py", "record")
    assert done.returncode == 1 and "KeyError: 'twelfth'; the step is saved" in done.stderr
    last = done.stdout.split("\n")[11]
    step = clew.load(tmp_path / "crash.clew", weights_only=True)  # nothing but data
    assert step["number"] == 11 and len(step["batches"]) == 1
    step["arguments"] = ["once"]
    clew.save(step, tmp_path / "crash.clew")
    again = run(tmp_path, "replay", "--no-debugger", "crash.clew", "train.py")
    assert again.returncode == 0, again.stderr
    assert again.stdout.split("\n")[0] == last


def test_nothing_is_saved_when_nothing_goes_wrong(tmp_path):
    net = clew.nn.Linear(2, 1)
    opt = clew.optim.SGD(net.parameters(), lr=0.01)
    path = tmp_path / "crash.clew"
    with clew.debug.record(str(path), steps=4, limit=1000) as kept:
        for _ in range(10):
            opt.zero_grad()
            net(clew.ones(3, 2)).square().mean().backward()
            opt.step()
    assert kept.saved == "" and not path.exists() and len(kept._kept) <= 4
    assert not clew.optim.optimizer._global_post_hooks
    with pytest.raises(ValueError, match="record: steps"):
        clew.debug.record(steps=0)


def test_a_spike_is_saved(tmp_path):
    net = clew.nn.Linear(2, 1)
    opt = clew.optim.SGD(net.parameters(), lr=0.0)
    path = tmp_path / "crash.clew"
    with clew.debug.record(str(path)) as kept:
        for i in range(10):
            opt.zero_grad()
            (net(clew.ones(3, 2)).square().mean() * (1000 if i == 8 else 1)).backward()
            opt.step()
    assert "in step 8, the median is" in kept.saved and path.exists()
