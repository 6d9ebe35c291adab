"""Data pipes: datasets that are chained, `IterableWrapper(x).shuffle().map(f).batch(8)`."""

from __future__ import annotations

from clew._torch.utils.data.datapipes import iter as iter
from clew._torch.utils.data.datapipes import map as map
