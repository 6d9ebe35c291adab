"""Models spread over several ranks."""

import pytest
from ranks import HERE, launch, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 3, 4])
def test_distributed_tensors(n):
    done = launch(n, HERE / "checks_tensor.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout


@pytest.mark.parametrize("n", [2, 3, 4])
def test_fully_sharded(n):
    done = launch(n, HERE / "checks_shard.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout


@pytest.mark.parametrize("n", [2, 3])
def test_hooks_joins_and_divided_state(n):
    done = launch(n, HERE / "checks_algorithms.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout
