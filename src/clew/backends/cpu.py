"""What the processor can do, by PyTorch's names."""

from __future__ import annotations

from clew import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set of the loops that run: the widest that the processor has.

    With the environment's ``ATEN_CPU_CAPABILITY`` set to ``default``, ``avx2`` or ``avx512`` it is
    at most that one, so that results can be compared with those of another machine. Matrix
    decompositions (LAPACK) and convolutions (oneDNN) choose for themselves.

    Returns:
        "AVX512", "AVX2" or "DEFAULT".

    Example:
        >>> from clew.backends.cpu import get_cpu_capability
        >>> get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
        True
    """
    return _C._cpu_capability()
