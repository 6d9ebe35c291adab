"""A model of blocks, its data and their parts, for programs that ranks run."""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def net(width=10, depth=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, width), *(Block(width) for _ in range(depth)),
                         nn.Linear(width, 3)).double()  # fmt: skip


def shard(model, **options):
    """Divides a sequence: each block by itself, and what is beside them."""
    for block in model:
        if len(list(block.children())) > 0:
            fully_shard(block, **options)
    return fully_shard(model, **options)


def batch(step, rows=4):
    """What all ranks learn from in a step, and this rank's part of it."""
    r, n = dist.get_rank(), dist.get_world_size()
    x = np.random.default_rng(step).normal(size=(rows * n, 7))
    return torch.tensor(x), torch.tensor(x[rows * r : rows * (r + 1)])


def same(a, b):
    """Both are equal but for rounding; the first may be distributed."""
    a = a.full_tensor() if isinstance(a, DTensor) else a
    assert a.shape == b.shape and np.allclose(a.detach().numpy(), b.detach().numpy()), (a, b)
