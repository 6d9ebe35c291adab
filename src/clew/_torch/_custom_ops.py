"""An older way to add operations; see clew.library."""

from __future__ import annotations

from clew.library import custom_op, impl, impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]
