"""The processor."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The widest instruction set of this processor that kernels are compiled for.

    Returns:
        "AVX512", "AVX2" or "DEFAULT".

    Example:
        >>> get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
        True
    """
    from clew.__config__ import _processor

    flags = _processor()[1]
    if "avx512f" in flags:
        return "AVX512"
    return "AVX2" if "avx2" in flags and "fma" in flags else "DEFAULT"
