"""Run by ranks: data parallelism against one process with the whole batch."""

import copy
import warnings

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("mpi")
r, n = dist.get_rank(), dist.get_world_size()


def equal_on_all(tensors):
    for t in tensors:
        rows = [torch.empty_like(t) for _ in range(n)]
        dist.all_gather(rows, t)
        for row in rows:
            assert row.numpy().tobytes() == rows[0].numpy().tobytes()


def net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(),
                         nn.Linear(300, 2))  # fmt: skip


# Training equals one process with all batches, whatever the ranks' first weights were.
for cap in (None, 0.01):
    whole = net(0)
    ours = DDP(net(r), bucket_cap_mb=cap)
    opts = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (whole, ours)]
    rng = np.random.default_rng(3)
    for _ in range(4):
        x = torch.tensor(rng.normal(size=(4 * n, 6)).astype(np.float32))
        for m, o, part in ((whole, opts[0], x), (ours, opts[1], x[4 * r : 4 * r + 4])):
            o.zero_grad()
            (m(part) ** 2).mean().backward()
        equal_on_all([p.grad for p in ours.parameters()])
        for p, q in zip(whole.parameters(), ours.parameters()):
            assert np.allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-6)
        [o.step() for o in opts]
    equal_on_all([p.detach() for p in ours.parameters()])

# no_sync: two batches gathered, then averaged together.
ours = DDP(nn.Linear(3, 1, bias=False))
with ours.no_sync():
    ours(torch.full((1, 3), r + 1.0)).sum().backward()
assert ours.module.weight.grad.tolist() == [[r + 1.0] * 3]
ours(torch.full((1, 3), 1.0)).sum().backward()
assert ours.module.weight.grad.tolist() == [[(n + 1) / 2 + 1.0] * 3]


# Parameters that only some ranks use, in some steps only.
class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(n + 1)])

    def forward(self, x, i):
        return self.ways[i](x)


ours = DDP(Branches())
for step in range(3):
    ours.zero_grad()
    mine = (r + step) % n
    ours(torch.ones(1, 2) * (r + 1), mine).sum().backward()
    for i in range(n):
        user = (i - step) % n
        assert torch.allclose(ours.module.ways[i].weight.grad, torch.tensor((user + 1.0) / n))
    assert ours.module.ways[n].weight.grad is None  # nobody used it
    equal_on_all([w.weight.grad for w in ours.module.ways[:n]])


# Hooks: compressed to float16.
def fp16(state, bucket):
    small = bucket.buffer().half()
    work = dist.all_reduce(small, dist.ReduceOp.AVG, async_op=True)
    return work.get_future().then(lambda f: f.value()[0].to(bucket.buffer().dtype))


ours = DDP(nn.Linear(3, 1, bias=False))
ours.register_comm_hook(None, fp16)
ours(torch.full((1, 3), r + 0.5)).sum().backward()
assert ours.module.weight.grad.tolist() == [[n / 2] * 3]

# Buffers are rank 0's; bfloat16 parameters.
ours = DDP(nn.BatchNorm1d(2))
ours.module.running_mean.fill_(r)
ours(torch.ones(4, 2))
assert ours.module.running_mean.tolist() == [0.1 * np.float32(1)] * 2 or np.allclose(
    ours.module.running_mean.numpy(), 0.1
)

# Which buffers are sent at first and before a forward pass.
for options, first, then in (
    ({}, 0, 0),
    ({"forward_sync_buffers": False}, 0, r),
    ({"broadcast_buffers": False}, r, r),
    ({"broadcast_buffers": False, "forward_sync_buffers": True}, 0, 0),
    ({"init_sync": False}, r, 0),
    ({"device_mesh": init_device_mesh("cpu", (n,)), "batched_grad_copy": True}, 0, 0),
):
    norm = nn.BatchNorm1d(2, momentum=0.0)
    norm.running_mean.fill_(r)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ours = DDP(norm, **options)
    assert len(seen) == ("broadcast_buffers" in options)
    assert all(w.category is FutureWarning and w.filename == __file__ for w in seen)
    assert norm.running_mean.tolist() == [first] * 2, options
    norm.running_mean.fill_(r)
    ours(torch.ones(4, 2))
    assert norm.running_mean.tolist() == [then] * 2, options
    assert ours.broadcast_buffers is ours.forward_sync_buffers

