"""Run by ranks: `save` writes a checkpoint, `load` reads one that others wrote, `kill` saves again
and again until a rank ends."""

import os
import signal
import sys
import threading

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import fully_shard

what, folder = sys.argv[1:3]
dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()


def model():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.BatchNorm1d(7), nn.Linear(7, 3))
    fully_shard(net[0])
    return fully_shard(net), net


def train(net, opt, steps):
    for step in range(steps):
        x = torch.tensor(np.random.default_rng(step).normal(size=(4, 5)).astype(np.float32))
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()


def state_of(net, opt):
    m, o = get_state_dict(net, opt)
    return {"model": m, "optim": o, "step": 3, "names": ["a", "b"], "extra": {"t": torch.arange(4)}}


net, _ = model()
opt = torch.optim.AdamW(net.parameters(), 0.01)
whole = StateDictOptions(full_state_dict=True)
if what == "save":
    train(net, opt, 3)
    dcp.save(state_of(net, opt), checkpoint_id=folder)
    full = get_model_state_dict(net, options=whole)
    if r == 0:
        torch.save(full, folder + ".full")
    # By whole tensors of the first rank into a model spread anew.
    again, _ = model()
    set_model_state_dict(again, full if r == 0 else {}, options=StateDictOptions(
        full_state_dict=True, broadcast_from_rank0=True))  # fmt: skip
    for a, b in zip(again.state_dict().values(), net.state_dict().values()):
        assert torch.equal(a.to_local() if hasattr(a, "to_local") else a,
                           b.to_local() if hasattr(b, "to_local") else b)  # fmt: skip
    # What goes wrong on one rank is said on all.
    bad = {"x": (lambda: 1) if r == 0 else 1}
    for text, call in [
        ("rank 0", lambda: dcp.save(bad, checkpoint_id=folder + ".bad")),
        ("no checkpoint", lambda: dcp.load({"x": 1}, checkpoint_id=folder + ".none")),
        ("not in the checkpoint", lambda: dcp.load({"nothing": 1}, checkpoint_id=folder)),
        ("has the sizes", lambda: dcp.load({"extra": {"t": torch.zeros(5)}}, checkpoint_id=folder)),
        ("is a tensor", lambda: dcp.load({"extra": {"t": 1}}, checkpoint_id=folder)),
    ]:
        try:
            call()
        except dcp.CheckpointException as error:
            assert text in str(error), (text, error)
        else:
            raise AssertionError(text)
elif what == "load":
    train(net, opt, 1)  # so that it has a state
    state = state_of(net, opt)
    state |= {"step": 0, "names": None, "extra": {"t": torch.zeros(4, dtype=torch.int64)}}
    dcp.load(state, checkpoint_id=folder)
    assert state["step"] == 3 and state["names"] == ["a", "b"]
    assert state["extra"]["t"].tolist() == [0, 1, 2, 3]
    set_state_dict(net, opt, model_state_dict=state["model"], optim_state_dict=state["optim"])
    full = get_model_state_dict(net, options=whole)
    want = torch.load(folder + ".full")
    assert list(full) == list(want)
    assert all(torch.equal(full[k], want[k]) for k in want)
    assert opt.param_groups[0]["lr"] == 0.01
    train(net, opt, 1)
elif what == "kill":
    # The numbers of one save are all alike.
    if r == n - 1:
        threading.Timer(float(sys.argv[3]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    for k in range(1, 100000):
        big = [torch.full((50_000,), float(k)) for _ in range(4)]
        dcp.save({"k": k, "big": big}, checkpoint_id=folder)
dist.barrier()
print(f"rank {r} is through")
