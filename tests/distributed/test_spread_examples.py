"""The examples of many processes give what one process gives."""

import json

import pytest
from ranks import HERE, launch, needs_mpi

pytestmark = needs_mpi
EXAMPLES = HERE.parents[1] / "examples"


def losses(name, n):
    done = launch(n, EXAMPLES / f"{name}.py", args=("--steps", "25", "--json"))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["tensor_parallel_gpt", "pipeline", "expert_parallel"])
def test_any_number_of_processes_trains_the_same(name):
    alone, two, four = (losses(name, n) for n in (1, 2, 4))
    assert alone[-1] < 0.97 * alone[0]
    assert two == pytest.approx(alone, rel=2e-3)
    assert four == pytest.approx(alone, rel=2e-3)
