"""What the loader is made of."""

from __future__ import annotations

import atexit

from . import collate, pin_memory, signal_handling, worker

__all__ = ["collate", "pin_memory", "signal_handling", "worker"]

HAS_NUMPY = True
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two looks at whether other processes live
python_exit_status = False  # whether Python is ending


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)
