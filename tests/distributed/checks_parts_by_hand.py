"""Run by ranks: functions written for parts, plain tensors that count as whole, and counts."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from blocks import same
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import implicit_replication, local_map

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
rng = np.random.default_rng(0)
R, S0, S1, P = [Replicate()], [Shard(0)], [Shard(1)], [Partial()]


def numbers(*size):
    return torch.tensor(rng.normal(size=size))


# Products of parts are parts of products, and their gradients those of the whole.
for rows in (2 * n, 2 * n + 1):
    x, w = numbers(rows, rows), numbers(rows, 3)
    for ways, out in (((S0, R), S0), ((R, S1), S1), ((S1, S0), P), ((R, R), R)):
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        parts = [distribute_tensor(t, mesh, way).requires_grad_() for t, way in zip((x, w), ways)]
        product = local_map(torch.mm, out, ways)
        made = product(*parts)
        assert made.placements == tuple(out)
        same(made, leaves[0] @ leaves[1])
        for y in (made.full_tensor(), leaves[0] @ leaves[1]):
            (y**3).sum().backward()
        for a, b in zip(parts, leaves):
            same(a.grad, b.grad)


# A decorator; nested arguments, numbers and several results.
@local_map(out_placements=(S0, None, S1), in_placements=(S0, None, S1), redistribute_inputs=True)
def several(pair, scale=1.0):
    return pair[0] * scale, len(pair), pair[1].sin()


x, y = (distribute_tensor(numbers(n, 2 * n), mesh, way) for way in (R, S0))
with pytest.raises(ValueError, match="one item for each of 2 arguments"):
    several([x, y])
with pytest.raises(ValueError, match="must be None for argument 1, which is no tensor"):
    local_map(lambda a, b: a, S0, (S0, S0))(x, 1)
with pytest.raises(ValueError, match=r"argument 0 must lie as \[Shard\(dim=1\)\]"):
    local_map(torch.sin, S1, (S1,))(x)
with pytest.raises(ValueError, match="one item for each of 2 results"):
    local_map(lambda a: (a, a), S0)(x)
with pytest.raises(ValueError, match="None where it gives none"):
    local_map(lambda a: 1, S0)(x)
first, count, second = local_map(
    lambda pair, scale: (pair[0] * scale, len(pair), pair[1].sin()),
    (S0, None, S1),
    (S0, S1, None),
    redistribute_inputs=True,
)([x, y], 2.0)
assert count == 2 and first.placements == (Shard(0),) and second.placements == (Shard(1),)
same(first, x.full_tensor() * 2)
same(second, y.full_tensor().sin())
assert several((torch.ones(2), torch.ones(1)))[1] == 2  # without a distributed one, itself

# Gradients that nobody can know are asked for, and hints are followed.
w = distribute_tensor(numbers(4), mesh, R).requires_grad_()
both = lambda v: (v * 1, v[r : r + 1])
with pytest.raises(ValueError, match="say by in_grad_placements"):
    local_map(both, (R, S0), (R,))(w)
whole, cut = local_map(both, (R, S0), (R,), (P,))(w)
(whole.full_tensor().sum() / n + cut.full_tensor().sum()).backward()
same(w.grad, torch.tensor([2.0 if i < n else 1.0 for i in range(4)]))
for way, hint, shares in ((R, R, [1] * n), (R, P, [1] + [0] * (n - 1)), (P, None, [1] * n),
                          (P, P, [1] + [0] * (n - 1)), (S0, S0, [1] * n)):  # fmt: skip
    local = torch.ones(2, requires_grad=True)
    DTensor.from_local(local, mesh, way, grad_placements=hint).full_tensor().sum().backward()
    assert local.grad.tolist() == [shares[r]] * 2, (way, hint)
with pytest.raises(NotImplementedError, match="a gradient that lies as"):
    DTensor.from_local(torch.ones(2), mesh, R, grad_placements=S0)
with pytest.raises(ValueError, match="unequal sizes"):
    DTensor.from_local(torch.ones(2 + r), mesh, S0, run_check=True)

# Plain tensors, and NumPy's, count as whole within a region.
x, b = numbers(5, 6), numbers(6)
for way in (R, S0, S1):
    leaf, plain = x.clone().requires_grad_(), b.clone().requires_grad_()
    d, beside = distribute_tensor(x, mesh, way).requires_grad_(), b.clone().requires_grad_()

    def loss(t, v):
        made = F.layer_norm(t * v + v, (6,), v, v) @ torch.ones(6, 2, dtype=torch.float64)
        made = torch.cat([made, made * np.ones((5, 1))], 1)
        return (made * torch.where(torch.arange(4) > 1, made, made**2)).sum()

    with implicit_replication():
        got = loss(d, beside).full_tensor()
    want = loss(leaf, plain)
    same(got, want)
    got.backward(), want.backward()
    same(d.grad, leaf.grad)
    same(beside.grad, plain.grad)
    with pytest.raises(RuntimeError, match=r"implicit_replication\(\)"):
        loss(d, beside)

# Counts are those of what is called, here by moves, gradients and fully_shard.
x = distribute_tensor(numbers(2 * n, 4), mesh, S0).requires_grad_()
w = distribute_tensor(numbers(4, 2 * n), mesh, S1)
mode = CommDebugMode()
with mode:
    (x @ x.redistribute(placements=R).T).sum()
    dist.barrier()
x.full_tensor()
assert mode.get_total_counts() == 1 and mode.get_comm_counts() == {dist.all_gather: 1}
assert mode.get_comm_counts()[dist.all_reduce] == 0 and "=1" in repr(mode)
with pytest.raises(KeyError, match="functions of torch.distributed"):
    mode.get_comm_counts()["all_gather"]
whole = distribute_tensor(numbers(3, 4), mesh, R).requires_grad_()
with mode:
    total = (whole @ w).sum().full_tensor()
    assert mode.get_comm_counts() == {dist.all_reduce: 1}
    total.backward()
assert mode.get_comm_counts() == {dist.all_reduce: 2}
model = fully_shard(torch.nn.Linear(4, 2 * n))
with mode:
    model(torch.ones(1, 4)).sum().backward()
assert mode.get_comm_counts() == {dist.all_gather_into_tensor: 1, dist.reduce_scatter_tensor: 1}
dist.barrier()
print(f"rank {r} is through")
