"""What a process in which calls are made or files are loaded has used."""

from __future__ import annotations

import os
from pathlib import Path


def seconds_of(process: int) -> float:
    """Seconds of the processor, all threads together; 0 when it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
