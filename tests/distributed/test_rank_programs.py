"""Programs as people write them for torchrun."""

from ranks import needs_mpi, run_through

pytestmark = needs_mpi


def test_programs_for_torchrun():
    run_through(2, "checks_programs.py")
