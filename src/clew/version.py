"""Versions, in the names that PyTorch programs ask for."""

from __future__ import annotations

from clew import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = "Unknown"  # an installed clew does not keep its commit
