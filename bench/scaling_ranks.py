"""What each rank measures for bench/scaling.py.

`python -m clew launch -n 2 bench/scaling_ranks.py`: the first rank prints JSON last, what messages
and copies cost on so many ranks, and a step of one network by each way of spreading it.

B batch, T length, C channels.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clew
import clew.distributed as dist
import clew.nn.functional as F
from bench.scaling import HERE, Network
from clew import nn
from clew.distributed.device_mesh import init_device_mesh
from clew.distributed.fsdp import fully_shard
from clew.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from clew.nn.parallel import DistributedDataParallel

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(call: Callable[[], object], least: float = 1.0) -> float:
    """Median time of a call that all ranks make."""
    for _ in range(3):
        call()
    begun = time.perf_counter()
    call()
    count = clew.tensor([max(5, min(1000, int(least / (time.perf_counter() - begun))))])
    dist.broadcast(count, 0)
    took = []
    for _ in range(int(count)):
        dist.barrier()
        begun = time.perf_counter()
        call()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def costs() -> dict[str, float]:
    """Seconds that ranks need to meet, and bytes a second of sums, gathers, messages and copies."""
    n, count, rank = 1 << 20, dist.get_world_size(), dist.get_rank()
    nbytes = 4 * n
    x, y = clew.zeros(n), clew.zeros(n)
    cold, far = clew.zeros(16 * n), clew.zeros(16 * n)  # as gradients are that were made long ago
    copies = 2 * 16 * nbytes / seconds(lambda: far.copy_(cold), 0.3)
    if count == 1:
        return {"copies": copies}
    one = clew.zeros(1)
    whole = clew.zeros(n * count)

    def pass_on() -> None:
        sent = dist.isend(x, (rank + 1) % count)
        dist.recv(y, (rank - 1) % count)
        sent.wait()

    meet = seconds(lambda: dist.all_reduce(one), 0.3)
    return {
        "copies": copies,
        "meet": meet,
        "sums": 2 * (count - 1) / count * nbytes / (seconds(lambda: dist.all_reduce(x)) - meet),
        "gathers": (count - 1) * nbytes / seconds(lambda: dist.all_gather_into_tensor(whole, x)),
        "messages": nbytes / seconds(pass_on),
    }


class Ends(nn.Module):
    """The embeddings and the scores around the blocks."""

    def __init__(self, net: Network) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(96, net.C), nn.Embedding(net.T, net.C)
        self.norm, self.head = nn.LayerNorm(net.C), nn.Linear(net.C, 96, bias=False)

    def first(self, ids: Any) -> Any:
        return self.tokens(ids) + self.places(clew.arange(ids.shape[1]))

    def last(self, x: Any) -> Any:
        return self.head(self.norm(x))


class Stage(nn.Module):
    """Some of the blocks, and the ends that lie on this rank."""

    def __init__(self, net: Network, rank: int, count: int) -> None:
        super().__init__()
        block = example("tensor_parallel_gpt").Block
        begin, end = (net.layers * r // count for r in (rank, rank + 1))
        self.blocks = nn.ModuleList(block(net.C, net.head) for _ in range(begin, end))
        self.ends = Ends(net)
        self.is_first, self.is_last = rank == 0, rank == count - 1

    def forward(self, x: Any) -> Any:
        if self.is_first:
            x = self.ends.first(x)
        for block in self.blocks:
            x = block(x)
        return self.ends.last(x) if self.is_last else x


def step_of(model: Any, x: Any, y: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """A whole step, and the optimizer's part alone."""
    optimizer = clew.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()

    step()
    return step, optimizer.step


def main() -> None:
    clew.set_num_threads(1)
    clew.manual_seed(0)
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    net, batch = HERE, HERE.batch
    ids = clew.randint(0, 96, (batch, net.T))
    part = ids[: batch // count]
    told: dict[str, Any] = {"ranks": count, "costs": costs()}

    alone, update = step_of(Stage(net, 0, 1), ids, ids)
    # Each rank by itself, all at once: what sharing cores and memory costs.
    told["step"], told["update"] = seconds(alone, 2.0), seconds(update)
    if count > 1:
        ways = {}
        data = DistributedDataParallel(Stage(net, 0, 1))
        ways["data"] = seconds(step_of(data, part, part)[0], 2.0)

        sharded = Stage(net, 0, 1)
        for block in sharded.blocks:
            fully_shard(block)
        fully_shard(sharded)
        ways["sharded"] = seconds(step_of(sharded, part, part)[0], 2.0)

        cut = Stage(net, 0, 1)
        mesh = init_device_mesh("cpu", (count,))
        plan = {f"{name}": ColwiseParallel() for name in ("q", "k", "v", "up")} | {
            name: RowwiseParallel() for name in ("o", "down")
        }
        for block in cut.blocks:
            parallelize_module(block, mesh, plan)
        ways["tensor"] = seconds(step_of(cut, ids, ids)[0], 2.0)

        stage = Stage(net, rank, count)
        pipeline = example("pipeline").Pipeline(stage, net.T, net.C)
        optimizer = clew.optim.Adam(stage.parameters(), lr=1e-4)
        parts = ids.view(net.parts, -1, net.T)

        def through() -> None:
            optimizer.zero_grad()
            pipeline.step(parts, parts)
            optimizer.step()

        ways["pipeline"] = seconds(through, 2.0)
        told["ways"] = ways
    if rank == 0:
        print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
