"""Run by ranks: communication hooks, unequal numbers of batches, and divided optimizer state."""

import pickle

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    bf16_compress_hook,
    bf16_compress_wrapper,
    fp16_compress_hook,
    fp16_compress_wrapper,
)
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()


def numbers(seed, *size):
    return torch.tensor(np.random.default_rng(seed).normal(size=size).astype(np.float32))


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 30), nn.Tanh(),
                         nn.Linear(30, 2))  # fmt: skip


def equal_on_all(tensors):
    for t in tensors:
        rows = [torch.empty_like(t) for _ in range(n)]
        dist.all_gather(rows, t)
        assert all(row.numpy().tobytes() == rows[0].numpy().tobytes() for row in rows)


# Hooks give the mean, as exactly as their numbers can.
plain = net()
x = numbers(1, 4 * n, 6)
(plain(x) ** 2).mean().backward()
for hook, state, error in [
    (allreduce_hook, None, 1e-6),
    (fp16_compress_hook, None, 2e-3),
    (bf16_compress_hook, None, 2e-2),
    (fp16_compress_wrapper(allreduce_hook), None, 2e-3),
    (bf16_compress_wrapper(allreduce_hook), None, 2e-2),
    (powerSGD_hook, PowerSGDState(None, start_powerSGD_iter=2), 1e-6),
    (powerSGD_hook, PowerSGDState(None, 30, start_powerSGD_iter=0, min_compression_rate=0.01,
                                  use_error_feedback=False, warm_start=False), 1e-5),
]:  # fmt: skip
    ours = DDP(net(), bucket_cap_mb=0.002)
    ours.register_comm_hook(state, hook)
    (ours(x[4 * r : 4 * r + 4]) ** 2).mean().backward()
    for p, q in zip(plain.parameters(), ours.parameters()):
        size = p.grad.abs().max().item()
        assert np.allclose(q.grad.numpy(), p.grad.numpy(), atol=error * size), hook
    equal_on_all([p.grad for p in ours.parameters()])
for text, bad in [
    ("registered before", lambda: ours.register_comm_hook(None, allreduce_hook)),
    ("must be a function", lambda: DDP(net()).register_comm_hook(None, 3)),
    ("at least 2", lambda: PowerSGDState(None, start_powerSGD_iter=1)),
]:
    try:
        bad()
    except Exception as error:
        assert text in str(error), (text, error)
    else:
        raise AssertionError(text)
named = DDP(net())
register_ddp_comm_hook(DDPCommHookType.FP16_COMPRESS, named, dist.group.WORLD)
named(x).sum().backward()

# The means of the first steps are exact, as many as were asked for.
state = PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1)
for step in range(3):
    ours = DDP(nn.Linear(30, 20, bias=False))
    ours.register_comm_hook(state, powerSGD_hook)
    ours(numbers(50 + r, 16, 30)).square().sum().backward()
    found = torch.linalg.matrix_rank(ours.module.weight.grad).item()
    assert (found == 1) == (step == 2), (step, found)

# Low rank: what is lost comes later, so the sum over steps is right, and training works.
state = PowerSGDState(None, 1, start_powerSGD_iter=2, min_compression_rate=1)
ours = DDP(nn.Linear(30, 20, bias=False))
ours.register_comm_hook(state, powerSGD_hook)

opt = torch.optim.SGD(ours.parameters(), 0.3)
losses = []
for step in range(150):
    a = numbers(100 + step * n + r, 16, 30)
    want = a @ torch.outer(numbers(2, 30), numbers(3, 20))
    opt.zero_grad()
    loss = ((ours(a) - want) ** 2).mean()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert losses[-1] < 0.05 * losses[0], (losses[0], losses[-1])
rate, before, after = state.compression_stats()
assert rate > 5 and before > after

# The first matrices are those that PyTorch draws from the seed, so its gradients are found again.
x = torch.arange(8.0).reshape(2, 4) - 3
for kept, want in (
    (True, [-24.4938, -19.8014, -21.1377, -28.5025, 22.3278, 18.0504, 19.2684, 25.982,
            84.341, 68.1835, 72.7847, 98.1446]),
    (False, [-7.0947, -6.0924, -6.8308, -9.3099, 16.9727, 14.5748, 16.3413, 22.272,
             48.8306, 41.9321, 47.0141, 64.0767]),
):  # fmt: skip
    ours = DDP(nn.Linear(4, 3))
    state = PowerSGDState(dist.group.WORLD, 1, 2, 0.5, use_error_feedback=kept, warm_start=kept)
    ours.register_comm_hook(state, powerSGD_hook)
    for step in range(4):
        if step == 3:  # saved with a program's checkpoint
            again = pickle.loads(pickle.dumps(state))
            assert again.process_group is None and again.iter == 3
            vars(state).update(vars(again))
        ours.zero_grad()
        (ours(x * x + step) * torch.tensor([[1.0, 2, 3], [-2, 0, step]])).sum().backward()
    assert np.allclose(ours.module.weight.grad.flatten().numpy(), want, rtol=1e-4), kept
    assert np.allclose(ours.module.bias.grad.numpy(), [-1, 2, 6], rtol=1e-5)

