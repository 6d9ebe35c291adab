"""Collectives of several ranks."""

import pytest
from ranks import needs_mpi, run_through

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 4])
def test_collectives(n):
    run_through(n, "checks_collectives.py")


def test_ways_to_combine_are_shown_by_name():
    from clew.distributed import ReduceOp

    assert str(ReduceOp.SUM) == f"{ReduceOp.SUM}" == "RedOpType.SUM"
    assert f"{ReduceOp.MAX:>14}" == " RedOpType.MAX"
