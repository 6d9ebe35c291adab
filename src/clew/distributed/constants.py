"""How long operations on groups may take."""

from __future__ import annotations

from clew.distributed.distributed_c10d import default_pg_nccl_timeout, default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
