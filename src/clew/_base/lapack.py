"""LAPACK and OpenBLAS: the library that NumPy has loaded, handed to the core."""

from __future__ import annotations

from clew import _C


def load() -> bool:
    """Hands the library to the core: decompositions call it, and products if there is no oneDNN.

    Returns:
        False where the library does not show LAPACK's names.
    """
    try:
        from numpy.linalg import _umath_linalg
    except ImportError:
        return False
    return _C._load_lapack(_umath_linalg.__file__)
