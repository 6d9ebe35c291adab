"""multiprocessing.spawn starts ranks that can form a group."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
from ranks import HERE, needs_mpi

pytestmark = needs_mpi

PROGRAM = """
    import os, sys, time
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def work(rank, world, what):
        dist.init_process_group("gloo", rank=rank, world_size=world)
        x = torch.ones(3) * (rank + 1)
        dist.all_reduce(x)
        assert x.tolist() == [3.0] * 3 and dist.get_rank() == rank
        if what == "raise" and rank == 1:
            raise ValueError("boom")
        if what == "exit" and rank == 1:
            sys.exit(4)
        if what == "kill" and rank == 1:
            os.kill(os.getpid(), 9)
        dist.barrier()
        dist.destroy_process_group()

    def put(rank, queue):
        queue.put(rank)

    def fill(rank, key, x):
        assert bytes(mp.current_process().authkey) == key
        x[rank] = rank + 1.0

    def wait(rank, folder):
        open(os.path.join(folder, f"{os.getpid()}.pid"), "w").close()
        time.sleep(60)

    if __name__ == "__main__":
        if sys.argv[1] == "queue":
            queue = mp.get_context("spawn").SimpleQueue()
            mp.spawn(put, (queue,), nprocs=2)
            print(sorted([queue.get(), queue.get()]))
        elif sys.argv[1] == "share":  # one tensor's memory, reached by every rank
            x = torch.zeros(2).share_memory_()
            mp.spawn(fill, (bytes(mp.current_process().authkey), x), nprocs=2)
            print(x.tolist())
        elif sys.argv[1] == "daemon":
            folder = os.path.dirname(__file__)
            mp.spawn(wait, (folder,), nprocs=2, join=False, daemon=True)
            while sum(name.endswith(".pid") for name in os.listdir(folder)) < 2:
                time.sleep(0.02)
            print("leaving")
        else:
            context = mp.spawn(work, args=(2, sys.argv[1]), nprocs=2, join=False)
            try:
                while not context.join(0.05):
                    pass
                print("all ended")
            except mp.ProcessRaisedException as error:
                print("raised", error.error_index, "ValueError: boom" in str(error))
            except mp.ProcessExitedException as error:
                print("exited", "process 1" in str(error))
                print("status", error.error_index, error.exit_code)
"""


@pytest.mark.parametrize(
    "what, want",
    [
        ("ok", "all ended"),
        ("raise", "raised 1 True"),
        ("kill", "exited True"),
        ("exit", "status 1 4"),
        ("queue", "[0, 1]"),
        ("share", "[1.0, 2.0]"),
        ("daemon", "leaving"),
    ],
)
def test_spawn(tmp_path, what, want):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, "-m", "clew", "run", str(path), what],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert want in done.stdout.splitlines(), done.stdout + done.stderr
    for started in tmp_path.glob("*.pid"):  # daemons end with the process that started them
        assert _ends(int(started.stem), 5)


def _ends(pid, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
