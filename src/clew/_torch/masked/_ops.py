"""The masked functions by the path that PyTorch has them at."""

from __future__ import annotations

from clew.masked._reductions import *  # noqa: F403
from clew.masked._statistics import *  # noqa: F403
