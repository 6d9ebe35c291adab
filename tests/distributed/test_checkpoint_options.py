"""Options of distributed.checkpoint on one process: each works or raises."""

import pytest

import clew
from clew.distributed import checkpoint as dcp
from clew.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)


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


def _models(names):
    clew.manual_seed(0)
    return clew.nn.ModuleDict({name: clew.nn.Linear(2, 2) for name in names})


def _trained(net, opt, steps=2):
    for _ in range(steps):
        opt.zero_grad()
        sum((layer(clew.ones(1, 2)) ** 2).sum() for layer in net.values()).backward()
        opt.step()


def test_flat_state_of_optimizers(tmp_path):
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    # "a" begins the name of what is in "a.b".
    net = _models(["a", "c"])
    net["a"].weight_b = clew.nn.Parameter(clew.ones(2))
    net["a"].b = clew.nn.Linear(1, 1)

    def make(net, lr):
        first = [p for n, p in net.named_parameters() if n.startswith("a.")]
        rest = [p for n, p in net.named_parameters() if not n.startswith("a.")]
        return clew.optim.Adam([{"params": first, "lr": lr}, {"params": rest}], lr=2 * lr)

    opt = make(net, 0.1)
    _trained(net, opt)
    saved = get_optimizer_state_dict(net, opt, options=flat)
    assert {k.rpartition(".")[2] for k in saved if k.startswith("state.a.weight.")} == {
        "exp_avg",
        "exp_avg_sq",
        "step",
    }
    assert saved["param_groups.a.weight.lr"] == 0.1 and saved["param_groups.c.bias.lr"] == 0.2
    assert saved["param_groups.c.bias.betas"] == (0.9, 0.999)
    dcp.save({"optim": saved}, checkpoint_id=tmp_path)

    # Only a part of the parameters, in another order, from the file.
    other = _models(["c"])
    fresh = clew.optim.Adam([other["c"].bias, other["c"].weight], lr=0.5)
    state = get_optimizer_state_dict(other, fresh, options=flat)
    dcp.load({"optim": state}, checkpoint_id=tmp_path)
    set_optimizer_state_dict(other, fresh, state, options=flat)
    assert fresh.param_groups[0]["lr"] == 0.2
    for name in ("weight", "bias"):
        own, kept = fresh.state[getattr(other["c"], name)], opt.state[getattr(net["c"], name)]
        assert all(clew.equal(own[k], kept[k]) for k in ("exp_avg", "exp_avg_sq", "step"))

    # Of all that was saved it takes what is its own.
    set_optimizer_state_dict(other, fresh, saved, options=flat)
    again = make(net, 0.7)
    set_optimizer_state_dict(net, again, saved, options=flat)
    assert [g["lr"] for g in again.param_groups] == [0.1, 0.2]
    assert clew.equal(
        again.state[net["a"].weight]["exp_avg"], opt.state[net["a"].weight]["exp_avg"]
    )
    with pytest.raises(RuntimeError, match=r"a.weight.lr is 0.1 while that of c.weight is 0.2"):
        set_optimizer_state_dict(net, clew.optim.Adam(net.parameters()), saved, options=flat)
    del saved["state.c.bias.step"], saved["param_groups.c.bias.lr"]
    for key in [k for k in saved if k.startswith("param_groups.c.bias.")]:
        del saved[key]
    with pytest.raises(RuntimeError, match="nothing is told of 'c.bias'"):
        set_optimizer_state_dict(other, fresh, saved, options=flat)


def test_flat_state_takes_nested_dicts_and_no_objects():
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    net = clew.nn.Linear(2, 1, bias=False)
    opt = clew.optim.SGD(net.parameters(), 0.1)
    opt.state[net.weight] = {"factors": {0: clew.ones(2), 1: {"deep": 3}}, "n": 4}
    saved = get_optimizer_state_dict(net, opt, options=flat)
    assert [k for k in saved if k.startswith("state.")] == [
        "state.weight.factors.0",
        "state.weight.factors.1.deep",
        "state.weight.n",
    ]
    opt.state.clear()
    set_optimizer_state_dict(net, opt, saved, options=flat)
    assert opt.state[net.weight]["factors"]["1"] == {"deep": 3} and opt.state[net.weight]["n"] == 4
    opt.state[net.weight]["text"] = "no number"
    with pytest.raises(NotImplementedError, match=r"class 'str'.*state.weight.text"):
        get_optimizer_state_dict(net, opt, options=flat)


def test_keys_that_are_no_text(tmp_path):
    class Kind(str):
        pass

    def state(value):
        keys = [(1, 2), ("a", 3), None, True, "1", 2.5, Kind("b"), frozenset({4})]
        return {"m": {k: clew.full((2,), value + i) for i, k in enumerate(keys)}, ("n", 0): value}

    dcp.save(state(3), checkpoint_id=tmp_path / "many")
    found = state(0)
    dcp.load(found, checkpoint_id=tmp_path / "many")
    wanted = state(3)
    assert list(found) == list(wanted) and list(found["m"]) == list(wanted["m"])
    assert [t.tolist() for t in found["m"].values()] == [t.tolist() for t in wanted["m"].values()]
    assert found["n", 0] == 3
    dcp.format_utils.dcp_to_torch_save(tmp_path / "many", tmp_path / "one.pt")
    whole = clew.load(tmp_path / "one.pt")
    assert whole["m"]["(1, 2)"].tolist() == [3, 3] and whole["('n', 0)"] == 3
