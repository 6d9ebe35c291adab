"""Run by ranks: tensors that are maxima, minima, products, means or sums of the ranks' tensors."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
# Every rank knows all parts. One place is equal on all, one is zero on one.
parts = torch.tensor(np.random.default_rng(0).normal(size=(n, 6, 4)))
parts[:, 1, 1], parts[0, 2, 2] = 2.0, 0.0
weights = torch.tensor(np.random.default_rng(1).normal(size=(6, 4)))
COMBINE = {
    "sum": lambda x: x.sum(0),
    "avg": lambda x: x.mean(0),
    "product": lambda x: x.prod(0),
    "max": lambda x: x.amax(0),
    "min": lambda x: x.amin(0),
}


def close(x, y):
    return np.allclose(x.detach().numpy(), y.detach().numpy(), atol=1e-12)


for op, combine in COMBINE.items():
    whole = combine(parts)
    mine = DTensor.from_local(parts[r].clone(), mesh, [Partial(op)])
    assert str(mine.placements[0]) == f"P({op})" and repr(mine.placements[0]) == f"Partial({op})"
    assert close(mine.full_tensor(), whole)
    for dim in (0, 1):
        cut = mine.redistribute(placements=[Shard(dim)])
        assert cut.placements == (Shard(dim),) and close(cut.full_tensor(), whole)
    # Operations are the whole's, whatever they do to parts.
    for f in (
        lambda x: -x,
        lambda x: x * -2,
        lambda x: x + x,
        lambda x: x.sum(0),
        lambda x: x.mean(),
        lambda x: x.amax(1),
        lambda x: x @ distribute_tensor(weights, mesh).mT,
        lambda x: x.mT.clone().reshape(-1)[3:],
        lambda x: x / 3,
        lambda x: x * distribute_tensor(weights, mesh),
    ):
        known = f(distribute_tensor(whole, mesh))
        assert close(f(mine).full_tensor(), known.full_tensor()), op
    # From there and back; the other kinds too.
    same = distribute_tensor(whole, mesh).redistribute(placements=[Partial(op)])
    assert same.placements == (Partial(op),) and close(same.full_tensor(), whole)
    assert close(mine.redistribute(placements=[Partial("max")]).full_tensor(), whole)
    if op in ("product", "max", "min"):
        with pytest.raises(NotImplementedError, match="partial"):
            mine.clone().mul_(-1)
    # Gradients are those of the operation over all parts, and so are theirs.
    leaves, local = parts.clone().requires_grad_(), parts[r].clone().requires_grad_()
    joined = DTensor.from_local(local, mesh, [Partial(op)]).full_tensor()
    seconds = []
    for start, total in ((leaves, combine(leaves)), (local, joined)):
        (first,) = torch.autograd.grad((total**3 * weights).sum(), start, create_graph=True)
        seconds += torch.autograd.grad((first**2).sum(), start)
    assert close(seconds[1], seconds[0][r]), op
    leaves = parts.clone().requires_grad_()
    (combine(leaves) * weights).sum().backward()
    for way in (Replicate(), Shard(0), Shard(1)):
        local = parts[r].clone().requires_grad_()
        out = DTensor.from_local(local, mesh, [Partial(op)]).redistribute(placements=[way])
        (out.full_tensor() * weights).sum().backward()
        assert close(local.grad, leaves.grad[r]), (op, way)
    leaf = whole.clone().requires_grad_()
    x = distribute_tensor(leaf, mesh, [Shard(0)])
    y = x.redistribute(placements=[Partial(op)]).redistribute(placements=[Shard(1)])
    (y.full_tensor() * weights).sum().backward()
    assert close(x.grad.full_tensor(), weights), op

with pytest.raises(ValueError, match="reduce_op must be"):
    Partial("mean")
dist.barrier()
print(f"rank {r} is through")
