"""Run by ranks: what the gradients of distributed tensors are to whoever asks for them."""

import numpy as np
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

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (n,))


def leaf(way, size=(5, 3)):
    """A tensor of 0, 1, 2, ... that lies in one way; a sum of unequal parts where it is partial."""
    x = torch.arange(float(np.prod(size))).reshape(size)
    if isinstance(way, Partial):
        return DTensor.from_local(x * (r + 1) * 2 / (n * (n + 1)), mesh, [way]).requires_grad_()
    return distribute_tensor(x, mesh, [way]).requires_grad_()


def check(grad, want, way):
    assert isinstance(grad, DTensor), type(grad)
    assert grad.placements == (Replicate() if isinstance(way, Partial) else way,), grad.placements
    assert np.allclose(grad.full_tensor().detach().numpy(), want)


for way in (Replicate(), Shard(0), Shard(1), Partial()):
    whole = np.arange(15.0).reshape(5, 3)
    # A part's gradient is that of the whole where the whole is the sum of the parts.
    x = leaf(way)
    (x * x).sum().backward()
    check(x.grad, 2 * whole, way)
    # grad() gives distributed tensors, which go on into a graph.
    (found,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    check(found, 3 * whole**2, way)
    (second,) = torch.autograd.grad(found.full_tensor().sum(), x)
    check(second, 6 * whole, way)
    unused, _ = torch.autograd.grad(
        (x * 2).sum(), (leaf(way), x), allow_unused=True, materialize_grads=True
    )
    assert unused.shape == (5, 3) and not unused.full_tensor().any()
    # So do hooks, and what they return may lie in another way.
    seen, replaced = [], distribute_tensor(torch.tensor(whole).float() * 7, mesh, [Replicate()])
    x = leaf(way)
    handles = [x.register_hook(seen.append), x.register_hook(lambda g, new=replaced: new)]
    (x * 2).sum().backward()
    check(seen[0], np.full((5, 3), 2.0), way)
    check(x.grad, whole * 7, way)
    [h.remove() for h in handles]
    # Gradients to begin with, or to be set, may lie in another way than the tensor.
    x = leaf(way)
    (x * 2).backward(replaced)
    check(x.grad, whole * 14, way)
    (found,) = torch.autograd.grad(x * 3, x, replaced)
    check(found, whole * 21, way)
    x.grad = replaced
    check(x.grad, whole * 7, way)
    x.grad = None
    assert x.grad is None

dist.barrier()
print(f"rank {r} is through")
