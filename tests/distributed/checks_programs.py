"""Run by two ranks: what programs for torchrun do, with the results that PyTorch has."""

import copy
import datetime
import os
import pickle

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()


def close(got, want, tol=1e-6):
    assert torch.allclose(torch.as_tensor(got), torch.as_tensor(want), atol=tol), (got, want)


# Buffers are rank 0's in evaluation too; a pass without gradients, or within no_sync, says that
# the next one sends none.
model = DDP(nn.BatchNorm1d(2, momentum=1.0))
x = torch.tensor([[1.0, 2.0], [3.0, 6.0]]) + 10 * r
model(x)
close(model.module.running_mean, [2.0 + 10 * r, 4.0 + 10 * r])
model.eval()
model(x)
close(model.module.running_mean, [2.0, 4.0])
with torch.no_grad():
    model(x)
model.module.running_mean.fill_(r)
model(x)  # after a pass without gradients
close(model.module.running_mean, [float(r)] * 2)
model(x)
close(model.module.running_mean, [0.0, 0.0])

# Sparse gradients are averaged and stay sparse, on a rank that did not use the layer too.
table = nn.Embedding(6, 2, sparse=True)
with torch.no_grad():
    table.weight.copy_(torch.arange(12.0).reshape(6, 2))
model = DDP(table)
model(torch.tensor([r, 4])).pow(2).sum().backward()
grad = table.weight.grad
assert grad.is_sparse
want = torch.zeros(6, 2)
want[0], want[1], want[4] = table.weight[0], table.weight[1], 2 * table.weight[4]
close(grad.to_dense(), want.detach())
torch.optim.SparseAdam(model.parameters(), lr=0.1).step()

# Groups.
assert dist.GroupMember.WORLD is dist.group.WORLD and dist.group.WORLD is not None

# Stores: what fails, and queues.
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]) + 11, n, r == 0)
store.queue_push("work", f"from {r}")
store.add("came", 1)
while store.add("came", 0) < n:
    pass
if r == 0:
    assert store.queue_len("work") == 2
    assert {store.queue_pop("work"), store.queue_pop("work")} == {b"from 0", b"from 1"}
    try:
        store.queue_pop("work", block=False)
        raise SystemExit("no error")
    except dist.QueueEmptyError as error:
        assert "work" in str(error)
try:
    store.wait(["never"], datetime.timedelta(milliseconds=50))
    raise SystemExit("no error")
except dist.DistStoreError as error:
    assert isinstance(error, dist.DistError) and "never" in str(error)
try:
    store.set("step", 3)
    raise SystemExit("no error")
except TypeError as error:
    assert "str or bytes" in str(error)
dist.barrier()

# Functional collectives give new tensors, with gradients.
world = dist.group.WORLD
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * (r + 1)
close(fc.all_reduce(x, "sum", world), [[3.0, 6.0], [9.0, 12.0]])
close(fc.all_reduce(x, "avg", [0, 1]), [[1.5, 3.0], [4.5, 6.0]])
close(fc.broadcast(x, 1, world), [[2.0, 4.0], [6.0, 8.0]])
close(fc.all_gather_tensor(x, 1, world), [[1.0, 2.0, 2.0, 4.0], [3.0, 4.0, 6.0, 8.0]])
close(fc.reduce_scatter_tensor(x, "sum", 1, world), [[3.0 + 3 * r], [9.0 + 3 * r]])
close(fc.permute_tensor(x.reshape(-1), [1, 0], world), x.reshape(-1) * (2 if r == 0 else 0.5))
close(fc.all_to_all_single(x, None, None, world), [[1.0 + 2 * r, 2.0 + 2 * r],
                                                   [2.0 + 4 * r, 4.0 + 4 * r]])  # fmt: skip
close(x, [[1.0 + r, 2.0 + 2 * r], [3.0 + 3 * r, 4.0 + 4 * r]])
leaf = x.clone().requires_grad_()
(fc.wait_tensor(fc.all_gather_tensor(leaf, 0, world)) * (r + 1)).sum().backward()
close(leaf.grad, [[3.0, 3.0], [3.0, 3.0]])
leaf.grad = None
(fc.reduce_scatter_tensor(leaf, "avg", 0, world) * (r + 1)).sum().backward()
close(leaf.grad, [[0.5, 0.5], [1.0, 1.0]])
for wrong in (lambda: fc.all_reduce(x, "mean", world), lambda: fc.all_reduce(x, "sum", "nobody")):
    try:
        wrong()
        raise SystemExit("no error")
    except ValueError as error:
        assert "mean" in str(error) or "nobody" in str(error)

