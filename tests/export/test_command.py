"""The command `clew export`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)

    def forward(self, x):
        y = self.a(x)
        return y * 2 if y.sum() > 0 else -y

model = Net()
"""


def run(*args, cwd):
    home = str(Path(clew.__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, "-m", "clew", "export", *args], cwd=cwd, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": home},
    )  # fmt: skip


def test_writes_both_formats(tmp_path):
    (tmp_path / "train.py").write_text(SOURCE)
    clew.save(clew.randn(2, 3), tmp_path / "x.pt")
    done = run("train.py:Net", "--example", "x.pt", "-o", "m.clew", "--dynamic", "x:0=batch",
               "--show", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "float32[batch, 3]" in done.stdout and "train.py:12" in done.stdout
    module = clew.export.load(tmp_path / "m.clew").module()
    assert module(clew.ones(5, 3)).shape == (5, 4)


def test_onnx_and_errors(tmp_path):
    pytest.importorskip("onnx")
    from clew.export._command import main

    (tmp_path / "train2.py").write_text(SOURCE)
    clew.save(clew.randn(2, 3), tmp_path / "x.pt")
    model, example = f"{tmp_path / 'train2.py'}:model", str(tmp_path / "x.pt")
    out = str(tmp_path / "m.onnx")
    assert main([model, "--example", example, "-o", out, "--dynamic", "auto"]) == 0
    assert clew.onnx.load(out)(clew.ones(5, 3)).shape == (5, 4)
    for bad in (
        [model + "x", "--example", example, "-o", out],
        ["nofile.py:x", "--example", example, "-o", out],
        [model, "--example", str(tmp_path / "none.pt"), "-o", out],
        [model, "--example", example, "-o", out, "--dynamic", "z:0=b"],
        [model, "--example", example, "-o", out, "--dynamic", "x:1=b"],
        [model, "--example", example, "-o", out, "--opset", "3"],
    ):
        assert main(bad) == 1
