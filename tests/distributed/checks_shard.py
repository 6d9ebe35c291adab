"""Run by ranks: parameters, gradients and optimizer state in parts, against one process."""

import copy

import numpy as np
import torch
import torch.distributed as dist
from blocks import Block, batch, net, shard
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()


for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": False}):
    plain, ours = net(), shard(net(), **options)
    assert isinstance(ours, FSDPModule) and isinstance(ours, nn.Sequential)
    opts = [torch.optim.AdamW(m.parameters(), 0.01) for m in (plain, ours)]
    for step in range(4):
        whole, part = batch(step)
        losses = [(plain(whole) ** 2).mean(), (ours(part) ** 2).mean()]
        [o.zero_grad() for o in opts]
        [loss.backward() for loss in losses]
        for p, q in zip(plain.parameters(), ours.parameters()):
            assert isinstance(q, DTensor) and isinstance(q.grad, DTensor)
            assert q.placements == (Shard(0),) and q.shape == p.shape
            assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
        norms = [torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (plain, ours)]
        assert np.allclose(norms[0].item(), norms[1].item(), rtol=1e-10)
        [o.step() for o in opts]
    for (name, p), (other, q) in zip(plain.named_parameters(), ours.named_parameters()):
        assert name == other
        assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy(), atol=1e-10)
    assert list(ours.state_dict()) == list(plain.state_dict())
    with torch.no_grad():
        assert np.allclose(ours(part).numpy(), plain(part).numpy(), atol=1e-10)
    assert all(isinstance(p, DTensor) for p in ours.parameters())

try:
    copy.deepcopy(ours)
    raise RuntimeError("a sharded module was copied")
except AssertionError as error:
    assert "copy its state_dict()" in str(error), error

# Parameters with fewer rows than there are processes: some have none of them, and what is done with
# the parts leaves them so.
torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 1)).double()
ours = fully_shard(copy.deepcopy(plain))
opts = [torch.optim.AdamW(m.parameters(), 0.05) for m in (plain, ours)]
for step in range(3):
    whole, part = batch(step)
    [o.zero_grad() for o in opts]
    [(m(x) ** 2).mean().backward() for m, x in ((plain, whole), (ours, part))]
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert q.placements == q.grad.placements == q.detach().placements == (Shard(0),)
        assert q.grad.to_local().shape == q.to_local().shape
        assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
    norms = [torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (plain, ours)]
    assert np.allclose(norms[0].item(), norms[1].item(), rtol=1e-10)
    [o.step() for o in opts]
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy(), atol=1e-10)
assert ours[2].weight.to_local().shape == ((1, 4) if r == 0 else (0, 4))

# Gradients of two batches, added up before they are reduced.
plain, ours = net(), shard(net())
(w0, p0), (w1, p1) = batch(7), batch(8)
((plain(w0) ** 2).mean() + (plain(w1) ** 2).mean()).backward()
ours.set_requires_gradient_sync(False)
(ours(p0) ** 2).mean().backward()
assert all(p.grad is None for p in ours.parameters())
ours.set_requires_gradient_sync(True)
(ours(p1) ** 2).mean().backward()
for p, q in zip(plain.parameters(), ours.parameters()):
    assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)

# Made without data, cut, then given memory and values: the parameters are others than were cut.
plain = net()
with torch.device("meta"):
    ours = shard(net())
ours.to_empty(device="cpu")
with torch.no_grad():
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert isinstance(q, DTensor) and q.placements == (Shard(0),)
        q.copy_(distribute_tensor(p.detach(), q.device_mesh, q.placements))
opts = [torch.optim.SGD(m.parameters(), 0.1) for m in (plain, ours)]
for step in range(2):
    whole, part = batch(step)
    losses = [(plain(whole) ** 2).mean(), (ours(part) ** 2).mean()]
    [o.zero_grad() for o in opts]
    [loss.backward() for loss in losses]
    [o.step() for o in opts]
for p, q in zip(plain.parameters(), ours.parameters()):
    assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy(), atol=1e-12)
ours[0].weight = nn.Parameter(torch.zeros(2, 2))
try:
    ours(part)
    raise AssertionError("a parameter that is no part of anything was taken")
except RuntimeError as error:
    assert "'weight' was replaced" in str(error)

# Lower precision: computed in bfloat16, added in float32, kept in float32.
ours = shard(net().float(), mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
out = ours(batch(1)[1].float())
assert out.dtype == torch.bfloat16
out.float().square().mean().backward()
assert all(p.grad.dtype == p.dtype == torch.float32 for p in ours.parameters())

# Copies along one dim of a grid, parts along the other.
if n == 4:
    plain, ours = net(), shard(net(), mesh=init_device_mesh("cpu", (2, 2)))
    whole, part = batch(3)
    (plain(whole) ** 2).mean().backward()
    (ours(part) ** 2).mean().backward()
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert q.placements == (Replicate(), Shard(0))
        assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)

# Memory: parameters, gradients and Adam's two moments in n parts; whole are two blocks' parameters
# and one's gradients.
torch.manual_seed(0)
width, depth = 256, 8
model = nn.Sequential(*(Block(width) for _ in range(depth)))
size = sum(p.numel() * 4 for p in model.parameters())
for block in model:
    fully_shard(block)
