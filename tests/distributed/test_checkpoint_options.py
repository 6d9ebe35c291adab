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


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: clew.optim.SGD(ps, 0.1, momentum=0.9, weight_decay=0.1),
        lambda ps: clew.optim.AdamW(ps, clew.tensor(0.1), amsgrad=True),
        lambda ps: clew.optim.Rprop(ps, 0.1),
        lambda ps: clew.optim.Adafactor(ps, 0.1),
    ],
)
def test_a_checkpoint_fills_an_optimizer_that_has_not_stepped(tmp_path, make):
    from clew.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    def step(net, opt, seed):
        clew.manual_seed(seed)
        net(clew.randn(4, 3)).square().sum().backward()
        opt.step()
        opt.zero_grad()

    net = clew.nn.Linear(3, 2)
    opt = make(net.parameters())
    for seed in range(3):
        step(net, opt, seed)
    m, o = get_state_dict(net, opt)
    dcp.save({"model": m, "optim": o}, checkpoint_id=tmp_path)
    fresh = clew.nn.Linear(3, 2)
    before = [p.detach().clone() for p in fresh.parameters()]
    other = make(fresh.parameters())
    m, o = get_state_dict(fresh, other)
    assert all(clew.equal(p, q) for p, q in zip(fresh.parameters(), before))
    assert all(p.grad is None for p in fresh.parameters()) and not other.state
    dcp.load({"model": m, "optim": o}, checkpoint_id=tmp_path)
    set_state_dict(fresh, other, model_state_dict=m, optim_state_dict=o)
    for seed in (7, 8):
        step(net, opt, seed)
        step(fresh, other, seed)
    assert all(clew.equal(p, q) for p, q in zip(fresh.parameters(), net.parameters()))


def test_one_file_and_back(tmp_path):
    from clew.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    net = clew.nn.Linear(3, 2)
    opt = clew.optim.Adam(net.parameters())
    net(clew.ones(1, 3)).sum().backward()
    opt.step()
    state = {
        "model": net.state_dict(),
        "optim": opt.state_dict(),  # keys that are numbers, and lists
        "names": ["a", "b"],
        "parts": [clew.arange(3), {"x": clew.ones(2)}],
        0: {1: clew.zeros(2), "1": clew.ones(1)},
        "step": 7,
    }
    dcp.save(state, checkpoint_id=tmp_path / "a")
    dcp_to_torch_save(tmp_path / "a", tmp_path / "one.pt")
    found = clew.load(tmp_path / "one.pt")
    assert found["optim"]["state"].keys() == {0, 1} and found["step"] == 7
    assert found["names"] == ["a", "b"] and found["parts"][1]["x"].tolist() == [1, 1]
    assert found[0][1].tolist() == [0, 0] and found[0]["1"].tolist() == [1]
    fresh = clew.nn.Linear(3, 2)
    other = clew.optim.Adam(fresh.parameters())
    fresh.load_state_dict(found["model"])
    other.load_state_dict(found["optim"])
    assert clew.equal(fresh.weight, net.weight)
    assert clew.equal(other.state[fresh.weight]["exp_avg"], opt.state[net.weight]["exp_avg"])
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "b")
    target = {
        "model": clew.nn.Linear(3, 2).state_dict(),
        "parts": [clew.zeros(3, dtype=clew.int64)],
    }
    dcp.load(target, checkpoint_id=tmp_path / "b")
    assert clew.equal(target["model"]["weight"], net.weight)
    assert target["parts"][0].tolist() == [0, 1, 2]
    clew.save(clew.ones(3), tmp_path / "tensor.pt")
    with pytest.raises(TypeError, match="expected a dict"):
        torch_save_to_dcp(tmp_path / "tensor.pt", tmp_path / "c")
    with pytest.raises(dcp.CheckpointException, match="no checkpoint"):
        dcp_to_torch_save(tmp_path / "nowhere", tmp_path / "two.pt")


def test_older_names(tmp_path):
    dcp.save_state_dict({"a": clew.arange(3)}, dcp.FileSystemWriter(tmp_path), no_dist=True)
    state = {"a": clew.zeros(3, dtype=clew.int64)}
    dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path))
    assert state["a"].tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="coordinator_rank"):
        dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path), coordinator_rank=1)


@pytest.mark.parametrize("name", ["Rprop", "ASGD", "Adam", "SGD"])
def test_to_save_before_the_first_step_changes_nothing(tmp_path, name):
    from clew.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    nets = [clew.nn.Linear(3, 2) for _ in range(3)]
    opts = [getattr(clew.optim, name)(net.parameters(), lr=0.1) for net in nets]
    for net in nets[1:]:
        net.load_state_dict(nets[0].state_dict())
    m, o = get_state_dict(nets[1], opts[1])  # saved, and trained on
    dcp.save({"model": m, "optim": o}, checkpoint_id=tmp_path)
    m, o = get_state_dict(nets[2], opts[2])  # and begun from what was saved
    dcp.load({"model": m, "optim": o}, checkpoint_id=tmp_path)
    set_state_dict(nets[2], opts[2], model_state_dict=m, optim_state_dict=o)
    for seed in range(3):
        for net, opt in zip(nets, opts):
            clew.manual_seed(seed)
            opt.zero_grad()
            net(clew.randn(4, 3)).square().sum().backward()
            opt.step()
    for net in nets[1:]:
        assert all(clew.equal(p, q) for p, q in zip(net.parameters(), nets[0].parameters()))
