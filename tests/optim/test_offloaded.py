"""Optimizer state in a file."""

import copy
import os
import pickle

import pytest

import clew
from clew import nn


def net():
    clew.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 200), nn.Tanh(), nn.Linear(200, 100), nn.Linear(100, 3))


def train(model, opt, steps, schedule=None):
    for step in range(steps):
        clew.manual_seed(step)
        opt.zero_grad()
        model(clew.randn(8, 30)).square().mean().backward()
        opt.step()
        if schedule:
            schedule.step()


@pytest.mark.parametrize("name, options", [
    ("Adam", {}), ("AdamW", {"amsgrad": True}), ("SGD", {"momentum": 0.9}), ("RMSprop", {}),
    ("Adagrad", {}), ("NAdam", {}), ("Adam8bit", {}), ("Adam", {"foreach": True}),
])  # fmt: skip
def test_the_same_bits(tmp_path, name, options):
    pair = [net(), net()]
    opts = [getattr(clew.optim, name)(m.parameters(), lr=0.01, **options) for m in pair]
    assert clew.offload(opts[1], tmp_path, least=1000, in_flight=100_000) is opts[1]
    schedules = [clew.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in opts]
    for model, opt, schedule in zip(pair, opts, schedules):
        train(model, opt, 5, schedule)
    for p, q in zip(pair[0].parameters(), pair[1].parameters()):
        assert clew.equal(p, q)
    big = pair[1][2].weight
    left = [t for t in opts[1].state[big].values() if t.numel() * t.element_size() >= 1000]
    assert not left and isinstance(opts[1], getattr(clew.optim, name))
    assert os.listdir(tmp_path) == []  # the file has no name
    whole, ours = (o.state_dict() for o in opts)
    for number, state in whole["state"].items():
        for key, value in state.items():
            assert clew.equal(value, ours["state"][number][key])
    # From one to the other and back.
    again = net()
    fresh = clew.offload(getattr(clew.optim, name)(again.parameters(), lr=0.5, **options))
    again.load_state_dict(pair[0].state_dict())
    fresh.load_state_dict(ours)
    for model, opt in ((pair[0], opts[0]), (again, fresh), (pair[1], opts[1])):
        train(model, opt, 2)
    for p, q, r in zip(pair[0].parameters(), again.parameters(), pair[1].parameters()):
        assert clew.equal(p, q) and clew.equal(p, r)


def test_memory():
    model = nn.Sequential(*(nn.Linear(500, 500, bias=False) for _ in range(12)))
    opt = clew.offload(clew.optim.Adam(model.parameters()), in_flight=4_000_000)
    size = sum(p.numel() * 4 for p in model.parameters())
    for step in range(3):
        model(clew.randn(2, 500)).sum().backward()
        base = clew._C._memory_stats()["live_bytes"]
        if step:
            clew._C.reset_peak_memory_stats()
        opt.step()
        opt.zero_grad()
    peak = clew._C._memory_stats()["peak_bytes"]
    # NumPy has the bytes that were read; the moments of all would be twice the parameters.
    assert peak - base < size / 2


def test_groups_hooks_and_closures():
    pair = [net(), net()]
    opts = []
    for m in pair:
        opt = clew.optim.Adam([{"params": m[0].parameters(), "lr": 0.1}], lr=0.01)
        opt.add_param_group({"params": m[2].parameters()})
        opts.append(opt)
    clew.offload(opts[1], in_flight=2)
    calls = []
    opts[1].register_step_post_hook(lambda *a: calls.append(len(opts[1].param_groups[0]["params"])))
    for m, opt in zip(pair, opts):

        def closure(m=m, opt=opt):
            opt.zero_grad()
            loss = m(clew.ones(2, 30)).sum()
            loss.backward()
            return loss

        losses = [opt.step(closure).item() for _ in range(3)]
        opt.add_param_group({"params": m[3].parameters()})
        losses.append(opt.step(closure).item())
        calls.append(losses)
    assert calls[-1] == calls[0] and calls[1:-1] == [2] * 4
    for p, q in zip(pair[0].parameters(), pair[1].parameters()):
        assert clew.equal(p, q)


