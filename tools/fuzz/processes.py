"""What a process in which calls are made or files are loaded has used, and may use."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path


def seconds_of(process: int) -> float:
    """Seconds of the processor, all threads together; 0 when it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bound_addresses(most: int) -> None:
    """Let this process have so many bytes of addresses and no more."""
    # AddressSanitizer reserves terabytes of them; its own option bounds what may be taken.
    if not hasattr(ctypes.CDLL(None), "__asan_init"):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
