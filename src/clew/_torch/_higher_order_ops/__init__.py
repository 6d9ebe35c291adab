"""Operations that take functions; they run as Python, and gradients go through them."""

from __future__ import annotations

from clew._torch._higher_order_ops.associative_scan import associative_scan
from clew._torch._higher_order_ops.control_flow import cond, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
