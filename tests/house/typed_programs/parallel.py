"""Data parallel training: a sampler's share, gradients that are averaged, collectives."""

from __future__ import annotations

import os

import clew
import clew.distributed as dist
from clew import Tensor, nn, optim
from clew.nn.parallel import DistributedDataParallel as DDP
from clew.utils.data import DataLoader, TensorDataset
from clew.utils.data.distributed import DistributedSampler


def reduce_mean(t: Tensor) -> float:
    t = t.detach().clone()
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return (t / dist.get_world_size()).item()


def main() -> None:
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    data = TensorDataset(clew.rand(16, 4), clew.rand(16, 1))
    sampler: DistributedSampler[tuple[Tensor, ...]] = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DDP(nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        loss = clew.zeros(())
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        mean = reduce_mean(loss)
        if rank == 0:
            print(epoch, mean, local)
    with model.no_sync():
        model(clew.ones(1, 4)).sum().backward()
    gathered = [clew.empty(2) for _ in range(world)]
    dist.all_gather(gathered, clew.ones(2))
    objects: list[object] = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    work = dist.broadcast(clew.ones(1), src=0, async_op=True)
    if work is not None:
        work.wait()
    group = dist.new_group(list(range(world)))
    dist.barrier(group=group)
    inner = model.module
    if rank == 0:
        clew.save(inner.state_dict(), os.devnull)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
