"""Indexing under vmap with an index that differs from sample to sample."""

from __future__ import annotations

from typing import Any


class TransformGetItemToIndex:
    """Within it tensors may be indexed with numbers that differ from sample to sample.

    clew's vmap allows that anyway, so there is nothing to switch.
    """

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass
