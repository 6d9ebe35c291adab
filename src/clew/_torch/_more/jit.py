"""What running a script raises; none runs here."""

from __future__ import annotations


class Error(Exception):
    """What a script raised."""
