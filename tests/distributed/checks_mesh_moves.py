"""Run by 4 ranks: every way to lie on a mesh of two dims, to every other, and operands of both."""

import itertools

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
from torch.distributed.tensor.placement_types import _StridedShard

dist.init_process_group("gloo")
r = dist.get_rank()
mesh = init_device_mesh("cpu", (2, 2))
S0, S1, R, P, M = Shard(0), Shard(1), Replicate(), Partial(), Partial("max")
LAID = [*itertools.product([S0, S1, R], repeat=2), (_StridedShard(0, split_factor=2), S0),
        (_StridedShard(1, split_factor=2), S1)]  # fmt: skip
SUMMED = [
    ways
    for kind in (P, M)
    for ways in itertools.product([S0, S1, R, kind], repeat=2)
    if kind in ways
]


def part(whole, ways):
    """This rank's part as the definition has it: later dims cut what earlier ones left."""
    place = mesh.get_coordinate()
    order = [1, 0] if isinstance(ways[0], _StridedShard) else [0, 1]
    for i in order:
        if isinstance(ways[i], Shard):
            d = ways[i].dim
            each = -(-whole.shape[d] // 2)
            begin = min(each * place[i], whole.shape[d])
            whole = whole.narrow(d, begin, min(each, whole.shape[d] - begin))
        elif ways[i] is P:
            whole = whole * (3 if place[i] else -2)  # these sum to the whole
        elif ways[i] is M:
            whole = whole - place[i]
    return whole


for sizes in ((3, 1), (8, 4), (7, 5), (3, 2)):  # first those of which some ranks have nothing
    whole = torch.arange(float(sizes[0] * sizes[1])).reshape(sizes)
    weights = (whole * 0.7).sin()
    for old in [*LAID, *SUMMED]:
        given = part(whole, old)
        x = DTensor.from_local(given.clone(), mesh, old, shape=sizes, stride=whole.stride())
        assert torch.equal(x.full_tensor(), whole), (sizes, old)
        for new in LAID:
            moved = x.redistribute(placements=new)
            assert moved.placements == tuple(new)
            assert torch.equal(moved.to_local(), part(whole, new)), (sizes, old, new)
    for old, new in itertools.product(LAID, repeat=2):
        assert torch.equal(distribute_tensor(whole, mesh, old).to_local(), part(whole, old))
        x = distribute_tensor(whole, mesh, old).requires_grad_()
        (x.redistribute(placements=new).full_tensor() * weights).sum().backward()
        assert torch.equal(x.grad.full_tensor(), weights), (sizes, old, new)
        y = distribute_tensor(weights, mesh, new)
        assert torch.equal((x.detach() + y).full_tensor(), whole + weights), (sizes, old, new)

# Rows of a table that are cut along one dim of the mesh, and sums along the other.
table, ids = torch.arange(20.0).reshape(4, 5), torch.tensor([3, 0, 1])
for ways in ((S0, P), (P, S0), (S0, S0), (S1, S0), (S0, M)):
    cut = DTensor.from_local(part(table, ways), mesh, ways, shape=(4, 5), stride=(5, 1))
    found = torch.nn.functional.embedding(distribute_tensor(ids, mesh), cut)
    assert torch.equal(found.full_tensor(), table[ids]), ways
# A dim that both cut must divide by both sizes to be split.
whole = torch.arange(24.0).reshape(4, 6)
for sizes in ((2, 2, 6), (4, 2, 3), (-1,), (2, -1)):
    for ways in LAID:
        seen = distribute_tensor(whole, mesh, ways).view(sizes)
        assert torch.equal(seen.full_tensor(), whole.view(sizes)), (sizes, ways)
dist.barrier()
print(f"rank {r} is through")
