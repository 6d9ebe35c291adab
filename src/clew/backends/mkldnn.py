"""oneDNN, which computes products and convolutions."""

from __future__ import annotations

__all__ = ["enabled", "is_available"]

enabled = True  # kernels choose it where it is faster


def is_available() -> bool:
    """Whether oneDNN is there.

    Returns:
        True if its library was found beside clew.

    Example:
        >>> from clew.backends.mkldnn import is_available
        >>> isinstance(is_available(), bool)
        True
    """
    from clew.__config__ import _onednn

    return _onednn() != "not found"
