"""What the doctor says of programs that leave training to an installed package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clew

PACKAGE = """
import torch
from torch.utils.data import DataLoader


def build():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))


class Trainer:
    def __init__(self, net, loader, test=None, clear=True):
        self.net, self.loader, self.test, self.clear = net, loader, test, clear
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def backward(self, loss):
        loss.backward(retain_graph=True)

    def fit(self):
        for x, y in self.loader:
            if self.clear:
                self.optimizer.zero_grad()
            self.backward(torch.nn.functional.cross_entropy(self.net(x), y))
            self.optimizer.step()

    def evaluate(self):
        self.net.eval()
        with torch.no_grad():
            for x, y in self.test:
                torch.nn.functional.cross_entropy(self.net(x), y)
        self.net.train()
"""

HEADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split
from trainer import Trainer, build
x = torch.randn(96, 4)
data = TensorDataset(x, (x[:, 0] > 0).long())
net = build()
"""

CLEAN = """
train, test = random_split(data, [64, 32])
trainer = Trainer(net, DataLoader(train, 8, shuffle=True), DataLoader(test, 8))
for epoch in range(2):
    trainer.fit()
    trainer.evaluate()
"""

MISTAKES = {
    "training goes on in evaluation mode": """
net.eval()  # here
trainer = Trainer(net, DataLoader(data, 8, shuffle=True))
trainer.fit()
""",
    "gradients are never cleared": """
trainer = Trainer(net, DataLoader(data, 8, shuffle=True), clear=False)
trainer.fit()  # here
""",
    "training and test data overlap": """
copy = TensorDataset(x.clone(), data.tensors[1].clone())
for round in range(2):
    trainer = Trainer(net, DataLoader(data, 8, shuffle=True), DataLoader(copy, 8))  # here
    trainer.fit()
    trainer.evaluate()
""",
}


def told(program, folder):
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / "trainer.py").write_text(PACKAGE)
    file = folder / "program.py"
    file.write_text(HEADER + program)
    paths = [str(packages), str(Path(clew.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "--doctor", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_clean_program_is_not_blamed(tmp_path):
    assert told(CLEAN, tmp_path) == ""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_line_is_the_programs(mistake, tmp_path):
    report = told(MISTAKES[mistake], tmp_path)
    lines = (HEADER + MISTAKES[mistake]).splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "# here" in text)
    assert report.count(mistake) == 1 and "found a mistake" in report, report
    assert re.search(rf"at \S*program.py:{line}\b", report), report
