"""opt_einsum: not used; `einsum` plans the order of its products itself."""

from __future__ import annotations

enabled = False
strategy = None


def is_available() -> bool:
    """Whether it is used: no."""
    return False


def get_opt_einsum() -> None:
    """The package: None."""
    return None
