"""doctor: watches a few steps of a training program and tells what is silently wrong.

`observer.py` is the one place that hooks into the library; it makes events of what happens and
hands them to rules. A rule looks for one mistake; rules lie side by side in files by theme.
"""

from __future__ import annotations

from clew._insight.debug.doctor.finding import Finding
from clew._insight.debug.doctor.session import doctor

__all__ = ["Finding", "doctor"]
