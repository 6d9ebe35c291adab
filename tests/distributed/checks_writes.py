"""Run by ranks: writes into parts of distributed tensors, and batch norm with its statistics."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))
rng = np.random.default_rng(0)
WAYS = [Replicate(), Shard(0), Shard(1)]


def numbers(*size):
    return torch.tensor(rng.normal(size=size))


def lie(x, way):
    return distribute_tensor(x, mesh, [way]).requires_grad_(x.requires_grad)


def same(a, b):
    a = a.full_tensor() if isinstance(a, DTensor) else a
    assert a.shape == b.shape and np.allclose(a.detach().numpy(), b.detach().numpy()), (a, b)


x, weights = numbers(5, 4), numbers(5, 4)
KEYS = {
    "row": 1,
    "element": (2, -1),
    "rows": slice(1, 4),
    "every second": slice(None, None, 2),
    "column": (slice(None), 0),
    "columns": (..., slice(1, 3)),
    "all": ...,
    "list": [0, 3],
    "new dim": (None, 2),
}
for way in WAYS:
    for key in KEYS.values():
        size = x[key].shape
        values = [7.5, torch.tensor(2.5, dtype=x.dtype), numbers(*size), numbers(1, *size)]
        values += [numbers(1)] if len(size) else []
        for value in values:
            wide = isinstance(value, torch.Tensor) and value.ndim > 0
            for other in WAYS[: 1 + value.ndim] if wide else [None]:
                # The values and the gradients of one process.
                found = []
                for spread in (False, True):
                    leaf = x.clone().requires_grad_()
                    given = value.clone().requires_grad_() if wide else value
                    if spread:
                        leaf = lie(leaf, way)
                        given = lie(given, other) if wide else given
                    y = leaf * 2
                    y[key] = given
                    assert not spread or y.placements == (way,)
                    (y * (lie(weights, Replicate()) if spread else weights)).sum().backward()
                    found.append((y, leaf.grad, *([given.grad] if wide else [])))
                for a, b in zip(*found):
                    same(b, a)
    # What tensors choose, distributed or the same on every process.
    for choose in (lambda t: t > 0, lambda t: t[:, 0] > 0, lambda t: (t > 0) & (t < 1)):
        d, plain = lie(x, way), x.clone()
        d[choose(d)] = 3.0
        plain[choose(plain)] = 3.0
        same(d, plain)
    rows = torch.tensor([3, 0])
    for index in (rows, lie(rows, Replicate())):
        d, plain, new = lie(x, way), x.clone(), numbers(2, 4)
        d[index] = lie(new, Replicate())
        plain[rows] = new
        same(d, plain)
    at = lie(rows, Replicate())
    for write in (
        lambda t, i, v: t.index_put_((i,), v),
        lambda t, i, v: t.index_add_(0, i, v),
        lambda t, i, v: t.index_copy_(0, i, v),
        lambda t, i, v: t.index_fill_(0, i, 2.0),
        lambda t, i, v: t.scatter_(0, i.unsqueeze(1), v[:, :1]),
        lambda t, i, v: t.masked_scatter_(t > 0, t * 2),
        lambda t, i, v: t.tril_(),
        lambda t, i, v: t.fill_diagonal_(1.5),
    ):
        d, plain = lie(x, way), x.clone()
        assert write(d, at, lie(new, Replicate())) is d
        same(d, write(plain, rows, new))
    table, plain = lie(x, way), x.clone()
    same(F.embedding(at, table, max_norm=1.0), F.embedding(rows, plain, max_norm=1.0))
    same(table, plain)
    # In place of a leaf only where nothing is recorded.
    leaf = lie(x, way).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1.0
    with torch.no_grad():
        leaf[0] = 1.0
    assert leaf.full_tensor()[0].tolist() == [1.0] * 4

d = lie(x, Shard(0))
with pytest.raises(RuntimeError, match="setitem: got plain tensors beside distributed ones"):
    d[0] = x[0]
with pytest.raises(NotImplementedError, match="setitem of a plain tensor with a distributed one"):
    x.clone()[0] = d[0]
with pytest.raises(NotImplementedError, match="setitem of what is partial; redistribute"):
    DTensor.from_local(x, mesh, [Partial()])[0] = 1.0
with pytest.raises(NotImplementedError, match="would not change the tensor that was viewed"):
    d[0][1] = 1.0
with pytest.raises(IndexError):
    d[5] = 1.0
with pytest.raises(RuntimeError):
    d[0] = lie(numbers(3), Replicate())
same(d, x)

# Batch norm: values, gradients and running statistics are those of the whole.
for size, ways in (((6, 4), WAYS), ((4, 3, 5), [*WAYS, Shard(2)])):
    x, weights, c = numbers(*size), numbers(*size), size[1]
    for way in ways:
        for training in (True, False):
            for stats in (Replicate(), Shard(0), None) if training else (Replicate(), Shard(0)):
                found = []
                for spread in (False, True):
                    leaves = [t.clone().requires_grad_() for t in (x, x[0].reshape(c, -1)[:, 0])]
                    leaves.append(torch.ones(c, dtype=x.dtype, requires_grad=True))
                    both = [torch.arange(float(c), dtype=x.dtype), torch.ones(c, dtype=x.dtype)]
                    if spread:
                        leaves = [lie(t, w) for t, w in zip(leaves, (way, Replicate(), Shard(0)))]
                        both = [lie(t, stats or Replicate()) for t in both]
                    both = [None, None] if stats is None else both
                    y = F.batch_norm(leaves[0], *both, leaves[1], leaves[2], training, 0.2)
                    (y * (lie(weights, Replicate()) if spread else weights)).sum().backward()
                    found.append(
                        [y, *(t.grad for t in leaves), *(b for b in both if b is not None)]
                    )
                for a, b in zip(*found):
                    same(b, a)
x = numbers(6, 4, 2)
torch.manual_seed(0)
plain = torch.nn.BatchNorm1d(4).double()
spread = torch.nn.BatchNorm1d(4).double()
distribute_module(spread, mesh)
for way in (Shard(0), Shard(1), Shard(2)):
    same(spread(lie(x, way)), plain(x))
spread.eval(), plain.eval()
assert spread(lie(x, Shard(0))).placements == (Shard(0),)
same(spread(lie(x, Shard(0))), plain(x))
same(F.instance_norm(lie(x, Shard(0))), F.instance_norm(x))
for name, value in plain.state_dict().items():
    same(spread.state_dict()[name], value)
with pytest.raises(RuntimeError, match="batch_norm: got plain tensors beside distributed ones"):
    plain(lie(x, Shard(0)))
dist.barrier()
print(f"rank {r} is through")