fully_shard(model)
opt = torch.optim.Adam(model.parameters())
x = torch.randn(2, width)
for step in range(3):
    if step == 2:
        torch._C.reset_peak_memory_stats()
    model(x).square().mean().backward()
    opt.step()
    opt.zero_grad()
live = torch._C._memory_stats()["live_bytes"]
assert live < 1.1 * 3 * size / n + 200_000, (live, size)
peak, block = torch._C._memory_stats()["peak_bytes"], size / depth
assert peak < 1.1 * (4 * size / n + 3 * block), (peak, size)

# Two forwards before two backwards; a forward after the parameters changed without a backward.
for options in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": True}):
    plain, ours = net(), shard(net(), **options)
    kept = [list(plain.parameters()), list(ours.parameters())]
    (w0, p0), (w1, p1) = batch(7), batch(8)
    for model, a, b in ((plain, w0, w1), (ours, p0, p1)):
        first, second = model(a).square().mean(), (model(b) ** 3).mean()
        first.backward()
        second.backward()
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
    for model, a, params in ((plain, w0, kept[0]), (ours, p0, kept[1])):
        model(a)
        with torch.no_grad():
            for p in params:
                p.mul_(1.5)
    assert np.allclose(ours(p1).detach().numpy(), plain(p1).detach().numpy(), atol=1e-10)
    loss = ours(p0).square().mean()
    with torch.no_grad():
        for p in kept[1]:
            p.mul_(2)
    if not options.get("reshard_after_forward", True):
        continue
    try:
        loss.backward()
    except RuntimeError as error:
        assert "modified" in str(error) and "inplace" in str(error), error
    else:
        raise AssertionError("old values were not missed")


# A module that calls itself, as trees do, and what is saved does not keep itself alive.
class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 3)

    def forward(self, tree):
        left, right = (self(t) if isinstance(t, tuple) else t for t in tree)
        return torch.sigmoid(self.cell(torch.cat([left, right])))


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.tree = Tree().double()

    def forward(self, x):
        return self.tree(((x, x * 2), ((x, 3 * x), x)))


plain, ours = Outer(), Outer()
fully_shard(ours.tree)
fully_shard(ours)
x = torch.linspace(0, 1, 3, dtype=torch.float64)
for model in (plain, ours):
    for _ in range(2):
        model(x).sum().backward()
for p, q in zip(plain.parameters(), ours.parameters()):
    assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
import gc  # noqa: E402

gc.disable()
ours(x)
live = torch._C._memory_stats()["live_bytes"]
for _ in range(20):
    ours(x)
assert torch._C._memory_stats()["live_bytes"] <= live
gc.enable()

for text, bad in [
    ("reshard_after_forward", lambda: fully_shard(nn.Linear(2, 2), reshard_after_forward=n + 1)),
    ("sharded already", lambda: fully_shard(model)),
    ("expected a Module", lambda: fully_shard(3)),
    ("no dim to cut", lambda: fully_shard(nn.ParameterList([nn.Parameter(torch.tensor(1.0))]))),
]:
    try:
        bad()
    except Exception as error:
        assert text in str(error), (text, error)
    else:
        raise AssertionError(text)


# What an exception in forward leaves behind: parts, and nothing that is on its way.
class Odd(Block):
    failing = False

    def forward(self, x):
        if self.failing:
            raise ValueError("odd")
        return super().forward(x)


torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(7, 10), *(Odd(10) for _ in range(3)), nn.Linear(10, 3)).double()
ours = shard(copy.deepcopy(plain))
whole, part = batch(0)
(ours(part) ** 2).mean().backward()  # the order of the modules is known from now on
want = [p.grad.full_tensor().clone() for p in ours.parameters()]
for outermost_keeps in (None, False):
    ours.set_reshard_after_forward(outermost_keeps, recurse=False)
    ours[2].failing = True
    try:
        ours(part)
    except ValueError:
        pass
    else:
        raise AssertionError("forward did not fail")
    groups = [m._fsdp_group for m in ours.modules() if isinstance(m, FSDPModule)]
    assert all(isinstance(p, DTensor) for p in ours.parameters())
    assert all(g.whole is g.values is g.pending is None and g.calls == 0 for g in groups)
    ours[2].failing = False
    ours.zero_grad()
    (ours(part) ** 2).mean().backward()
    for p, g in zip(ours.parameters(), want):
        assert torch.allclose(p.grad.full_tensor(), g)

# Every rule steps parts as it steps the whole, with state of its own from the second step on.
for name, options in [
    ("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}),
    ("AdamW", {"fused": False}), ("RMSprop", {"momentum": 0.5}), ("Adagrad", {}), ("Adadelta", {}),
    ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("Rprop", {}), ("ASGD", {}),
    ("Adafactor", {}),
]:  # fmt: skip
    torch.manual_seed(4)
    plain = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    parts = copy.deepcopy(plain)
    fully_shard(parts)
    twins = [(m, getattr(torch.optim, name)(m.parameters(), lr=0.05, **options))
             for m in (plain, parts)]  # fmt: skip
    for step in range(4):
        torch.manual_seed(step)
        x = torch.randn(6, 5)
        for m, opt in twins:
            opt.zero_grad()
            m(x).square().mean().backward()
            opt.step()
    for p, q in zip(plain.parameters(), parts.parameters()):
        assert torch.allclose(p, q.full_tensor(), rtol=1e-4, atol=1e-5), (name, p, q.full_tensor())

dist.barrier()
print(f"rank {r} is through")
