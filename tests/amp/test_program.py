"""A PyTorch program with mixed precision, run by `clew run`."""

from __future__ import annotations

import os
import subprocess
import sys

import clew

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import torch
from torch.amp import GradScaler as Scaler
from torch.cuda.amp import autocast, GradScaler
from torch.cuda.amp.grad_scaler import OptState
import torch.cpu.amp

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(4, 2).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = GradScaler(enabled=device == "cuda")
x = torch.ones(3, 4)
with autocast():
    y = model(x)
print(y.dtype)
with torch.autocast(device_type=device, dtype=torch.bfloat16):
    y = model(x)
    print(y.dtype, torch.is_autocast_enabled("cpu"), torch.is_autocast_cpu_enabled())
scaler.scale(y.float().sum()).backward()
scaler.step(opt)
scaler.update()
print(model.weight.grad.dtype, torch.get_autocast_cpu_dtype())
"""


def test_a_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    home = os.path.dirname(os.path.dirname(clew.__file__))
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": home},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "torch.float32",
        "torch.bfloat16 True True",
        "torch.float32 torch.bfloat16",
    ]
