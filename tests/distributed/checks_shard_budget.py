"""Run by ranks: sharded modules in a memory budget, the same bits in fewer bytes."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import clew

dist.init_process_group("mpi")
r = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(8)])
for block in model:
    fully_shard(block)
fully_shard(model)
x = torch.randn(512, 64)


def live():
    gc.collect()
    return clew._C._memory_stats()["live_bytes"]


def step(limit):
    model.zero_grad()
    with clew.memory_budget(limit) as budget:
        model(x).square().mean().backward()
    report = budget.report()
    return [p.grad.full_tensor() for p in model.parameters()], report


want, _ = step(None)
floor = live()
_, report = step(None)
plain = report.peak
for share in (1.0, 0.9):
    limit = live() + int(share * (plain - floor))
    got, report = step(limit)
    assert report.peak <= limit
    assert share == 1 or report.given_up > 0
    assert all(torch.equal(a, b) for a, b in zip(want, got))

# What was saved is looked after as without a budget.
h = [None]
model[0].register_forward_hook(lambda m, i, out: h.__setitem__(0, out))
try:
    with clew.memory_budget(live() + 10_000_000):
        loss = model(x).square().mean()
        h[0].data.add_(0)
        with torch.no_grad():
            h[0].add_(1)
        loss.backward()
    raise AssertionError("backward used what was written over")
except RuntimeError as error:
    assert "inplace operation" in str(error), error

dist.barrier()
print(f"rank {r} is through")
