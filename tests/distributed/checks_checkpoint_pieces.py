"""Run by 4 ranks: checkpoints of which ranks have different entries, or the same pieces twice."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)

folder = sys.argv[1]
dist.init_process_group("gloo")
r, n = dist.get_rank(), dist.get_world_size()

# As of stages of a pipeline: each rank has entries of its own.
state = {f"stage{r}": torch.full((3,), float(r)), f"step{r}": r, "all": torch.ones(2), "who": r}
dcp.save(state, checkpoint_id=folder)
known = {f"stage{i}": torch.zeros(3) for i in range(n)}
known |= {f"step{i}": None for i in range(n)} | {"all": torch.zeros(2), "who": -1}
dcp.load(known, checkpoint_id=folder)
for i in range(n):
    assert known[f"stage{i}"].tolist() == [i] * 3 and known[f"step{i}"] == i
assert known["all"].tolist() == [1, 1] and known["who"] == 0

# Of a part of a mesh: the other parts have the same pieces.
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
for name in ("dp", "tp"):
    x = distribute_tensor(torch.arange(7.0), mesh[name], [Shard(0)])
    dcp.save({"x": x, "y": x.redistribute(placements=[Replicate()])}, checkpoint_id=folder)
    known = {"x": torch.zeros(7), "y": distribute_tensor(torch.zeros(7), mesh, [Shard(0)] * 2)}
    dcp.load(known, checkpoint_id=folder)
    assert known["x"].tolist() == known["y"].full_tensor().tolist() == list(range(7))

# What is partial is known to none.
sums = DTensor.from_local(torch.ones(2), mesh["tp"], [Partial()])
for call in (dcp.save, dcp.load):
    try:
        call({"x": sums}, checkpoint_id=folder)
    except dcp.CheckpointException as error:
        assert "partial" in str(error) and "rank 3" in str(error)
    else:
        raise AssertionError(call)
dist.barrier()
print(f"rank {r} is through")
