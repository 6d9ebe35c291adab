"""Run by ranks: second and third derivatives of distributed tensors, which are the whole's."""

import itertools
import math

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from torch.distributed.tensor.parallel import loss_parallel

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (2, 2) if n == 4 else (n,))
rng, choose = np.random.default_rng(0), np.random.default_rng(1)
WAYS = [Replicate(), Shard(0), Shard(1), Partial(), Partial("avg")]


def numbers(*size):
    return torch.tensor(rng.uniform(0.5, 1.5, size))


def spread(whole, ways):
    """A whole that lies in these ways, of unequal parts where it is a sum or mean of them."""
    start = [Replicate() if isinstance(way, Partial) else way for way in ways]
    made = distribute_tensor(whole, mesh, start).to_local()
    for i, (place, way) in enumerate(zip(mesh.get_coordinate(), ways)):
        if isinstance(way, Partial):
            size = mesh.size(i)
            made = made * 2 * (place + 1) / (size + 1)
            made = made / size if way.reduce_op == "sum" else made
    return DTensor.from_local(made, mesh, ways, shape=whole.shape)


def derivatives(func, leaves, scales, weights):
    """The first three derivatives of sums, each of which is not linear in the one before."""
    made = func(*leaves)

    def weighted(x, w):
        return (x * x * (distribute_tensor(w, mesh) if isinstance(x, DTensor) else w)).sum()

    loss = weighted(made, weights[0])
    found = []
    for k in (1, 2, 3):
        grads = torch.autograd.grad(loss, leaves, create_graph=k < 3, allow_unused=True,
                                    materialize_grads=True)  # fmt: skip
        # Every part of a mean has a share of the gradient.
        grads = [g * s for g, s in zip(grads, scales)]
        found.append([g.full_tensor() if isinstance(g, DTensor) else g for g in grads])
        loss = sum(weighted(g, w) for g, w in zip(grads, weights[1:]))
    return found


def check(name, func, *wholes):
    size = func(*wholes).shape
    weights = [numbers(*size), *(numbers(*w.shape) for w in wholes)]
    want = derivatives(func, [w.clone().requires_grad_() for w in wholes], [1] * 3, weights)
    kinds = [WAYS[: min(w.ndim, 2) + 1] + WAYS[3:] for w in wholes]
    kinds = [list(itertools.product(k, repeat=mesh.ndim)) for k in kinds]
    combinations = list(itertools.product(*kinds))
    if mesh.ndim == 2:
        combinations = [combinations[i] for i in choose.integers(len(combinations), size=6)]
    for ways in combinations:
        given = [spread(w, way).requires_grad_() for w, way in zip(wholes, ways)]
        scales = [math.prod(mesh.size(i) for i, p in enumerate(way) if p == Partial("avg"))
                  for way in ways]  # fmt: skip
        got = derivatives(func, given, scales, weights)
        for k, (one, other) in enumerate(zip(got, want)):
            for j, (x, y) in enumerate(zip(one, other)):
                where = f"{name} of {ways}: derivative {k + 1} by operand {j}"
                assert np.allclose(x.detach().numpy(), y.detach().numpy()), f"{where}: {x} for {y}"


def distributed(x):
    return isinstance(x, DTensor)


def moved(x, *ways):
    """x, lying in one way after another if it is distributed."""
    for way in ways if distributed(x) else ():
        x = x.redistribute(placements=[way] * mesh.ndim)
    return x


def whole(x):
    if not distributed(x):
        return x.sin()
    return DTensor.from_local(x.full_tensor().sin(), mesh, [Replicate()] * mesh.ndim)


def own_parts(x, y):
    """A product of sums, of what each process has of one tensor and all of another."""
    if not distributed(x):
        return x.sum() * y * 3
    x, y = moved(x, Shard(0)), moved(y, Replicate())
    sums = [Partial()] * mesh.ndim
    total = DTensor.from_local(x.to_local().sum(), mesh, sums)
    mine = y.to_local(grad_placements=sums) * (r + 1) * 6 / (n * (n + 1))
    return total * DTensor.from_local(mine, mesh, sums)


def by_hand(x):
    if not distributed(x):
        return x * 2
    return DTensor.from_local(x.to_local() * 2, mesh, x.placements, shape=x.shape)


