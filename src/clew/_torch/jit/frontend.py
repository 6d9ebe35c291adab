"""Reading of scripts: nothing is compiled."""

from __future__ import annotations


class NotSupportedError(RuntimeError):
    """A script does what cannot be compiled."""
