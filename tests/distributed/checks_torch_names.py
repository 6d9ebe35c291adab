"""Run by ranks: names of `torch.distributed` that clew has for PyTorch's programs alone."""

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()
total = n * (n + 1) // 2

for dtype in (torch.float32, torch.float16, torch.complex64):
    x = torch.full((3,), r + 1.0).to(dtype)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    assert torch.equal(x, torch.full((3,), total / 2).to(dtype))
x = torch.full((3,), r + 1.0)
dist.reduce(x, 0, dist._make_nccl_premul_sum(torch.tensor(2.0)))
assert r or x.tolist() == [2.0 * total] * 3
made, given = torch.empty(2), torch.full((2 * n,), r + 1.0)
dist.reduce_scatter_tensor(made, given, dist._make_nccl_premul_sum(3.0))
assert made.tolist() == [3.0 * total] * 2 and given.tolist() == [r + 1.0] * (2 * n)

for wait in (False, True):
    xs = [torch.full((2,), float(r)), torch.full((3, 1), r + 1.0)]
    work = dist.all_reduce_coalesced(xs, async_op=wait)
    assert not wait or (work.wait() and work.is_completed() and len(work.result()) == 2)
    assert xs[0].tolist() == [total - n] * 2 and xs[1].tolist() == [[total]] * 3
    rows = [[torch.empty(2), torch.empty(1)] for _ in range(n)]
    work = dist.all_gather_coalesced(rows, [torch.full((2,), float(r)), torch.ones(1)],
                                     async_op=wait)  # fmt: skip
    assert not wait or work.wait()
    assert [row[0].tolist() for row in rows] == [[float(i)] * 2 for i in range(n)]
with dist._coalescing_manager(async_ops=True) as together:
    xs = [torch.ones(2), torch.ones(3)]
    for x in xs:
        dist.all_reduce(x)
together.wait()
assert all(x.tolist() == [n] * len(x) for x in xs)

assert dist.get_pg_count() == 1
group = dist.new_group([0])
assert dist.get_pg_count() == 1 + (r == 0)
assert dist.supports_complex(dist.ReduceOp.SUM) and not dist.supports_complex(dist.ReduceOp.MAX)
assert dist.get_debug_level() == dist.DebugLevel.OFF
dist.set_debug_level(dist.DebugLevel.DETAIL)
assert dist.get_debug_level() is dist.DebugLevel.DETAIL
# Stores wait for five minutes, groups for thirty.
assert dist.HashStore().timeout.total_seconds() == 300
store = dist.TCPStore("127.0.0.1", is_master=True)
assert store.timeout.total_seconds() == 300
store.set("a", "1")
part = dist.PrefixStore("x", store)
part.set("b", "2")
assert sorted(store.list_keys()) == ["a", "x/b"] and part.list_keys() == ["b"]
store.set_timeout(datetime.timedelta(seconds=20))
assert part.timeout.total_seconds() == 20
part.set_timeout(datetime.timedelta(seconds=300))
assert store.timeout.total_seconds() == 300
# A group in another order than that of the ranks; a wait with a limit of its own.
turned = dist.new_group(list(range(n))[::-1], sort_ranks=False)
assert dist.get_rank(turned) == n - 1 - r and dist.get_process_group_ranks(turned)[0] == n - 1
rows = [torch.empty(1) for _ in range(n)]
dist.all_gather(rows, torch.tensor([float(r)]), group=turned)
assert [row.item() for row in rows] == list(range(n))[::-1]
x = torch.tensor([float(r)])
dist.broadcast(x, 0, group=turned)
assert x.item() == 0
dist.all_reduce(x.fill_(1.0), group=turned)
assert x.item() == n
dist.barrier(timeout=datetime.timedelta(seconds=60))
# What two ranks tell each other, and how a failure of one reaches the other.
from torch.distributed import collective_utils  # noqa: E402

assert collective_utils.broadcast(lambda: r + 5, rank=1) == 6
assert collective_utils.all_gather(lambda: [r]) == [[i] for i in range(n)]


def fails_on_the_second():
    if r == 1:
        raise ValueError("no luck")
    return r


for call in (collective_utils.all_gather, lambda f: collective_utils.broadcast(f, rank=1)):
    try:
        call(fails_on_the_second)
    except RuntimeError as error:
        assert "rank" in str(error) and "no luck" in str(error), error
    else:
        raise AssertionError("a failure was not told")
found = [None] * n
try:
    collective_utils.all_gather_object_enforce_type(None, found, 1 if r else 1.0)
except TypeError as error:
    assert "rank 1 gave int" in str(error), error
else:
    raise AssertionError("another type was taken")

from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import (  # noqa: E402
    HierarchicalModelAverager,
)

p = torch.nn.Parameter(torch.full((2,), float(r)))
p.grad = torch.ones(2)
averager = HierarchicalModelAverager({1: 1, 2: n}, warmup_steps=1)
seen = []
for _ in range(4):  # alone at steps 1 and 3, with all at step 2
    averager.average_parameters([p])
    seen.append(p.tolist()[0])
assert seen == [r, r, (n - 1) / 2, (n - 1) / 2], seen

from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook  # noqa: E402

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
model.register_comm_hook(None, noop_hook)
model(torch.full((1, 1), r + 1.0)).sum().backward()
assert model.module.weight.grad.item() == r + 1  # its own, not the mean
out = torch.empty(n)
dist.all_gather_single(out, torch.tensor([float(r)]))
assert out.tolist() == list(range(n))
dist.barrier()
print(f"rank {r} is through")
