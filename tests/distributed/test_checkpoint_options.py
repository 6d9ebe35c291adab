"""Options of distributed.checkpoint on one process: each works or raises."""

import pytest

import clew
from clew.distributed import checkpoint as dcp


def test_a_folder_in_use_can_be_kept(tmp_path):
    dcp.save({"a": clew.ones(2)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="overwrite is False"):
        dcp.save(
            {"a": clew.zeros(2)}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False)
        )
    state = {"a": clew.zeros(2)}
    dcp.load(state, storage_reader=dcp.FileSystemReader(tmp_path))
    assert state["a"].tolist() == [1, 1]


class _OwnSave(dcp.DefaultSavePlanner):
    pass


class _OwnLoad(dcp.DefaultLoadPlanner):
    pass


@pytest.mark.parametrize(
    "call, options",
    [
        (dcp.save, {"planner": _OwnSave()}),
        (dcp.save, {"storage_writer": 3}),
        (dcp.load, {"planner": _OwnLoad()}),
        (dcp.load, {"storage_reader": "here"}),
    ],
)
def test_what_would_not_be_called_raises(tmp_path, call, options):
    with pytest.raises(NotImplementedError, match="must be None or a"):
        call({"a": clew.ones(2)}, checkpoint_id=tmp_path, **options)


def test_options_of_async_save(tmp_path):
    with pytest.raises(TypeError, match="async_stager"):
        dcp.async_save({"a": clew.ones(2)}, checkpoint_id=tmp_path, async_stager=object())
    assert dcp.async_save({"a": clew.ones(2)}, checkpoint_id=tmp_path).result()
