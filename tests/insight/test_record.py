"""clew.debug.record and clew replay: the step that goes wrong, saved and gone back to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clew
from clew import nn

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


SLICED = """
import sys, torch
from torch import nn
torch.manual_seed(2)
net = nn.LSTM(3, 6, batch_first=True)
head = nn.Linear(6, 1)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
x = torch.randn(20, 8, 5, 3)
y = x.sum(-1, keepdim=True) * 0.3
y[17] *= 40
with torch.debug.record("crash.clew", steps=8) as kept:
    state = None
    for i in range(20):
        out, state = net(x[i], state)
        state = tuple(s.detach() for s in state)
        LOSS
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"{loss.item():.6g} {out.sum().item():.6g}")
"""


def replayed(tmp_path, text):
    """Runs a program that is recorded, and its replay."""
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    done = run(tmp_path, "run", "train.py")
    saved = (tmp_path / "crash.clew").read_bytes()
    again = run(tmp_path, "replay", "--no-debugger", "crash.clew")
    assert (tmp_path / "crash.clew").read_bytes() == saved  # a replay is no new crash
    return done, again


def test_a_spike_is_gone_back_to_with_the_targets_that_losses_got(tmp_path):
    loss = "loss = nn.functional.mse_loss(head(out), y[i])"
    done, again = replayed(tmp_path, SLICED.replace("LOSS", loss))
    spike = done.stdout.split("\n")[17].split()[0]
    assert f"the loss is {spike} in step 17" in done.stderr
    assert again.returncode == 1 and again.stdout == ""
    assert f"clew replay: this is the step: the loss is {spike}" in again.stderr
    assert "loss.backward()" in again.stderr


def test_what_the_file_has_not_is_told(tmp_path):
    # A model that reads a number of the program's.
    scaled = """
class Scaled(nn.Linear):
    def forward(self, h):
        return super().forward(h) * (1.0 if i != 17 else 40.0)
head = Scaled(6, 1)
"""
    loss = "loss = nn.functional.mse_loss(head(out), y[i])"
    text = SLICED.replace("head = nn.Linear(6, 1)\n", scaled).replace("y[17] *= 40\n", "")
    done, again = replayed(tmp_path, text.replace("LOSS", loss))
    line = done.stdout.split("\n")[17].split()
    assert f"the loss is {again.stdout.split()[0]}, in the saved step it was {line[0]}" in (
        again.stderr
    )
    # What the model made is all the same.
    assert again.stdout.split()[1] == line[1] and "this is the step" not in again.stderr


def test_several_models_and_optimizers(tmp_path):
    text = """
import torch
from torch import nn
torch.manual_seed(0)
def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 8), nn.ReLU(), nn.Linear(8, o))
actor, one, two = mlp(3, 2), mlp(3, 1), mlp(3, 1)
scale = torch.zeros(1, requires_grad=True)
oa, o1, o2, os = (torch.optim.Adam(p, 1e-2) for p in
    (actor.parameters(), one.parameters(), two.parameters(), [scale]))
criterion = nn.MSELoss()
def train():
    for step in range(9):
        s = torch.randn(20, 3)
        r = s.sum(1, keepdim=True)
        l2, l1 = criterion(two(s), r), criterion(one(s), r)
        for o, l in ((o2, l2), (o1, l1)):
            o.zero_grad(); l.backward(); o.step()
        la = (scale.exp() * actor(s).pow(2).mean() - scale).sum()
        oa.zero_grad(); os.zero_grad(); la.backward(); oa.step(); os.step()
        sums = [o.state_dict()["state"][0]["exp_avg"].sum().item() for o in (oa, o1, o2, os)]
        print(l1.item(), l2.item(), la.item(), *sums)
        with torch.no_grad():
            actor(torch.randn(7, 3))  # judged in between
        if step == 8:
            raise KeyError("after the steps")
with torch.debug.record("crash.clew"):
    train()
