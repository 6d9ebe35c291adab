"""Data parallelism of several ranks."""

import pytest
from ranks import HERE, launch, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 3, 5])  # five share no memory
def test_data_parallel(n):
    done = launch(n, HERE / "checks_ddp.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout
