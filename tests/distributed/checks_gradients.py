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
from torch.utils.checkpoint import checkpoint

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

# What runs within backward is of distributed tensors, too: hooks, Functions, what is run again.


def want_of(step):
    """The gradient of the step on a whole that every rank has."""
    x = torch.arange(15.0).reshape(5, 3).div(10).requires_grad_()
    step(x)
    return x.grad.numpy()


class Scaled(torch.autograd.Function):
    """x times the sum of w."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.sum()

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w.sum(), torch.ones_like(w) * (grad * x).sum()


def checkpointed(reentrant, nested):
    def part(x):
        return (x * x.sum()).tanh()

    def whole(x):
        return checkpoint(part, part(x) * x.mean(), use_reentrant=reentrant)

    return lambda x: (
        checkpoint(whole if nested else part, x, use_reentrant=reentrant).sum().backward()
    )


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * g.sum())
    (y * y).sum().backward()


def accumulated(x):
    def scale(p):
        p.grad.mul_(p.grad.sum().item())

    x.register_post_accumulate_grad_hook(scale)
    (x * x).sum().backward()


def in_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
        y = Scaled.apply(x, x.exp())
    y.square().sum().backward()


steps = {
    **{f"checkpoint {k}, {n}": checkpointed(k, n) for k in (False, True) for n in (False, True)},
    "hook": hooked,
    "post-accumulate hook": accumulated,
    "Function": lambda x: Scaled.apply(x, x.exp()).square().sum().backward(),
    "Function within hooks": in_hooks,
    "inputs": lambda x: [(x * x.sum()).sum().backward(inputs=[x]) for _ in range(2)],
}
for way in (Replicate(), Shard(0), Shard(1)):
    for name, step in steps.items():
        x = distribute_tensor(torch.arange(15.0).reshape(5, 3) / 10, mesh, [way]).requires_grad_()
        step(x)
        got = x.grad.full_tensor().numpy()
        assert np.allclose(got, want_of(step), rtol=1e-4), (name, way, got, want_of(step))
one_each = distribute_tensor(torch.arange(float(n)), mesh, [Shard(0)]).requires_grad_()
if n > 1:
    try:
        (one_each * 2).backward()
    except RuntimeError as error:
        assert "scalar outputs" in str(error), error
    else:
        raise AssertionError("a gradient to start with was not asked for")

dist.barrier()
print(f"rank {r} is through")