# Unequal numbers of batches: as one process with the batches that there are in each round.
for by_all in (True, False):
    plain, ours = net(), DDP(net(), bucket_cap_mb=0.002)
    opts = [torch.optim.SGD(m.parameters(), 0.1) for m in (plain, ours)]
    rounds = [2 + k for k in range(n)]  # rank k has k + 2 batches
    for step in range(max(rounds)):
        have = [k for k in range(n) if step < rounds[k]]
        opts[0].zero_grad()
        for k in have:
            share = n if by_all else len(have)
            ((plain(numbers(1000 * step + k, 3, 6)) ** 2).mean() / share).backward()
        opts[0].step()
    with ours.join(divide_by_initial_world_size=by_all):
        for step in range(rounds[r]):
            opts[1].zero_grad()
            (ours(numbers(1000 * step + r, 3, 6)) ** 2).mean().backward()
            opts[1].step()
    for p, q in zip(plain.parameters(), ours.module.parameters()):
        assert np.allclose(q.detach().numpy(), p.detach().numpy(), atol=1e-5)
    equal_on_all([p.detach() for p in ours.parameters()])

# Buffers, hooks and no_sync among them; the first that ends may end all.
ours = DDP(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)))
ours.register_comm_hook(None, allreduce_hook)
with ours.join():
    for step in range(2 * (r + 1)):
        if step % 2 == 0:
            with ours.no_sync():
                ours(numbers(step, 3, 6)).sum().backward()
        else:
            ours(numbers(step, 3, 6)).sum().backward()
equal_on_all([b.float() for b in ours.module.buffers()])
if n > 1:
    try:
        with ours.join(throw_on_early_termination=True):
            for step in range(1 + r):
                ours(numbers(step, 3, 6)).sum().backward()
    except RuntimeError as error:
        assert "run out of batches" in str(error)
    else:
        raise AssertionError("nobody raised")

# Divided state: Adam's, and a schedule; parameters stay equal to one process's.
plain, ours = net(), DDP(net())
a = torch.optim.Adam(plain.parameters(), 0.01)
b = ZeroRedundancyOptimizer(ours.parameters(), torch.optim.Adam, lr=0.01)
schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (a, b)]
for step in range(5):
    whole = numbers(step, 4 * n, 6)
    a.zero_grad(), b.zero_grad()
    (plain(whole) ** 2).mean().backward()
    (ours(whole[4 * r : 4 * r + 4]) ** 2).mean().backward()
    a.step(), b.step()
    [s.step() for s in schedules]
for p, q in zip(plain.parameters(), ours.module.parameters()):
    assert np.allclose(q.detach().numpy(), p.detach().numpy(), atol=1e-5)
equal_on_all([p.detach() for p in ours.parameters()])
own = sum(t.numel() for s in (b._local.state if b._local else {}).values() for t in s.values()
          if torch.is_tensor(t))  # fmt: skip
total = torch.tensor([float(own)])
dist.all_reduce(total)
assert own < total.item() / n + 2.1 * max(p.numel() for p in ours.parameters())
b.consolidate_state_dict(to=0)
if r == 0:
    got, want = b.state_dict(), a.state_dict()
    assert got["state"].keys() == want["state"].keys()
    for k in want["state"]:
        for name, value in want["state"][k].items():
            assert np.allclose(got["state"][k][name].numpy(), value.numpy(), atol=1e-6), name
    assert got["param_groups"][0]["lr"] == want["param_groups"][0]["lr"]
else:
    try:
        b.state_dict()
    except RuntimeError as error:
        assert "consolidate_state_dict" in str(error)
    else:
        raise AssertionError("no error")
box = [b.state_dict() if r == 0 else None]
dist.broadcast_object_list(box, 0)
again = DDP(net())
again.load_state_dict(ours.state_dict())
c = ZeroRedundancyOptimizer(again.parameters(), torch.optim.Adam, lr=0.5)
c.load_state_dict(box[0])
for model, o in ((ours, b), (again, c)):
    o.zero_grad()
    (model(numbers(50 + r, 4, 6)) ** 2).mean().backward()
    o.step()
for p, q in zip(ours.parameters(), again.parameters()):
    assert torch.equal(p, q)

# Options of one group are not another's: what a group does not say is the class's default.
plain, ours = net(), DDP(net())
a, b = (
    kind([{"params": ps[:2], "lr": 0.02}, {"params": ps[2:], "weight_decay": 0.3}])
    for kind, ps in (
        (lambda g: torch.optim.AdamW(g, 0.01), [*plain.parameters()]),
        (lambda g: ZeroRedundancyOptimizer(g, torch.optim.AdamW, lr=0.01), [*ours.parameters()]),
    )
)
for step in range(3):
    whole = numbers(step, 4 * n, 6)
    a.zero_grad(), b.zero_grad()
    (plain(whole) ** 2).mean().backward()
    (ours(whole[4 * r : 4 * r + 4]) ** 2).mean().backward()
    a.step(), b.step()
assert [g["weight_decay"] for g in b.param_groups] == [0.01, 0.3]
for p, q in zip(plain.parameters(), ours.module.parameters()):
    assert np.allclose(q.detach().numpy(), p.detach().numpy(), atol=1e-5)

# Both together, with unequal numbers of batches.
ours = DDP(net())
b = ZeroRedundancyOptimizer(ours.parameters(), torch.optim.SGD, lr=0.1)
plain = net()
a = torch.optim.SGD(plain.parameters(), 0.1)
for step in range(n + 1):
    a.zero_grad()
    for k in range(n):
        if step < 2 + k:
            ((plain(numbers(1000 * step + k, 3, 6)) ** 2).mean() / n).backward()
    a.step()
with Join([ours, b]):
    for step in range(2 + r):
        b.zero_grad()
        (ours(numbers(1000 * step + r, 3, 6)) ** 2).mean().backward()
        b.step()
for p, q in zip(plain.parameters(), ours.module.parameters()):
    assert np.allclose(q.detach().numpy(), p.detach().numpy(), atol=1e-5)

dist.barrier()
print(f"rank {r} is through")