"""
    done, again = replayed(tmp_path, text)
    assert "KeyError: 'after the steps'; the step is saved" in done.stderr
    assert again.stdout.split("\n")[0] == done.stdout.split("\n")[8], again.stderr


def test_inputs_that_are_no_data_are_the_programs_own(tmp_path):
    text = """
import torch
from collections import namedtuple
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(3)
class Options:
    scale = 2.0
Out = namedtuple("Out", "scores hidden")
Pair = namedtuple("Pair", "x y")
class Data(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return Pair({"x": torch.randn(5), "id": f"row{i}"}, torch.tensor(i % 3))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)
    def forward(self, batch, options):
        h = torch.relu(self.a(batch["x"])) * options.scale
        return Out(self.b(h), h)
net, criterion = Net(), nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    for epoch in range(2):
        for n, batch in enumerate(DataLoader(Data(), batch_size=8, shuffle=True)):
            out = net(batch.x, Options())
            print(batch.x["id"], out.scores.sum().item(), type(batch).__name__)
            if epoch == 1 and n == 2:
                raise ValueError("bad row")
            opt.zero_grad()
            criterion(out.scores, batch.y).backward()
            opt.step()
with torch.debug.record("crash.clew"):
    train()
"""
    done, again = replayed(tmp_path, text)
    assert "ValueError: bad row; the step is saved" in done.stderr
    assert again.stdout.split("\n")[0] == done.stdout.split("\n")[6], again.stderr


def test_a_target_by_hand_is_given_back(tmp_path):
    for loss in (
        "loss = (head(out) - y[i]).square().mean()",
        "loss = (1 + i / 20) * torch.where(y[i] > 0, 2.0, 1.0).mul(abs(y[i] - head(out))).mean()",
    ):
        done, again = replayed(tmp_path, SLICED.replace("LOSS", loss))
        spike = done.stderr.partition("the loss is ")[2].split()[0]
        assert again.returncode == 1 and again.stdout == "", again.stderr
        assert f"clew replay: this is the step: the loss is {spike}" in again.stderr


SCALED = """
import torch
from torch import nn
torch.manual_seed(1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
x = torch.randn(20, 8, 4)
x[14] *= 100
with torch.debug.record("crash.clew", steps=8):
    for i in range(20):
        loss = nn.functional.mse_loss(net(x[i]), x[i, :, :1])
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        print(scaler.get_scale())
"""


def test_the_factor_of_a_scaler_is_given_back(tmp_path):
    done, again = replayed(tmp_path, SCALED)
    assert done.stdout.split()[13] == "64.0" and "in step 14" in done.stderr
    spike = done.stderr.partition("the loss is ")[2].split()[0]
    assert again.returncode == 1 and again.stdout == "", again.stderr
    assert f"clew replay: this is the step: the loss is {spike}" in again.stderr


CRITIC = """
import torch
from torch import nn
torch.manual_seed(0)
G, C = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
og, oc = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(C.parameters(), 1e-3)
number = 0
def fails(part):
    global number
    number += 1
    if "WHERE" == part and number == AT:
        raise KeyError(part)
def critic_step():
    real, z = torch.randn(8, 2), torch.randn(8, 3)
    loss = C(G(z).detach()).mean() - C(real).mean()
    print("critic", f"{loss.item():.6f}")
    fails("critic")
    oc.zero_grad(); loss.backward(); oc.step()
def generator_step():
    loss = -C(G(torch.randn(8, 3))).mean()
    print("generator", f"{loss.item():.6f}")
    fails("generator")
    og.zero_grad(); loss.backward(); og.step()
with torch.debug.record("crash.clew"):
    LOOP
"""
NESTED = """
    for i in range(8):
        for _ in range(3):
            critic_step()
        generator_step()
"""
EVERY_THIRD = """
    for i in range(24):
        critic_step()
        if i % 3 == 0:
            generator_step()
"""


@pytest.mark.parametrize(
    ("loop", "where"),
    [(NESTED, "generator"), (EVERY_THIRD, "critic"), (EVERY_THIRD, "generator")],
)
def test_a_critic_that_steps_more_often_than_the_generator(loop, where, tmp_path):
    parts = ["critic" if i % 4 < 3 else "generator" for i in range(32)]
    if loop == EVERY_THIRD:
        parts = [p for i in range(8) for p in ("critic", "generator", "critic", "critic")]
    at = next(i for i in range(13, 32) if parts[i] == where and parts[i - 1] == "critic")
    text = CRITIC.replace("    LOOP", loop).replace("WHERE", where).replace("AT", str(at + 1))
    done, again = replayed(tmp_path, text)
    last = done.stdout.split("\n")[at]
    assert last.startswith(where) and f"KeyError: '{where}'; the step is saved" in done.stderr
    # The very numbers of the part that failed come again, before anything else that is not saved.
    assert last in again.stdout.split("\n")[:4], (last, again.stdout[:300], again.stderr[-300:])
    assert "something that it was computed from" not in again.stderr


def test_numpys_random_state_is_what_numpy_says_however_it_was_drawn_from():
    from clew._insight.debug.saved import Numpy

    kept = Numpy()
    draws = (
        lambda: None,
        lambda: np.random.standard_normal(),  # makes two, and keeps one
        lambda: np.random.standard_normal(),  # the one that was kept
        lambda: np.random.rand(),
        lambda: np.random.seed(3),
        lambda: np.random.standard_normal(),
        lambda: np.random.shuffle([1, 2, 3]),
    )
    before = np.random.get_state()
    try:
        for draw in draws:
            draw()
            for _ in range(2):
                found, true = kept.state(), np.random.get_state()
                assert (found[1] == true[1]).all() and found[2:] == true[2:]
    finally:
        np.random.set_state(before)


def test_what_gradients_flow_through_is_not_copied(tmp_path):
    """A replay computes it anew, so that keeping it would cost memory for nothing."""
    net = nn.Linear(1000, 1000)
    target = clew.zeros(8, 1000)
    with clew.debug.record(str(tmp_path / "crash.clew")) as kept:
        nn.functional.mse_loss(net(clew.ones(8, 1000)), target).backward()
    (inputs, _), (loss, _) = kept._kept[-1]["inputs"]
    assert inputs[0].shape == (8, 1000)
    assert not isinstance(loss[0], clew.Tensor) and loss[1].shape == (8, 1000)


def test_a_state_that_a_model_cuts_off_itself_is_kept(tmp_path):
    """Before the first step there is none, or zeros: a replay has nothing else to go by."""

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.RNNCell(3, 4)

        def forward(self, x, h):
            return self.cell(x, h.detach())

    net, h = Cell(), clew.zeros(2, 4)
    opt = clew.optim.SGD(net.parameters(), lr=0.1)
    with clew.debug.record(str(tmp_path / "crash.clew")) as kept:
        for _ in range(2):
            before = h
            h = net(clew.ones(2, 3), h)
            h.square().mean().backward()
            opt.step()
    (_, state), _ = kept._kept[-1]["inputs"][0]
    assert before.requires_grad and clew.equal(state, before)


def test_operations_inside_models_are_not_shown(tmp_path):
    """Each that is shown costs a call of Python; of those in models nothing is kept."""

    class Inner(nn.Module):
        def forward(self, x):
            return (x * x.detach()).sum(1)

    net = nn.Sequential(nn.Linear(3, 3), Inner())
    shown = []
    with clew.debug.record(str(tmp_path / "crash.clew")) as kept:
        original = kept._shown
        kept._observation._callback = lambda name, *rest: (
            shown.append(name),
            original(name, *rest),
        )
        (net(clew.ones(4, 3)) - clew.ones(4)).sum().backward()
        with pytest.raises(RuntimeError):
            net(clew.ones(4, 5))
        net(clew.ones(4, 3)) - clew.ones(4)
    assert "mul" not in shown and shown.count("sub") == 2
    assert len(kept._kept[-1]["operands"]) == 2
