"""The functions of `torch.fft` by PyTorch's inner names, `fft_` before each."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from clew import fft

    found = getattr(fft, name.removeprefix("fft_"), None)
    if not name.startswith("fft_") or found is None:
        raise AttributeError(f"module 'torch._C._fft' has no attribute {name!r}")
    return found
