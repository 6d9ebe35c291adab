"""multiprocessing.spawn starts ranks that can form a group."""

import os
import subprocess
import sys
import textwrap

import pytest
from ranks import HERE, needs_mpi

pytestmark = needs_mpi

PROGRAM = """
    import os, sys
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
        if what == "kill" and rank == 1:
            os.kill(os.getpid(), 9)
        dist.barrier()
        dist.destroy_process_group()

    def put(rank, queue):
        queue.put(rank)

    if __name__ == "__main__":
        if sys.argv[1] == "queue":
            queue = mp.get_context("spawn").SimpleQueue()
            mp.spawn(put, (queue,), nprocs=2)
            print(sorted([queue.get(), queue.get()]))
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
"""


@pytest.mark.parametrize(
    "what, want",
    [("ok", "all ended"), ("raise", "raised 1 True"), ("kill", "exited True"), ("queue", "[0, 1]")],
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
