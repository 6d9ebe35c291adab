"""Settings of the libraries underneath, in the names that PyTorch programs use."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def __allow_nonbracketed_mutation() -> AbstractContextManager[None]:
    """A block in which flags may be set: they always may."""
    return nullcontext()
