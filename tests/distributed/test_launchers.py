"""PyTorch's launchers, as modules under `clew run`."""

import os
import subprocess
import sys

import pytest
from ranks import HERE, needs_mpi

import clew

pytestmark = needs_mpi

PROGRAM = """
import argparse
import os
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local-rank", type=int, default=-1)
parser.add_argument("--steps")
given = parser.parse_args()
dist.init_process_group("gloo")
told = [None, None]
dist.all_gather_object(told, (given.local_rank, given.steps, os.environ["ROLE_NAME"]))
if dist.get_rank() == 0:
    print(told)
"""


@pytest.mark.parametrize(
    "command, numbers, role",
    [
        (["torch.distributed.run", "--nproc_per_node=2", "--role", "t"], (-1, -1), "t"),
        (["torch.distributed.run", "-n", "2", "--monitor_interval=1"], (-1, -1), "default"),
        (["torch.distributed.launch", "--nproc_per_node=2"], (0, 1), "default"),
        (["torch.distributed.launch", "--nproc_per_node", "2", "--use_env"], (-1, -1), "default"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_launchers_as_modules(tmp_path, command, numbers, role):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "-m", *command, str(path), "--steps", "3"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str([(n, "3", role) for n in numbers])


def test_a_module_of_torchs_that_is_not_there():
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", "-m", "torch.nowhere"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")},
        check=False,
    )
    assert done.returncode == 1 and "clew has no 'torch.nowhere'" in done.stderr


def test_what_can_be_shadowed():
    from clew.distributed.algorithms import Joinable

    assert issubclass(clew.nn.parallel.DistributedDataParallel, Joinable)
    assert issubclass(clew.distributed.optim.ZeroRedundancyOptimizer, Joinable)
    assert not issubclass(clew.nn.Linear, Joinable)
