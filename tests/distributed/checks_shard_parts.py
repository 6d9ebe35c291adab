"""Run by ranks: fully_shard together with what else changes modules, against one process."""

import functools

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from blocks import batch, shard
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.utils.checkpoint import checkpoint

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()


class Block(nn.Module):
    """A block that may compute its inner part again in backward.

    again: None, or checkpoint's use_reentrant.
    """

    def __init__(self, width, again=None, deep=False):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.again, self.deep = again, deep

    def inner(self, x):
        if self.deep:
            return self.down(F.gelu(checkpoint(self.up, x, use_reentrant=self.again)))
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        if self.again is None:
            return x + self.inner(x)
        return x + checkpoint(self.inner, x, use_reentrant=self.again)


def net(**options):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 8), *(Block(8, **options) for _ in range(3)),
                         nn.Linear(8, 3)).double()  # fmt: skip


def placement(where, p):
    return where if p.ndim == 2 else None


def alike(ours, plain, steps=3):
    """Both learn the same from the same data."""
    opts = [torch.optim.AdamW(m.parameters(), 0.01) for m in (plain, ours)]
    for step in range(steps):
        whole, part = batch(step)
        losses = [(plain(whole) ** 2).mean(), (ours(part) ** 2).mean()]
        [o.zero_grad() for o in opts]
        [loss.backward() for loss in losses]
        for p, q in zip(plain.parameters(), ours.parameters()):
            assert q.grad.placements == q.placements
            assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
        [o.step() for o in opts]
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy(), atol=1e-10)


# Parts of a block are computed again: they must find whole parameters then.
for reentrant in (False, True):
    for deep in (False, True):
        for reshard in (None, False, True):
            ours = shard(net(again=reentrant, deep=deep), reshard_after_forward=reshard)
            alike(ours, net())
# A block that does not learn, and one of which a part is used twice.
plain, ours = net(), net(again=False)
[m[2].requires_grad_(False) for m in (plain, ours)]
shard(ours)
[(m(x) ** 2).mean().backward() for m, x in zip((plain, ours), batch(0))]
for p, q in zip(plain.parameters(), ours.parameters()):
    assert (q.grad is None) == (p.grad is None)
    if p.grad is not None:
        assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)

# Other dims than the first are cut where the program says so; they need not divide.
for where in (Shard(1), Shard(-1), None):
    ours = shard(net(), shard_placement_fn=functools.partial(placement, where))
    first, w = ours[1].up.weight, net()[1].up.weight.detach()
    assert first.placements == (Shard(0 if where is None else 1),)
    same = distribute_tensor(w, first.device_mesh, first.placements)
    assert torch.equal(same.to_local(), first.to_local())
    alike(ours, net())
    whole = {k: v.full_tensor() for k, v in ours.state_dict().items()}
    other = shard(net(), shard_placement_fn=lambda p: Shard(p.ndim - 1))
    set_model_state_dict(other, whole, options=StateDictOptions(full_state_dict=True))
    for p, q in zip(ours.parameters(), other.parameters()):
        assert torch.equal(p.full_tensor(), q.full_tensor())
with pytest.raises(ValueError, match="shard_placement_fn must give"):
    shard(net(), shard_placement_fn=lambda p: Shard(2))

# A number of processes that keep the whole between them.
for count in (1, n):
    alike(shard(net(), reshard_after_forward=count), net())
with pytest.raises(ValueError, match="divides the"):
    shard(net(), reshard_after_forward=n + 1)


# What no rank used has no gradient; of what some used the others count as zeros.
class Some(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(5, 3), nn.Linear(5, 3)
        self.alone = nn.Parameter(torch.ones(3))

    def forward(self, x, others=False):
        return self.used(x) + self.other(x) if others else self.used(x)


ours = fully_shard(Some().double())
optimizer = torch.optim.AdamW(ours.parameters())
start = ours.other.weight.full_tensor().detach().clone()
x = torch.ones(2, 5, dtype=torch.float64)
for sync in (False, True, True):
    ours.set_requires_gradient_sync(sync)
    ours(x).sum().backward()
assert ours.other.weight.grad is None and ours.alone.grad is None
assert torch.equal(ours.used.weight.grad.full_tensor(), torch.full((3, 5), 6.0).double())
optimizer.step()
assert torch.equal(ours.other.weight.full_tensor(), start)
ours(x, others=r == 0).sum().backward()
assert ours.alone.grad is None
assert np.allclose(ours.other.weight.grad.full_tensor().numpy(), np.full((3, 5), 2.0) / n)
ours.zero_grad()
ours.set_requires_gradient_sync(False)
ours(x, others=r == n - 1).sum().backward()
ours.set_requires_gradient_sync(True)
ours(x).sum().backward()
assert np.allclose(ours.other.weight.grad.full_tensor().numpy(), np.full((3, 5), 2.0) / n)

# Of a parameter that two modules share neither can have a part of its own.
tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
tied[1].weight = tied[0].weight
fully_shard(tied[0])
for part in (tied[1], tied):
    with pytest.raises(ValueError, match="shared with a module that was sharded before"):
        fully_shard(part)

# Parameters without values are named.
with torch.device("meta"):
    empty = nn.Linear(4, 4)
fully_shard(empty)
with pytest.raises(RuntimeError, match="'weight' is on the meta device"):
    empty(torch.ones(2, 4))
ours.set_post_optim_event(None)
assert ours.used.weight.nbytes == 3 * 5 * 8

print(f"rank {r} is through")