# Losses of logits that are cut along the classes, against those of the whole.
mesh = init_device_mesh("cpu", (n,))
whole = torch.cos(torch.arange(15.0)).reshape(3, 5).requires_grad_()
target = torch.tensor([0, 4, -100])
for options in ({}, {"reduction": "sum"}, {"ignore_index": 4}, {"reduction": "none"}):
    aim = torch.tensor([0, 4, 2]) if "ignore_index" in options else target
    want = F.cross_entropy(whole, aim, **options)
    (grad,) = torch.autograd.grad(want.sum(), whole)
    logits = distribute_tensor(whole.detach(), mesh, [Shard(1)]).requires_grad_()
    with loss_parallel():
        got = F.cross_entropy(logits, aim, **options)
        got.sum().backward()
    close(got.to_local(), want.detach())
    assert logits.grad.placements == (Shard(1),)
    close(logits.grad.full_tensor(), grad)
try:
    with loss_parallel():
        F.cross_entropy(logits, torch.tensor([0, 1, 5]))
    raise SystemExit("no error")
except IndexError as error:
    assert "5 of 5 classes" in str(error)

# The norm of distributed gradients is distributed, as programs expect that ask for its whole.
layer = nn.Linear(4, 3)
with torch.no_grad():
    layer.weight.fill_(0.5)
fully_shard(layer)
layer(torch.ones(1, 4) * (r + 1)).sum().backward()
norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
close(norm.full_tensor(), (12 * 1.5**2 + 3) ** 0.5)
assert f"{norm:.3f}" == "5.477" and norm.item() > 5
close(layer.bias.grad.full_tensor(), [1 / 30**0.5] * 3)

# What programs set on sharded modules.
layer.zero_grad()
layer.set_is_last_backward(False)
layer.set_unshard_in_backward(True)
layer.set_reshard_after_backward(False)
for _ in range(2):
    layer(torch.ones(1, 4)).sum().backward()
    assert isinstance(layer.weight, DTensor)
close(layer.weight.grad.full_tensor(), torch.full((3, 4), 2.0))
with torch.no_grad():
    layer.bias.fill_(7.0)  # kept values are of the old part
close(layer(torch.zeros(1, 4)), [[7.0] * 3])
copies = init_device_mesh("cpu", (2, 1), mesh_dim_names=("copies", "shards"))
layer = nn.Linear(1, 1)
fully_shard(layer, mesh=copies)
layer.set_requires_all_reduce(False)
layer(torch.full((1, 1), r + 1.0)).sum().backward()
assert layer.weight.grad is None
layer.set_requires_all_reduce(True)
layer(torch.full((1, 1), r + 1.0)).sum().backward()
close(layer.weight.grad.full_tensor(), [[3.0]])

# Meshes.
assert (str(Shard(1)), str(Replicate())) == ("S(1)", "R")
flat = copies._flatten("all")
assert flat.size() == 2 and copies["all"] is flat and flat.get_local_rank() == r
assert dist.get_process_group_ranks(flat.get_group()) == [0, 1]
assert DeviceMesh.from_group(dist.group.WORLD, "cpu").shape == (2,)
both = DeviceMesh.from_group(copies.get_all_groups(), "cpu", [[0], [1]], mesh_dim_names=("a", "b"))
assert both["a"].get_group() is copies.get_group("copies")
for wrong in (("a", "b"), ("a", "a")):
    try:
        init_device_mesh("cpu", (2,) if wrong[1] == "b" else (2, 1), mesh_dim_names=wrong)
        raise SystemExit("no error")
    except RuntimeError as error:
        assert "different names" in str(error)

# A pipeline gives what the whole model gives, for both orders, several outputs and uneven parts.
torch.manual_seed(0)


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.table = nn.Linear(4, 6), nn.Embedding(3, 6)

    def forward(self, x, i):
        return torch.tanh(self.inner(x) + self.table(i)), i


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.outer = nn.Linear(6, 3)

    def forward(self, h, i):
        return self.outer(h) * (i + 1)[:, None]


