"""Two ranks of one thread each: collectives, data parallel and tensor parallel steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

UNIT = "ms"
BETTER = "lower"
PROGRAM = Path(__file__).parent.parent / "on_ranks.py"
MODELS = ("tiny MLP", "MLP", "char-GPT", "ResNet-20")
CASES = ("all_reduce", *MODELS, "tensor parallel")
PARTS = len(CASES)
# At most so many times another case of the same library.
WITHIN = {
    **{
        f"{name}, DDP": (f"{name}, half of one process's step of both batches", 1.15)
        for name in MODELS
    },
    "char-GPT, exchange that a step waits for": ("char-GPT, exchange alone", 0.5),
}


def launch(t: Any, count: int, case: str) -> dict[str, float]:
    """What the first of the ranks found."""
    ours = t.__name__ == "clew"
    start = ["clew", "launch"] if ours else ["torch.distributed.run", "--standalone"]
    command = [sys.executable, "-m", *start, "--nproc-per-node", str(count), str(PROGRAM), case]
    path = os.pathsep.join([str(PROGRAM.parent.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    found = [line for line in run.stdout.splitlines() if line.startswith("{")]
    # PyTorch's ranks abort now and then when all is measured, as they end.
    if run.returncode and (ours or not found):
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
    return json.loads(found[-1])


def run(t: Any, part: int) -> dict[str, float]:
    """ms a call or a step."""
    case = CASES[part]
    found = launch(t, 2, case)
    return found | launch(t, 1, case) if case in MODELS else found
