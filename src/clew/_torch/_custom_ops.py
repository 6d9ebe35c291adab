"""An older way to add operations; see clew.library."""

from __future__ import annotations

from clew.library import custom_op, get_ctx, impl, impl_abstract

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
