"""Types of sparse tensors on a CUDA device: one may ask for them, calling one raises."""

from __future__ import annotations

from clew._torch._more.sparse import types

globals().update(types("torch.cuda.sparse", is_cuda=True))
