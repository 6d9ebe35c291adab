"""Names of torch.distributed that need no other process."""

import pytest

import clew
from clew import nn
from clew._torch import _more
from clew._torch.distributed import collective_utils
from clew._torch.distributed.checkpoint.api import CheckpointException
from clew._torch.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)


def test_arguments_are_cut_and_results_joined():
    x, y = clew.arange(6.0).reshape(3, 2), clew.arange(4.0).reshape(1, 4)
    args, kwargs = split_args_kwargs_into_chunks((x, 5), {"mask": x}, 3)
    assert [a[0].tolist() for a in args] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [a[1] for a in args] == [5, 5, 5] and kwargs[2]["mask"].tolist() == [[4, 5]]
    specs = TensorChunkSpec.from_tuple((0, 1))
    args, _ = split_args_kwargs_into_chunks((x, y), None, 2, specs)
    assert [tuple(a[0].shape) for a in args] == [(2, 2), (1, 2)]
    assert [a[1].tolist() for a in args] == [[[0, 1]], [[2, 3]]]
    joined = merge_chunks(args, specs)
    assert joined[0].tolist() == x.tolist() and joined[1].tolist() == y.tolist()
    assert merge_chunks([x, x], None).shape == (6, 2)
    assert TensorChunkSpec.from_dict({"a": 1})["a"].split_dim == 1
    with pytest.raises(ValueError, match="cannot be cut into 4 parts"):
        split_args_kwargs_into_chunks((x,), None, 4)


def test_objects_of_one_process():
    assert collective_utils.broadcast(lambda: 3) == 3
    assert collective_utils.all_gather([1]) == [[1]]
    with pytest.raises(RuntimeError, match="at stage load: no file"):
        collective_utils.broadcast(lambda: open_nothing(), stage_name="load")
    with pytest.raises(RuntimeError, match="rank 0: OSError"):
        collective_utils.all_gather(open_nothing)


def open_nothing():
    raise OSError("no file")


def test_failures_of_a_checkpoint():
    error = CheckpointException("write", {1: OSError("full"), 3: (ValueError("bad"), "trace")})
    assert error.failures[1].args == ("full",)
    assert "ranks:[1, 3]" in str(error) and "rank 3: bad" in str(error)


def test_optimizers_that_step_in_backward():
    apply = _more.find("distributed.optim", "_apply_optimizer_in_backward")
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    apply(clew.optim.SGD, model.parameters(), {"lr": 0.5})
    model(clew.ones(1, 2)).sum().backward()
    assert model.weight.grad is None
    clew.testing.assert_close(model.weight.detach(), before - 0.5)
    (optimizer,) = _more.find("distributed.optim", "_get_in_backward_optimizers")(model)
    assert isinstance(optimizer, clew.optim.SGD)


def test_a_breakpoint_stops_one_rank(monkeypatch):
    import pdb

    import clew.distributed as dist

    stop = _more.find("distributed", "breakpoint")
    stopped = []
    monkeypatch.setattr(pdb.Pdb, "set_trace", lambda self, frame: stopped.append(frame.f_code))
    dist.init_process_group("gloo", world_size=1, rank=0)
    try:
        for _ in range(3):
            stop(skip=2)
        stop(rank=1)
    finally:
        dist.destroy_process_group()
    assert [code.co_name for code in stopped] == ["test_a_breakpoint_stops_one_rank"]


def test_names_shared_by_two_modules():
    for name in ("DebugLevel", "all_reduce_coalesced", "is_nccl_available"):
        _more.find("distributed.distributed_c10d", name)
    with pytest.raises(AttributeError):
        _more.find("distributed.distributed_c10d", "is_not_there")
    with _more.find("distributed", "record_comm")("a name"):
        clew.ones(1)
