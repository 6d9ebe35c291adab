"""Run by 4 ranks: tensor-parallel parameters that fully_shard cuts further, against one process."""

import sys

import numpy as np
import pytest
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
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

folder = sys.argv[1]
dist.init_process_group("gloo")
r = dist.get_rank()
FULL = StateDictOptions(full_state_dict=True)


class Block(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).tanh())


def net(inner, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 6), Block(6, inner), Block(6, inner),
                         nn.Linear(6, 3)).double()  # fmt: skip


def spread(model, mesh, dp, **options):
    plan = {f"{i}.up": ColwiseParallel() for i in (1, 2)}
    plan |= {f"{i}.down": RowwiseParallel() for i in (1, 2)}
    model = parallelize_module(model, mesh["tp"], plan)
    for i in (1, 2):
        fully_shard(model[i], mesh=mesh[dp], **options)
    return fully_shard(model, mesh=mesh[dp], **options)


def batch(step, place, count, rows=3):
    x = np.random.default_rng(step).normal(size=(rows * count, 5))
    return torch.tensor(x), torch.tensor(x[rows * place : rows * (place + 1)])


def train(plain, ours, place, count, steps):
    opts = [torch.optim.AdamW(m.parameters(), 0.02) for m in (plain, ours)]
    for step in steps:
        whole, part = batch(step, place, count)
        [o.zero_grad() for o in opts]
        [(m(x) ** 2).mean().backward() for m, x in zip((plain, ours), (whole, part))]
        for p, q in zip(plain.parameters(), ours.parameters()):
            assert q.grad.placements == q.placements
            assert np.allclose(q.grad.full_tensor().numpy(), p.grad.numpy(), atol=1e-12)
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.3) for m in (plain, ours)]
        assert np.allclose(norms[0].item(), norms[1].full_tensor().item(), atol=1e-12)
        [o.step() for o in opts]
    for p, q in zip(plain.parameters(), ours.parameters()):
        assert q.shape == p.shape
        assert np.allclose(q.full_tensor().detach().numpy(), p.detach().numpy(), atol=1e-10)
    return opts[1]


def ask_for_gradients(plain, ours, place, count):
    """They are those of backward() whether asked for by parts or by what forward put together."""
    whole, part = batch(0, place, count)
    for a, b in zip(plain.parameters(), ours.parameters()):
        b.grad = None
        b.data.copy_(distribute_tensor(a.detach(), b.device_mesh, b.placements))
    want = torch.autograd.grad((plain(whole) ** 2).mean(), list(plain.parameters()))

    def same(found, wanted):
        assert isinstance(found, DTensor), type(found)
        assert np.allclose(found.full_tensor().numpy(), wanted.numpy(), atol=1e-12)

    parts = list(ours.parameters())
    for only in (slice(None), slice(-1, None), slice(0, 1)):
        for listed_after in (False, True):
            loss = (ours(part) ** 2).mean()
            asked = list(ours.parameters())[only] if listed_after else parts[only]
            for found, wanted in zip(torch.autograd.grad(loss, asked), want[only]):
                same(found, wanted)
            assert all(p.grad is None for p in parts)
    loss = (ours(part) ** 2).mean()
    loss.backward(inputs=list(ours.parameters())[-1:])
    same(parts[-1].grad, want[-1])
    assert parts[0].grad is None


