"""Run by ranks: which backward of a data parallel model ends with a reduction."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mean = (n + 1) / 2


def inputs(scale=1.0):
    """The gradient of the sum of what comes of these is rank + 1, times the scale."""
    return torch.full((1, 2), scale * (r + 1.0))


def model():
    return DDP(nn.Linear(2, 1, bias=False))


def gradient(ours):
    """The weight's gradient as a number; it is taken away."""
    grad = ours.module.weight.grad
    ours.module.weight.grad = None
    assert grad[0, 0] == grad[0, 1]
    return grad[0, 0].item()


# A pass without gradients, or one that is not reduced, changes nothing for the one before it.
ours = model()
for between in (torch.no_grad, ours.no_sync, torch.inference_mode):
    y = ours(inputs()).sum()
    with between():
        ours(inputs())
    y.backward()
    assert gradient(ours) == mean, between
    ours.eval()
    with torch.no_grad():
        ours(inputs())
    ours.train()
    ours(inputs()).sum().backward()
    assert gradient(ours) == mean
y = ours(inputs()).sum()
with ours.no_sync():
    z = ours(inputs(2)).sum()
    z.backward()
y.backward()
assert gradient(ours) == 3 * mean
y = ours(inputs()).sum()
with ours.no_sync():
    z = ours(inputs(2)).sum()
(y + z).backward()
assert gradient(ours) == 3 * mean

# The module itself is this rank's alone, on one rank too; the next reduction takes its gradients.
ours = model()
for _ in range(2):
    ours.module(inputs()).sum().backward()
    assert gradient(ours) == r + 1
    if r == 0:
        ours.module(inputs()).sum().backward()
        assert gradient(ours) == r + 1
    ours(inputs()).sum().backward()
    assert gradient(ours) == mean
ours.module(inputs()).sum().backward()
ours(inputs()).sum().backward()
assert gradient(ours) == 2 * mean

# Gradients of inputs are no matter of the group's.
x = inputs().requires_grad_()
if r == 0:
    (grad,) = torch.autograd.grad(ours(x).sum(), x)
    assert torch.equal(grad, ours.module.weight.detach())
(grad,) = torch.autograd.grad(ours(x).sum(), x, create_graph=True)
(grad.sum() * (r + 1) + ours(x).sum()).backward()
assert gradient(ours) == 2 * mean
ours(inputs()).sum().backward(inputs=[ours.module.weight])
assert gradient(ours) == mean

# Gradients that were there before are written in place: those that lie in memory of the program's
# own, those that it holds, those of before a reduction.
ours = DDP(nn.Linear(2, 1))
parameters = list(ours.parameters())
flat = torch.zeros(3)
ours.module.weight.grad, ours.module.bias.grad = flat[:2].view(1, 2), flat[2:]
for _ in range(2):
    flat.zero_()
    ours(inputs()).sum().backward()
    assert flat.tolist() == [mean, mean, 1]
    ours.module.weight.grad.mul_(2)
    assert flat.tolist() == [2 * mean, 2 * mean, 1]
ours.zero_grad()
ours(inputs()).sum().backward()
assert flat.tolist() == [2 * mean, 2 * mean, 1]
held = [p.grad for p in parameters]
for _ in range(2):
    ours.zero_grad(set_to_none=False)
    ours(inputs()).sum().backward()
    assert all(p.grad is g for p, g in zip(parameters, held))
    assert held[0].tolist() == [[mean, mean]]
ours.zero_grad()
with ours.no_sync():
    ours(inputs()).sum().backward()
held = [p.grad for p in parameters]
ours(inputs()).sum().backward()
assert held[0].tolist() == [[2 * mean, 2 * mean]] and held[1].tolist() == [2]
assert all(p.grad is g for p, g in zip(parameters, held))
ours.zero_grad()
ours(inputs()).sum().backward(create_graph=True)
ours(inputs()).sum().backward(create_graph=True)
assert ours.module.weight.grad.tolist() == [[2 * mean, 2 * mean]]

# Two passes, each with a backward, and a graph that is gone through twice.
ours = model()
a, b = ours(inputs()).sum(), ours(inputs(3)).sum()
a.backward()
assert gradient(ours) == mean
b.backward(retain_graph=True)
assert gradient(ours) == 3 * mean
b.backward()
assert gradient(ours) == 3 * mean


# What the model keeps for a loss, and outputs of classes that nobody knows.
class Kept(nn.Module):
    def __init__(self, shown):
        super().__init__()
        self.weight, self.shown = nn.Parameter(torch.ones(1, 2)), shown

    def forward(self, x):
        self.kept = (x * self.weight).sum()
        return type("Output", (), {"y": self.kept})() if self.shown else None


for shown in (True, False):
    ours = DDP(Kept(shown))
    for _ in range(2):
        got = ours(inputs())
        (got.y if shown else ours.module.kept).backward()
        assert gradient(ours) == mean


# A parameter without a gradient is not used, whatever was done with it before.
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.ones(1, 2)), nn.Parameter(torch.ones(1, 2))

    def forward(self, x, both):
        return (x * self.weight).sum() + ((x * self.other).sum() if both else 0)


ours = DDP(Two())
with ours.no_sync():
    ours(inputs(), True).backward()
ours.zero_grad()
ours(inputs(), False).backward()
assert gradient(ours) == mean and ours.module.other.grad is None
dist.destroy_process_group()
print(f"rank {r} is through")
