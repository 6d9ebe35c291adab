"""Run by ranks: collectives against NumPy."""

import datetime

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnn

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()


def of(rank, shape=(3, 5), dtype=torch.float32):
    rng = np.random.default_rng(rank)
    return torch.tensor(rng.integers(-4, 5, shape).astype(np.float64)).to(dtype)


def same(a, b):
    assert np.array_equal(np.asarray(a.float().tolist()), np.asarray(b)), (a, b)


def stacked(dtype=torch.float32, shape=(3, 5)):
    return np.stack([of(i, shape, dtype).float().numpy() for i in range(n)])


# Reductions, in all dtypes.
ops = {"SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max}
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64,
              torch.int8):  # fmt: skip
    for name, f in ops.items():
        x = of(r, dtype=dtype)
        assert dist.all_reduce(x, getattr(dist.ReduceOp, name)) is None
        same(x, f(stacked(dtype), 0))
x = of(r)
work = dist.all_reduce(x, dist.ReduceOp.AVG, async_op=True)
assert work.wait() and work.is_completed()
assert np.allclose(x.numpy(), stacked().mean(0))
x = torch.tensor([r, 6])
dist.all_reduce(x, dist.ReduceOp.BXOR)
assert x.tolist() == [int(np.bitwise_xor.reduce(range(n))), 6 if n % 2 else 0]
x = torch.tensor([r == 0, True, False])
dist.all_reduce(x)
assert x.tolist() == [True, True, False]
x = torch.complex(of(r), of(r + 10))
dist.all_reduce(x)
same(x.imag, sum(of(i + 10).numpy() for i in range(n)))
x = torch.tensor(float(r))
dist.all_reduce(x)
assert x.item() == n * (n - 1) / 2
# Tensors whose elements lie in another order, or apart.
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.bool, torch.int64):
    total = stacked(dtype, (4, 6)).sum(0)
    total = total != 0 if dtype == torch.bool else total
    for view in (lambda t: t.t().contiguous().t(), lambda t: t.repeat_interleave(2, 1)[:, ::2]):
        x = view(of(r, (4, 6), dtype))
        dist.all_reduce(x)
        same(x, total)
        x = view(torch.zeros(4, 6, dtype=dtype))
        dist.reduce_scatter(x, [view(of(r, (4, 6), dtype))] * n)
        same(x, total)
# bfloat16 is combined in float32: 256 + 1 + 1 would stay 256 in bfloat16.
x = torch.tensor([256.0 if r == 0 else 1.0], dtype=torch.bfloat16)
dist.all_reduce(x)
assert x.item() == torch.tensor([256.0 + n - 1]).bfloat16().item()
x = of(r)
dist.reduce(x, n - 1)
same(x, stacked().sum(0) if r == n - 1 else of(r).numpy())
for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64):
    x = of(r, dtype=dtype)
    dist.broadcast(x, src=n - 1)
    assert torch.equal(x, of(n - 1, dtype=dtype))
# Gathering and scattering.
out = [torch.zeros(3, 5) for _ in range(n)]
dist.all_gather(out, of(r))
same(torch.stack(out), stacked())
uneven = [torch.zeros(i + 1) for i in range(n)]
dist.all_gather(uneven, torch.full((r + 1,), float(r)))
assert [t.tolist() for t in uneven] == [[float(i)] * (i + 1) for i in range(n)]
flat = torch.zeros(n * 3, 5)
dist.all_gather_into_tensor(flat, of(r))
same(flat, stacked().reshape(-1, 5))
got = [torch.zeros(3, 5) for _ in range(n)] if r == 0 else None
dist.gather(of(r), got, dst=0)
if r == 0:
    same(torch.stack(got), stacked())
x = torch.zeros(3, 5)
dist.scatter(x, [of(i + 7) for i in range(n)] if r == 0 else None, src=0)
assert torch.equal(x, of(r + 7))
x = torch.zeros(2)
dist.reduce_scatter(x, [torch.tensor([r, i + 0.5]) for i in range(n)])
assert x.tolist() == [n * (n - 1) / 2, n * (r + 0.5)]
x = torch.zeros(2, dtype=torch.bfloat16)
torch.set_default_dtype(torch.float64)  # has no part in it
dist.reduce_scatter_tensor(x, torch.arange(2.0 * n).bfloat16())
torch.set_default_dtype(torch.float32)
assert x.tolist() == [2.0 * r * n, (2 * r + 1.0) * n]
outs = [torch.zeros(i + 1) for i in range(n)]
dist.all_to_all(outs, [torch.full((r + 1,), 10.0 * r + i) for i in range(n)])
assert [o.tolist() for o in outs] == [[10.0 * i + r] * (i + 1) for i in range(n)]
x = torch.zeros(n, 2)
dist.all_to_all_single(x, torch.arange(2.0 * n).view(n, 2) + 100 * r)
assert x.tolist() == [[100.0 * i + 2 * r, 100.0 * i + 2 * r + 1] for i in range(n)]
# Messages.
right, left = (r + 1) % n, (r - 1) % n
x = torch.zeros(3, 5)
works = dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, of(r), right), dist.P2POp(dist.irecv, x, left)]
)
[w.wait() for w in works]
assert torch.equal(x, of(left))
if r == 0:
    x = torch.zeros(2)
    assert sorted(dist.recv(x) for _ in range(n - 1)) == list(range(1, n))
    dist.send_object_list([{"a": 1}, None], dst=1)