MESHES = [
    ((2, 2), ("dp", "tp"), "dp", r // 2, 2),
    ((1, 4), ("dp", "tp"), "dp", 0, 1),
    ((4, 1), ("dp", "tp"), "dp", r, 4),
    ((2, 1, 2), ("copies", "dp", "tp"), ("copies", "dp"), r // 2, 2),
    ((1, 2, 2), ("copies", "dp", "tp"), ("copies", "dp"), r // 2, 2),
]
for shape, names, dp, place, count in MESHES:
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for options in ({}, {"reshard_after_forward": True}, {"reshard_after_forward": 1}):
        # Tensor parallelism divides this; of what is left the others do not.
        inner = 3 * shape[-1]
        plain, ours = net(inner), spread(net(inner), mesh, dp, **options)
        train(plain, ours, place, count, range(3))
        ask_for_gradients(plain, ours, place, count)

# How it lies: tensor parallelism cuts first, and each of its parts is cut again.
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
plain, ours = net(inner=8), spread(net(inner=8), mesh, "dp")
up, down = ours[1].up.weight, ours[1].down.weight
assert up.device_mesh == mesh and str(up.placements) == "(_StridedShard(dim=0, sf=2), Shard(dim=0))"
assert down.placements == (Shard(0), Shard(1)) and ours[1].norm.weight.placements == (Shard(0),)
begin = 4 * (r % 2) + 2 * (r // 2)
assert torch.equal(up.to_local(), plain[1].up.weight[begin : begin + 2])
# Operations on such a tensor are the whole's, and it can be made of a whole.
w = plain[1].up.weight.detach()
again = distribute_tensor(w, up.device_mesh, up.placements)
assert torch.equal(again.to_local(), up.to_local()) and torch.equal(again.full_tensor(), w)
there = again.redistribute(placements=[Shard(0), Shard(0)])
assert torch.equal(there.to_local(), w[2 * r : 2 * r + 2])
assert torch.equal(there.redistribute(placements=up.placements).to_local(), up.to_local())
other = distribute_tensor(w + 1, mesh, [Shard(0), Shard(0)])
row = distribute_tensor(w[0], mesh, [Replicate(), Shard(0)])
for f in (
    lambda x, y, z: x * 2,
    lambda x, y, z: x + y,
    lambda x, y, z: y - x,
    lambda x, y, z: x * z,
    lambda x, y, z: x.clone().mul_(y),
    lambda x, y, z: x.clone().add_(z),
    lambda x, y, z: x.sum(0),
    lambda x, y, z: x @ y.mT,
    lambda x, y, z: nn.functional.linear(y, x),
    lambda x, y, z: x.mT.reshape(-1),
    lambda x, y, z: x[2],
    lambda x, y, z: x.softmax(1),
    lambda x, y, z: torch.cat([x, y], 1),
    lambda x, y, z: x.norm(),
):
    made = f(again, other, row).full_tensor()
    assert np.allclose(made.numpy(), f(w, w + 1, w[0]).numpy(), atol=1e-12)

# Copies of shards: what only one rank used, and what none did, added up over the copies later.
grid = init_device_mesh("cpu", (2, 2))
for only in (None, 0, 3):
    two = fully_shard(nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)]), mesh=grid)
    two.forward = lambda x, m=two, o=only: m[0](x) + m[1](x) if r == o else m[0](x)
    register_fsdp_forward_method(two, "forward")
    for combine in (False, True):
        two.set_requires_all_reduce(combine)
        two.forward(torch.ones(1, 4)).sum().backward()
    assert torch.equal(two[0].weight.grad.full_tensor(), torch.full((3, 4), 2.0))
    if only is None:
        assert two[1].weight.grad is None
    else:
        assert torch.equal(two[1].weight.grad.full_tensor(), torch.full((3, 4), 0.5))

# State: whole, from whole, and in checkpoints that other meshes load.
opt = train(plain, ours, r // 2, 2, range(2))
for name, value in get_model_state_dict(ours, options=FULL).items():
    assert np.allclose(value.numpy(), plain.state_dict()[name].numpy(), atol=1e-12)
fresh = spread(net(inner=8, seed=1), mesh, "dp")
set_model_state_dict(fresh, plain.state_dict(), options=FULL)
for p, q in zip(plain.parameters(), fresh.parameters()):
    assert torch.equal(q.full_tensor(), p)
model, optim = get_state_dict(ours, opt)
dcp.save({"model": model, "optim": optim}, checkpoint_id=folder)
for shape in ((2, 2), (1, 4), (4, 1)):
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    fresh = spread(net(inner=8, seed=1), mesh, "dp")
    opt = torch.optim.AdamW(fresh.parameters(), 0.02)
    model, optim = get_state_dict(fresh, opt)
    state = {"model": model, "optim": optim}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(fresh, opt, model_state_dict=model, optim_state_dict=optim)
    for p, q in zip(ours.parameters(), fresh.parameters()):
        assert torch.equal(q.full_tensor(), p.full_tensor())
one = net(inner=8, seed=1)
state = {"model": one.state_dict()}
dcp.load(state, checkpoint_id=folder)
for p, q in zip(ours.parameters(), one.parameters()):
    assert torch.equal(q, p.full_tensor())

# What does not fit says so.
alone = parallelize_module(nn.Linear(4, 4), init_device_mesh("cpu", (4,)), ColwiseParallel())
with pytest.raises(ValueError, match="part of a larger mesh"):
    fully_shard(alone)
cut = parallelize_module(nn.Linear(4, 4), mesh["tp"], ColwiseParallel())
with pytest.raises(ValueError, match="cannot be cut along"):
    fully_shard(cut, mesh=mesh["tp"])
assert isinstance(cut.weight, DTensor)
dist.barrier()
print(f"rank {r} is through")