first, second = First(), Second()
mine = (first, second)[r]
x, i = torch.sin(torch.arange(28.0)).reshape(7, 4), torch.arange(7) % 3
target = torch.cos(torch.arange(21.0)).reshape(7, 3)
want = second(*first(x, i))
parts = [F.mse_loss(a, b) for a, b in zip(want.tensor_split(3), target.tensor_split(3))]
wanted = torch.autograd.grad(sum(parts), list(mine.parameters()))
for kind in (ScheduleGPipe, Schedule1F1B):
    for scale in (True, False):
        stage = PipelineStage(mine, r, n, torch.device("cpu"))
        schedule = kind(stage, 3, loss_fn=F.mse_loss, scale_grads=scale)
        losses, inputs = [], (x, i) if r == 0 else ()
        mine.zero_grad()
        got = schedule.step(*inputs, target=target if r else None, losses=losses)
        assert (got is None) == (r == 0) and len(losses) == 3 * r
        if r:
            assert not got.requires_grad  # backward has used its history up
            close(got, want.detach())
            close(torch.stack(losses).detach(), torch.stack(parts).detach())
        for p, grad in zip(mine.parameters(), wanted):
            close(p.grad, grad / 3 if scale else grad)
        got = schedule.eval(*inputs)
        assert r == 0 or not got.requires_grad
differs = False
try:
    kind(stage, 2, loss_fn=F.mse_loss if r else None).step(*inputs, target=target if r else None)
except RuntimeError as error:
    differs = "all stages' schedules loss_fn, or none" in str(error)
assert differs == (r == 1)
for wrong, says in (
    (lambda: PipelineStage(mine, 1 - r, n, "cpu"), "stage of its rank"),
    (lambda: kind(stage, 9, loss_fn=F.mse_loss).step(x, i, target=target), "into 9 parts"),
):
    try:
        wrong()
        raise SystemExit("no error")
    except ValueError as error:
        assert says in str(error)

# Copies of a model, as averages of weights take them, and files of it reduce on their own.
model = DDP(nn.Linear(2, 1, bias=False))
with torch.no_grad():
    model.module.weight.fill_(1.0)
copies_of_it = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
copies_of_it.append(torch.optim.swa_utils.AveragedModel(model).module)
with torch.no_grad():
    model.module.weight.zero_()
for one in copies_of_it:
    one(torch.ones(1, 2) * (r + 1)).sum().backward()
    close(one.module.weight.grad, [[1.5, 1.5]])
    close(one.module.weight.detach(), [[1.0, 1.0]])
assert model.module.weight.grad is None
pair = dist.new_group([0, 1])
model = DDP(nn.Linear(2, 1), process_group=pair)
try:
    copy.deepcopy(model)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "group of all" in str(error)

# What is to be ignored is neither sent nor reduced.
layer = nn.Linear(2, 1)
DDP._set_params_and_buffers_to_ignore_for_model(layer, ["bias"])
with torch.no_grad():
    layer.bias.fill_(r)
model = DDP(layer)
model._set_static_graph()
model(torch.ones(1, 2) * (r + 1)).sum().backward()
close(layer.bias.detach(), [float(r)])
close(layer.weight.grad, [[1.5, 1.5]])

# Methods of groups, and a group that was destroyed.
rows = [torch.zeros(1), torch.zeros(1)]
pair.allgather([rows], [torch.tensor([r + 1.0])]).wait()
close(torch.cat(rows), [1.0, 2.0])
got = torch.zeros(1)
pair.reduce_scatter([got], [[torch.tensor([1.0]), torch.tensor([r + 2.0])]]).wait()
close(got, [2.0 + 3 * r])
sent = pair.send([torch.tensor([r + 5.0])], 1 - r)
pair.recv([got], 1 - r).wait()
sent.wait()
close(got, [6.0 - r])
dist.destroy_process_group(pair)
for wrong in (
    lambda: dist.all_reduce(torch.ones(1), group=pair),
    lambda: dist.all_reduce(torch.ones(1, dtype=torch.complex64), op=dist.ReduceOp.MAX),
):
    try:
        wrong()
        raise SystemExit("no error")
    except ValueError as error:
        assert "was destroyed" in str(error) or "needs real numbers" in str(error)

# The steps of a distributed tensor are those of the whole.
for way in (Shard(0), Shard(1), Replicate()):
    whole = distribute_tensor(torch.zeros(2, 4, 6), mesh, [way])
    assert whole.stride() == (24, 6, 1) and whole.stride(0) == 24
    assert whole.permute(2, 0, 1).stride() == (1, 24, 6)
dist.destroy_process_group()
print(f"rank {r} is through")
