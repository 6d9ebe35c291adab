"""Run by ranks: steps of each rank by itself, and parameters averaged now and then."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.algorithms.model_averaging.utils import average_parameters
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
alone = [dist.new_group([i]) for i in range(n)][r]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()


def batch(step, rank):
    return torch.tensor(np.random.default_rng(100 * step + rank).normal(size=(5, 4)))


# Every rank knows what all do: their models, as one process would train them.
WARM, PERIOD, STEPS = 2, 3, 8
models = [net() for _ in range(n)]
opts = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in models]
ours = DistributedDataParallel(net())
ours.register_comm_hook(PostLocalSGDState(None, alone, WARM), post_localSGD_hook)
opt = PostLocalSGDOptimizer(
    torch.optim.SGD(ours.parameters(), 0.1, momentum=0.9), PeriodicModelAverager(PERIOD, WARM)
)
for step in range(STEPS):
    opt.zero_grad()
    (ours(batch(step, r)) ** 2).mean().backward()
    opt.step()
    [o.zero_grad() for o in opts]
    for i, m in enumerate(models):
        for other in range(n) if step < WARM else [i]:
            share = (m(batch(step, other)) ** 2).mean()
            (share / (n if step < WARM else 1)).backward()
    [o.step() for o in opts]
    if step >= WARM and (step - WARM) % PERIOD == 0:
        with torch.no_grad():
            for same in zip(*(m.parameters() for m in models)):
                mean = torch.stack([*same]).mean(0)
                [p.copy_(mean) for p in same]
    for p, q in zip(ours.parameters(), models[r].parameters()):
        assert np.allclose(p.detach().numpy(), q.detach().numpy(), atol=1e-12), step

state = opt.state_dict()
assert state["step"] == STEPS and opt.averager.step == STEPS
again = PostLocalSGDOptimizer(torch.optim.SGD(net().parameters(), 0.2), PeriodicModelAverager(2))
again.load_state_dict(state)
assert again.averager.step == STEPS and again.param_groups[0]["lr"] == 0.1
with pytest.warns(UserWarning, match="no step of the averager"):
    again.load_state_dict(torch.optim.SGD(net().parameters(), 0.3).state_dict())
assert again.averager.step == 0 and again.param_groups[0]["lr"] == 0.3

# Without the sum in the subgroup, and of several dtypes.
ours = DistributedDataParallel(net())
ours.register_comm_hook(PostLocalSGDState(None, None, 0, False), post_localSGD_hook)
(ours(batch(0, r)) ** 2).mean().backward()
plain = net()
(plain(batch(0, r)) ** 2).mean().backward()
for p, q in zip(ours.parameters(), plain.parameters()):
    assert np.allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-12)
mixed = [torch.full((2,), float(r)), torch.full((3,), float(r), dtype=torch.float64)]
average_parameters(mixed, None)
assert all(x.tolist() == [(n - 1) / 2] * len(x) for x in mixed)
for bad in ({"period": 0}, {"period": 1, "warmup_steps": -1}):
    with pytest.raises(ValueError, match="must be >="):
        PeriodicModelAverager(**bad)
dist.barrier()
print(f"rank {r} is through")
