"""Collectives of several ranks."""

import pytest
from ranks import HERE, launch, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 4])
def test_collectives(n):
    done = launch(n, HERE / "checks_collectives.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(n):
        assert f"rank {r} is through" in done.stdout


def test_ways_to_combine_are_shown_by_name():
    from clew.distributed import ReduceOp

    assert str(ReduceOp.SUM) == f"{ReduceOp.SUM}" == "RedOpType.SUM"
    assert f"{ReduceOp.MAX:>14}" == " RedOpType.MAX"