# What is not there, and what nobody knows, raises whatever its value is.
for options, kind in (
    ({"find_unused_parmeters": False}, TypeError),
    ({"skip_all_reduce_unused_params": True}, NotImplementedError),
    (
        {"device_mesh": init_device_mesh("cpu", (n,)), "process_group": dist.group.WORLD},
        RuntimeError,
    ),
    ({"device_mesh": init_device_mesh("cpu", (1, n))}, RuntimeError),
):
    try:
        DDP(nn.Linear(2, 1), **options)
        raise SystemExit(f"no error: {options}")
    except kind:
        pass

ours = DDP(nn.Linear(2, 1).bfloat16())
ours(torch.full((1, 2), r + 1.0).bfloat16()).sum().backward()
assert ours.module.weight.grad.float().tolist() == [[(n + 1) / 2] * 2]

# Of two dtypes and odd sizes; gathered over two steps; what a rank does to its gradient is its own.
torch.manual_seed(3)
mixed = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1).double())
mixed.forward = lambda x: mixed[1](mixed[0](x).tanh().double())
ours = DDP(mixed)
for _ in range(2):
    ours(torch.full((2, 3), r + 1.0)).sum().backward()
once = copy.deepcopy(mixed)
once.zero_grad()
for other in range(n):
    (once[1](once[0](torch.full((2, 3), other + 1.0)).tanh().double()).sum() / n).backward()
for p, q in zip(mixed.parameters(), once.parameters()):
    assert torch.allclose(p.grad, 2 * q.grad, rtol=1e-5), (p.grad, q.grad)
before = mixed[0].weight.grad.clone()
if r == 0:
    mixed[0].weight.grad.mul_(3)
dist.barrier()
assert torch.equal(mixed[0].weight.grad, before * 3 if r == 0 else before)

# A backward that raises on all ranks, after some buckets have gone, spoils nothing.
net = nn.Sequential(nn.Linear(6, 300), nn.Linear(300, 300), nn.Linear(300, 300), nn.Linear(300, 2))
ours = DDP(net, bucket_cap_mb=0.1)
for step in range(4):
    handle = net[0].weight.register_hook(lambda grad: 1 / 0) if step == 1 else None
    net.zero_grad()
    try:
        ours(torch.full((2, 6), r + 1.0)).sum().backward()
        assert step != 1
    except ZeroDivisionError:
        handle.remove()
        continue
    alone = copy.deepcopy(net)
    alone.zero_grad()
    for other in range(n):
        (alone(torch.full((2, 6), other + 1.0)).sum() / n).backward()
    for p, q in zip(net.parameters(), alone.parameters()):
        assert torch.allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6), (step, p.grad, q.grad)

# SyncBatchNorm equals BatchNorm of the whole batch, values and gradients.
torch.manual_seed(1)
whole = nn.BatchNorm2d(3)
sync = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))
x = torch.tensor(np.random.default_rng(5).normal(2, 3, (2 * n, 3, 4, 4)).astype(np.float32))
w = torch.tensor(np.random.default_rng(6).normal(size=x.shape).astype(np.float32))
a = x.clone().requires_grad_()
b = x[2 * r : 2 * r + 2].clone().requires_grad_()
(whole(a) * w).sum().backward()
out = sync(b)
(out * w[2 * r : 2 * r + 2]).sum().backward()
assert np.allclose(whole(a).detach().numpy()[2 * r : 2 * r + 2], out.detach().numpy(), atol=1e-5)
assert np.allclose(a.grad.numpy()[2 * r : 2 * r + 2], b.grad.numpy(), atol=1e-5)
fresh = nn.BatchNorm2d(3)
fresh(x)
assert np.allclose(sync.running_var.numpy(), fresh.running_var.numpy(), rtol=1e-4)
assert np.allclose(sync.running_mean.numpy(), fresh.running_mean.numpy(), rtol=1e-4)

# Another module on one rank raises on all, instead of hanging.
try:
    DDP(nn.Linear(2, 2 + r))
    raise SystemExit("no error")
except RuntimeError as error:
    assert "other parameters" in str(error)
dist.destroy_process_group()
print(f"rank {r} is through")
