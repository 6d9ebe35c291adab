"""The older name of ao.quantization."""

from __future__ import annotations

from clew.ao.quantization import *  # noqa: F403
