"""PyTorch's launchers, as modules under `clew run`."""

import os
import subprocess
import sys

import pytest
from ranks import HERE, needs_mpi, run_text

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


RECORDED = """
import json
import os
import sys
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main(fails):
    if fails == "exit":
        sys.exit(0)
    if fails == "raise":
        raise ValueError("on purpose")
    return 3


print(main(""), main("exit"))
os.environ["TORCHELASTIC_ERROR_FILE"] = sys.argv[1]
try:
    main("raise")
except ValueError:
    print(json.load(open(sys.argv[1]))["message"]["message"])
os.environ["TORCHELASTIC_ERROR_FILE"] = ""
main("raise")
"""


def test_a_recorded_main(tmp_path):
    done = run_text(tmp_path, 1, RECORDED, args=(str(tmp_path / "error.json"),))
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["3 None", "ValueError: on purpose"]
    assert "rank 0 failed at" in done.stderr and "train.py:13: ValueError" in done.stderr
