"""Data parallelism of several ranks."""

import pytest
from ranks import needs_mpi, run_through

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 3, 5])  # five share no memory
def test_data_parallel(n):
    run_through(n, "checks_ddp.py")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_which_backward_is_reduced(n):
    run_through(n, "checks_passes.py")
