"""CUDA: not part of clew."""

from __future__ import annotations

from clew._ops import functions as _functions

__all__ = ["is_built", "matmul"]


class _Matmul:
    """How a device would multiply; programs set these before asking whether there is one."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True

    @property
    def allow_tf32(self) -> bool:
        """Whether :func:`clew.set_float32_matmul_precision` allows less than "highest"."""
        return _functions.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        _functions.set_float32_matmul_precision("high" if allowed else "highest")


matmul = _Matmul()


def is_built() -> bool:
    """Whether clew was built with CUDA: no.

    Example:
        >>> clew.backends.cuda.is_built()
        False
    """
    return False
