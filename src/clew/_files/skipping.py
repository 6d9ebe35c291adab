"""Whether the elements of tensors are left out when files are written and read."""

from __future__ import annotations

import threading


class Skipping(threading.local):
    """The choice of a thread."""

    on = False


skipping = Skipping()
