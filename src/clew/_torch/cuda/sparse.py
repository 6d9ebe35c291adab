"""Types of sparse tensors on a CUDA device: one may ask for them, calling one raises."""

from __future__ import annotations

from clew._ops.legacy import sparse_type, tensortype


def __getattr__(name: str) -> tensortype:
    return sparse_type(name, "torch.cuda.sparse", is_cuda=True)
