"""What the loader is made of."""

from __future__ import annotations

from . import collate, worker

__all__ = ["collate", "worker"]
