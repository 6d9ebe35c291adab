"""Run by ranks: views in place, numbers with gradients, plain tensors beside distributed."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from blocks import same
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
x = torch.tensor(np.random.default_rng(0).normal(size=(n, 1, 6)))
WAYS = [Replicate(), Shard(0), Shard(2)]


# What is one row here may be several of the whole.
for way in [*WAYS, Shard(1)]:
    d = distribute_tensor(x, mesh, [way])
    for squeeze in (
        lambda t: t.squeeze(),
        lambda t: t.squeeze(0),
        lambda t: t.squeeze((0, 1)),
        lambda t: torch.squeeze(input=t, dim=-2),
    ):
        assert tuple(squeeze(d).shape) == tuple(squeeze(x).shape)
        same(squeeze(d), squeeze(x))

# A view in place changes what was viewed, or says that it cannot.
y = x[:, 0].repeat(2, 1)
for way in (Replicate(), Shard(0), Shard(1)):
    for view in (
        lambda t: t[0],
        lambda t: t[:, 1:3],
        lambda t: t.T[2],
        lambda t: t.chunk(2, 1)[1],
        lambda t: t.view(-1)[3:].unsqueeze(0),
    ):
        for change in (lambda v: v.mul_(2), lambda v: v.zero_(), lambda v: v.fill_(3)):
            d, plain = distribute_tensor(y, mesh, [way]), y.clone()
            change(view(plain))
            part = view(d)
            if part._copied:
                with pytest.raises(NotImplementedError, match="would not change the tensor that"):
                    change(part)
            else:
                change(part)
            same(d, y if part._copied else plain)
    # Not views, whatever had to move: these are free to change.
    d = distribute_tensor(y, mesh, [way])
    for made in (d[torch.tensor([0, 1])], d.T.reshape(-1), d[0] * 1, d.sum(0)):
        made.mul_(2)
    same(d, y)
for change in (lambda v: torch.nn.functional.relu(v, inplace=True), lambda v: v.normal_()):
    with pytest.raises(NotImplementedError, match="would not change"):
        change(distribute_tensor(y, mesh, [Shard(0)])[0])

# A plain number's gradient is that of all processes' elements.
for way in (Replicate(), Shard(0), Shard(1), Partial()):
    for f in (
        lambda t, s: t * s,
        lambda t, s: s / (t * t + 1) - s,
        lambda t, s: (t * 1).redistribute(placements=[Shard(0)]).mul_(s)
        if isinstance(t, DTensor) else t * s,
    ):  # fmt: skip
        found = []
        for start in (y, DTensor.from_local(y / n, mesh, [way]) if way == Partial() else
                      distribute_tensor(y, mesh, [way])):  # fmt: skip
            s = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
            total = (f(start, s) ** 2).sum()
            (first,) = torch.autograd.grad(total, s, create_graph=True)
            (first**2).backward()
            found.append((first, s.grad))
        for a, b in zip(*found):
            assert type(b) is torch.Tensor
            same(b, a)

# What depends on elements has sizes that only they tell.
for way in (Replicate(), Shard(0), Shard(1)):
    d = distribute_tensor(y, mesh, [way])
    same(d[d > 0], y[y > 0])
    same(torch.where(d > 0)[1], torch.where(y > 0)[1])
    same(d.cpu(), y)
    assert np.array_equal(np.asarray(d), y.numpy())
    same(torch.rsub(d, 1), 1 - y)

# Plain tensors beside distributed ones are not taken for parts, nor for wholes.
d = distribute_tensor(y, mesh, [Shard(0)])
for wrong in (
    lambda: torch.nn.functional.mse_loss(d, y),
    lambda: y @ d.T,
    lambda: d * y.numpy(),
    lambda: torch.stack([y, d]),
    lambda: d.gather(1, torch.zeros(2, 1, dtype=torch.int64)),
):
    with pytest.raises(RuntimeError, match=r"plain tensors beside distributed ones; make them"):
        wrong()
with pytest.raises(NotImplementedError, match=r"vmap of a distributed tensor; use full_tensor\(\)"):
    torch.func.vmap(torch.sin)(d)
with pytest.raises(NotImplementedError, match="to_local"):
    torch.from_dlpack(d)
# Loading: what is distributed is not taken for a plain tensor, whatever the part's sizes are.
rows = torch.nn.Linear(3, n)
cut = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in rows.state_dict().items()}
with pytest.raises(RuntimeError, match=r"distributed in the checkpoint and plain in the model"):
    torch.nn.Linear(3, n).load_state_dict(cut)
torch.nn.Linear(3, n).load_state_dict(cut, assign=True)
torch.nn.Linear(3, n).load_state_dict({k: v.full_tensor() for k, v in cut.items()})
dist.barrier()
print(f"rank {r} is through")

# A plain tensor does not take this process's part for the whole.
with pytest.raises(NotImplementedError, match="copy_ of a plain tensor with a distributed one"):
    torch.zeros(n, 1, 6, dtype=torch.float64).copy_(distribute_tensor(x, mesh, [Shard(0)]))

# tensor() and new_tensor() copy the whole, and keep how it lies.
d = distribute_tensor(x, mesh, [Shard(0)])
with pytest.warns(UserWarning, match="copy construct"):
    copy = torch.tensor(d, requires_grad=True)
assert copy.placements == d.placements and copy.requires_grad and not d.requires_grad
same(copy, x)
copy.sum().backward()
same(copy.grad, torch.ones_like(x))
other = torch.ones(1).new_tensor(d)
assert other.placements == d.placements and other.dtype == torch.float32
same(other, x.float())
other.zero_()
same(d, x)

# Made beside a distributed tensor: of the whole, the same on all processes, and leaves.
d, summand = distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(x, mesh, [Shard(0)]).sum()
for given in (d, d.sum(0, keepdim=True)):
    made = torch.ones(1).to(d.dtype).new_tensor(given)
    same(d.new_tensor(given), made.full_tensor())
assert d.new_tensor(d).shape == d.shape
same(d.new_full((2,), summand), x.sum().expand(2))
same(torch.full_like(d, summand), x.sum().expand(x.shape))
torch.manual_seed(0)
for made in (
    d.new_zeros(2, requires_grad=True),
    d.new_tensor([1.0, 2.0], requires_grad=True),
    torch.ones_like(d, requires_grad=True),
    torch.rand_like(d, requires_grad=True),
):
    assert made.is_leaf and made.requires_grad
    (made * 2).sum().backward()
    same(made.grad, torch.full(made.shape, 2.0, dtype=made.dtype))
assert not torch.zeros_like(d, requires_grad=False).requires_grad
with torch.no_grad():
    assert torch.zeros_like(d, requires_grad=True).is_leaf
# Text shows no number of this process's summand.
with pytest.raises(NotImplementedError, match=r"format\(\) of a distributed tensor"):
    f"{summand:.3f}"
assert f"{summand}" == repr(summand)
assert f"{summand.redistribute(placements=[Replicate()]):.3f}" == f"{x.sum():.3f}"

# A number is the whole's, not this process's summand; what holds a part is no tensor's memory.
number = distribute_tensor(x, mesh, [Shard(0)]).sum()
want = x.sum().item()
for made in (
    torch.tensor([number, number]),
    torch.as_tensor([number, 1.0])[:1],
    torch.full((2,), number),
):
    assert np.allclose(made.tolist(), want), (made, want)
with pytest.raises((NotImplementedError, RuntimeError), match="fill_.*plain tensor"):
    torch.zeros(2).fill_(number)
with pytest.raises(NotImplementedError, match="Tensor of a distributed tensor"):
    torch.Tensor(distribute_tensor(x, mesh, [Shard(0)]))
with pytest.raises(NotImplementedError, match=r"setting \.data of a distributed tensor"):
    torch.zeros(n, 1, 6, dtype=torch.float64).data = distribute_tensor(x, mesh, [Shard(0)])
