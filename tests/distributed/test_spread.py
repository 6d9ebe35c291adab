"""Models spread over several ranks."""

import pytest
from ranks import HERE, launch, needs_mpi, run_through

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 3, 4])
def test_distributed_tensors(n):
    run_through(n, "checks_tensor.py")


@pytest.mark.parametrize(
    "program",
    [
        "checks_gradients",
        "checks_partial",
        "checks_parts_by_hand",
        "checks_views_and_numbers",
        "checks_wholes",
        "checks_writes",
        "checks_torch_names",
        "checks_fsdp_module",
    ],
)
@pytest.mark.parametrize("n", [2, 3])
def test_operations_on_wholes(n, program):
    run_through(n, f"{program}.py")


@pytest.mark.parametrize("n", [2, 4])  # four are a mesh of two dims
def test_second_derivatives(n):
    run_through(n, "checks_second_derivatives.py", timeout=120)


@pytest.mark.parametrize("n", [2, 3])
def test_calls_in_every_form(n):
    run_through(n, "checks_calls.py")


@pytest.mark.parametrize("n", [2, 3, 4, 5])  # five share no memory
def test_fully_sharded(n):
    run_through(n, "checks_shard.py")


@pytest.mark.parametrize("n", [2, 4])
def test_fully_sharded_parts(n):
    run_through(n, "checks_shard_parts.py")


@pytest.mark.parametrize("n", [2, 3])
def test_fully_sharded_in_a_budget(n):
    run_through(n, "checks_shard_budget.py")


@pytest.mark.parametrize(
    "program", ["checks_shard_mesh", "checks_checkpoint_pieces", "checks_mesh_moves"]
)
def test_parts_of_a_mesh(tmp_path, program):
    run_through(4, f"{program}.py", args=(str(tmp_path / "state"),), timeout=120)


@pytest.mark.parametrize("program", ["checks_algorithms", "checks_local_steps"])
@pytest.mark.parametrize("n", [2, 3])
def test_hooks_joins_and_divided_state(n, program):
    run_through(n, f"{program}.py")


def test_checkpoints_of_other_numbers_of_ranks(tmp_path):
    folder = str(tmp_path / "state")
    for what, n in [("save", 3), ("load", 2), ("load", 1)]:
        done = launch(n, HERE / "checks_checkpoint.py", args=(what, folder))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("after", [0.1, 0.35])
def test_a_killed_rank_leaves_the_last_checkpoint(tmp_path, after):
    import clew
    from clew.distributed.checkpoint import load, save

    folder = tmp_path / "state"
    big = [clew.zeros(50_000) for _ in range(4)]
    save({"k": 0, "big": big}, checkpoint_id=folder)
    done = launch(2, HERE / "checks_checkpoint.py", args=("kill", folder, str(after)))
    assert done.returncode != 0
    state = {"k": -1, "big": [clew.full((50_000,), -1.0) for _ in range(4)]}
    load(state, checkpoint_id=folder)
    assert all((t == state["k"]).all() for t in state["big"])
    (folder / ".metadata").write_text("{")
    with pytest.raises(RuntimeError, match="damaged"):
        load(state, checkpoint_id=folder)