ONE = {
    "square": lambda x: x * x,
    "scaled": lambda x: (x * 3 - 1) / 2,
    "negative": lambda x: -x,
    "sine": lambda x: x.sin(),
    "sum": lambda x: x.sum(),
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1, keepdim=True) * x,
    "mean": lambda x: x.mean(0),
    "amax": lambda x: x.amax(1),
    "prod": lambda x: x.prod(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: x.softmax(1),
    "softmax 0": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "itself": lambda x: x @ x.mT,
    "transposed": lambda x: x.T * 2,
    "view": lambda x: (x.view(2, 2, 6).transpose(0, 1) * 2).reshape(-1),
    "split": lambda x: x.split(2, 0)[1] * x.split(2, 0)[0],
    "index": lambda x: x[:, 1] * x[None, :, 2],
    "expand": lambda x: x[:, None].expand(-1, 3, -1) * 2,
    "norm": lambda x: x.norm(),
    "cumsum": lambda x: x.cumsum(0),
    "moved to rows": lambda x: moved(x, Shard(0)) * 2,
    "moved to columns": lambda x: moved(x, Shard(1)) * x,
    "moved to wholes": lambda x: moved(x, Replicate()) * x,
    "moved to parts": lambda x: moved(x, Partial()) * x,
    "there and back": lambda x: moved(x, Partial(), Shard(0)) * x,
    "means and back": lambda x: moved(moved(x, Replicate(), Partial("avg")) * 2, Shard(0)) * x,
    "full_tensor": lambda x: whole(x) * x,
    "to_local": lambda x: by_hand(x) * x,
}
TWO = {
    "add": torch.add,
    "sub": lambda a, b: a - b * a,
    "mul": torch.mul,
    "div": torch.div,
    "row": lambda a, b: a * b[:1],
    "pow": torch.pow,
    "matmul": lambda a, b: a @ b.mT,
    "linear": F.linear,
    "linear, sum": lambda a, b: F.linear(a, b, b.sum(1)),
    "where": lambda a, b: torch.where(a > b, a * b, b),
    "cat": lambda a, b: torch.cat([a, b]) * 2,
    "addmm": lambda a, b: torch.addmm(a @ b.mT, a, b.mT),
    "outer sums": lambda a, b: a.sum(0)[:4] * b.sum(1),
    "own parts": own_parts,
    "attention": lambda a, b: F.scaled_dot_product_attention(a, b, a),
}
for name, func in ONE.items():
    check(name, func, numbers(4, 6))
    if name not in ("view", "split"):
        check(name, func, numbers(5, 6))
for name, func in TWO.items():
    check(name, func, numbers(4, 6), numbers(4, 6))
check("linear with bias", F.linear, numbers(3, 4), numbers(2, 4), numbers(2))
check("layer_norm", lambda x, w, b: F.layer_norm(x, (4,), w, b), numbers(3, 4), *(
    numbers(4), numbers(4)))  # fmt: skip
ids = torch.tensor([[0, 3, 3], [1, 3, 2]])
check("embedding", lambda table: F.embedding(
    distribute_tensor(ids, mesh) if distributed(table) else ids, table), numbers(4, 5))  # fmt: skip

if mesh.ndim == 1:
    targets = torch.tensor([0, 5, -100, 2])

    def loss(logits, reduction):
        if distributed(logits):
            logits = logits.redistribute(placements=[Shard(1)])
        with loss_parallel():
            return F.cross_entropy(logits, targets, reduction=reduction)

    for reduction in ("mean", "none"):
        check(f"loss, {reduction}", lambda x, how=reduction: loss(x, how) ** 2, numbers(4, 6))


# Gradients by what is partial itself, which was changed in place; and those of a plain part.
def sums_between(x):
    z = x.sum(0)
    z.mul_(2)
    first, by_x = torch.autograd.grad((z**3).sum(), (z, x), create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum() + (by_x**2).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad((second**2).sum(), x)
    return first, by_x, second, third


start = numbers(4, 6)
want = sums_between(start.clone().requires_grad_())
for way in WAYS[:3]:
    got = sums_between(spread(start, [way] * mesh.ndim).requires_grad_())
    for x, y in zip(got, want):
        assert np.allclose(x.full_tensor().detach().numpy(), y.detach().numpy()), (way, x, y)
for way in WAYS[:4]:
    local = spread(start, [way] * mesh.ndim).requires_grad_().to_local()
    (first,) = torch.autograd.grad((local**2).sum(), local, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), local)
    assert np.allclose(second.numpy(), 8 * local.detach().numpy()), way

# What is partial changes in place, but not by what takes a gradient: see Call.fixed().
part = DTensor.from_local(torch.ones(4), mesh, [Partial()] * mesh.ndim)
try:
    part.mul_(distribute_tensor(torch.ones(4), mesh).requires_grad_())
except NotImplementedError as e:
    assert "takes a gradient; redistribute() first" in str(e), e
else:
    raise AssertionError(part)
try:
    part.to_local(grad_placements=[Shard(0)] * mesh.ndim)
except NotImplementedError as e:
    assert "redistribute() first" in str(e), e
else:
    raise AssertionError("a shard of a sum's gradient")
dist.barrier()
print(f"rank {r} is through")
