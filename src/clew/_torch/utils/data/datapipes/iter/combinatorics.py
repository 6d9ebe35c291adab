"""Orders of items, by PyTorch's names."""

from __future__ import annotations

from clew._torch.utils.data.datapipes.iter import Sampler as SamplerIterDataPipe
from clew._torch.utils.data.datapipes.iter import Shuffler as ShufflerIterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]
