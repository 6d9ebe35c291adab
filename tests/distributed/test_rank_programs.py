"""Programs as people write them for torchrun."""

from ranks import HERE, launch, needs_mpi

pytestmark = needs_mpi


def test_programs_for_torchrun():
    done = launch(2, HERE / "checks_programs.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(2):
        assert f"rank {r} is through" in done.stdout
