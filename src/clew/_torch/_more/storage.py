"""What torch.storage has beyond clew.storage."""

from __future__ import annotations

import io
from typing import Any

from clew.serialization import load


def _load_from_bytes(b: bytes) -> Any:
    """A storage as Python's pickles of PyTorch's tensors hold it: a file of its own."""
    return load(io.BytesIO(b), weights_only=False)