else:
    dist.send(torch.full((2,), float(r)), 0)
    if r == 1:
        objects = [None, 0]
        assert dist.recv_object_list(objects, src=0) == 0 and objects == [{"a": 1}, None]
# Objects.
objects = [None] * n
dist.all_gather_object(objects, {"rank": r, "text": "x" * r})
assert objects == [{"rank": i, "text": "x" * i} for i in range(n)]
objects = [f"from {r}", r]
dist.broadcast_object_list(objects, src=n - 1)
assert objects == [f"from {n - 1}", n - 1]
objects = [None] * n if r == 0 else None
dist.gather_object(r * 2, objects)
assert r or objects == [2 * i for i in range(n)]
got = [None]
dist.scatter_object_list(got, [("item", i) for i in range(n)] if r == 0 else None)
assert got == [("item", r)]
# Groups.
evens = dist.new_group(range(0, n, 2))
if r % 2 == 0:
    x = torch.tensor([1.0])
    dist.all_reduce(x, group=evens)
    assert x.item() == len(range(0, n, 2)) and dist.get_rank(evens) == r // 2
    assert dist.get_process_group_ranks(evens) == list(range(0, n, 2))
else:
    assert evens == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(evens) == -1
    assert dist.all_reduce(torch.ones(1), group=evens) is None
# A mesh of all processes has their group: MPI has some two thousand communicators in all.
for _ in range(2500):
    mesh = dist.device_mesh.init_device_mesh("cpu", (n,))
assert mesh.get_group() is dist.group.WORLD
if n == 4:
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.get_coordinate() == (r // 2, r % 2)
    x = torch.tensor([float(r)])
    dist.all_reduce(x, group=mesh.get_group("tp"))
    assert x.item() == {0: 1, 1: 5}[r // 2] and mesh["dp"].get_local_rank() == r // 2
    dist.all_reduce(x, group=mesh["dp"].get_group())
    assert x.item() == 6
# Gradients: the rank's loss is the sum of everything times (rank + 1).
x = of(r).requires_grad_()
(dnn.all_reduce(x * 2) * (r + 1)).sum().backward()
same(x.grad, np.full((3, 5), 2 * n * (n + 1) / 2))
x = of(r).requires_grad_()
torch.stack(dnn.all_gather(x)).mul(r + 1).sum().backward()
same(x.grad, np.full((3, 5), n * (n + 1) / 2))
x = of(r).requires_grad_()
(dnn.broadcast(x, 0) * (r + 1)).sum().backward()
same(x.grad, np.full((3, 5), n * (n + 1) / 2 if r == 0 else 0))
x = torch.arange(float(n)).requires_grad_()
(dnn.all_to_all_single(torch.zeros(n), x) * (r + 1)).sum().backward()
assert x.grad.tolist() == [i + 1.0 for i in range(n)]
# Stores, barriers.
store = dist.TCPStore("127.0.0.1", int(__import__("os").environ["MASTER_PORT"]), n, r == 0)
store.set(f"key{r}", f"value{r}")
assert store.get(f"key{(r + 1) % n}") == f"value{(r + 1) % n}".encode()
store.add("sum", r)
dist.barrier()
assert store.add("sum", 0) == n * (n - 1) // 2
dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))
future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
assert future.then(lambda f: f.value()[0] + 1).wait().tolist() == [n + 1.0] * 2
# Bits of numbers that have none: the types of exceptions are PyTorch's.
for dtype, kind in (
    (torch.float32, RuntimeError), (torch.bfloat16, RuntimeError), (torch.complex64, ValueError)
):  # fmt: skip
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        try:
            dist.all_reduce(torch.ones(2, dtype=dtype), op)
        except (RuntimeError, ValueError) as error:
            assert type(error) is kind and "needs integers" in str(error), error
        else:
            raise AssertionError(f"{op} of {dtype} was taken")
dist.destroy_process_group()
assert not dist.is_initialized()
print(f"rank {r} is through")