def test_faults(tmp_path, monkeypatch):
    from clew.autograd._offload import _File

    model = net()
    opt = clew.offload(clew.optim.Adam(model.parameters()), directory=tmp_path, least=0)
    train(model, opt, 1)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(opt)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(opt)
    with pytest.raises(ValueError, match="already"):
        clew.offload(opt)

    def full(self, data, offset):
        raise OSError(28, "No space left on device")

    plain = net()
    other = clew.optim.Adam(plain.parameters())
    train(plain, other, 1)
    with monkeypatch.context() as m:
        m.setattr(_File, "write", full)
        with pytest.warns(RuntimeWarning, match="No space left"):
            train(model, opt, 2)
    train(plain, other, 2)
    for p, q in zip(model.parameters(), plain.parameters()):
        assert clew.equal(p, q)  # it went on in memory
    train(model, opt, 1)
    os.ftruncate(opt._stored.file._file.fileno(), 10)
    with pytest.raises(OSError, match="ends before the optimizer's state does; load a"):
        train(model, opt, 1)
    assert [len(g["params"]) for g in opt.param_groups] == [6]


def test_bad_arguments(tmp_path):
    opt = clew.optim.Adam(net().parameters())
    with pytest.raises(NotADirectoryError):
        clew.offload(opt, tmp_path / "none")
    with pytest.raises(ValueError, match="in_flight"):
        clew.offload(opt, in_flight=0)
    with pytest.raises(TypeError):
        clew.offload(opt, tmp_path, 3)
    with pytest.raises(TypeError, match="must come before"):
        clew.offload(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="LBFGS"):
        clew.offload(clew.optim.LBFGS(net().parameters()))


def test_a_step_that_fails_midway(tmp_path):
    pair = [net(), net()]
    opts = [clew.optim.Adam(m.parameters(), 0.01) for m in pair]
    clew.offload(opts[1], tmp_path, least=1)
    for model, opt in zip(pair, opts):
        train(model, opt, 2)
        for p in model.parameters():
            p.grad = clew.ones_like(p)
        last = model[3].bias
        last.grad = clew.ones(3).to_sparse()
        with pytest.raises(RuntimeError, match="sparse"):
            opt.step()
        train(model, opt, 2)
    for p, q in zip(pair[0].parameters(), pair[1].parameters()):
        assert clew.equal(p, q)


def test_a_state_that_does_not_fit_leaves_the_one_that_is(tmp_path):
    pair = [net(), net()]
    opts = [clew.optim.Adam(m.parameters(), 0.01) for m in pair]
    clew.offload(opts[1], tmp_path, least=1)
    for model, opt in zip(pair, opts):
        train(model, opt, 2)
        with pytest.raises(ValueError):
            opt.load_state_dict({"state": {}, "param_groups": []})
        train(model, opt, 2)
    for p, q in zip(pair[0].parameters(), pair[1].parameters()):
        assert clew.equal(p, q)


def test_a_forked_child_does_not_write_over_its_parents_state():
    def train(fork):
        clew.manual_seed(0)
        model = nn.Linear(30, 30)
        optimizer = clew.offload(clew.optim.Adam(model.parameters()), least=0)
        said = ""

        def step():
            optimizer.zero_grad()
            model(clew.ones(2, 30)).square().sum().backward()
            optimizer.step()

        step()
        if fork:
            read, write = os.pipe()
            state = optimizer.state_dict()
            child = os.fork()
            if not child:
                try:
                    step()
                except RuntimeError as error:
                    os.write(write, str(error).encode())
                optimizer.load_state_dict(state)
                step()
                os.write(write, b"; stepped")
                os._exit(0)
            os.close(write)
            with os.fdopen(read, "rb") as file:
                said = file.read().decode()
            os.waitpid(child, 0)
        step()
        return said, model.weight.detach()

    _, want = train(False)
    said, got = train(True)
    assert said.startswith("offload: the optimizer's state lies in the file of the process")
    assert said.endswith("; stepped")
    assert clew.equal(got, want)


@pytest.mark.parametrize(
    "keep, want",
    [
        (None, 0),
        (0, 0),
        (19_999, 0),
        ("20 kB", 20_000),
        (200_000, 200_000),
        (0.5, 100_000),
        (1.0, 200_000),
    ],
)
def test_state_that_stays_in_memory(tmp_path, keep, want):
    def train(opt, params):
        for k in range(3):
            for p in params:
                p.grad = clew.full_like(p, k - 0.5)
            opt.step()

    def in_memory(opt):
        states = [t for state in opt.state.values() for t in state.values()]
        return sum(4 * t.numel() for t in states if t.numel() > 1)

    plain, params = ([clew.ones(5000, requires_grad=True) for _ in range(5)] for _ in range(2))
    train(clew.optim.Adam(plain), plain)
    opt = clew.offload(clew.optim.Adam(params), tmp_path, keep=keep, least=1000, in_flight=80_000)
    train(opt, params)
    assert in_memory(opt) == want
    for p, q in zip(plain, params):
        assert clew.equal(p, q)
    opt.load_state_dict(opt.state_dict())
    assert in_memory(opt) == want
