"""`clew alias on|off|status`: `import torch` means clew in every Python of one environment.

A `.pth` file in the environment's packages puts the folder `_alias` first on the path.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import sysconfig

from clew._cli.run import ALIAS_FOLDER

__all__ = ["alias"]


def _place() -> str:
    return os.path.join(sysconfig.get_path("purelib"), "clew_torch.pth")


def _installed() -> str | None:
    """Where a PyTorch lies that clew would stand in front of."""
    path = [p for p in sys.path if os.path.abspath(p or ".") != ALIAS_FOLDER]
    found = importlib.machinery.PathFinder.find_spec("torch", path)
    return None if found is None or found.origin is None else found.origin


def alias(action: str) -> int:
    """Switches the alias on or off, or says whether it is on.

    Args:
        action: on, off or status.

    Returns:
        The exit status.
    """
    place = _place()
    if action == "on":
        with open(place, "w", encoding="utf-8") as file:
            file.write(f"import sys; sys.path.insert(0, {ALIAS_FOLDER!r})\n")
    elif action == "off" and os.path.exists(place):
        os.remove(place)
    on = os.path.exists(place)
    real = _installed()
    print(f"torch is {'clew' if on else real or 'not there'} in {sys.prefix}")
    if on and real:
        print(
            f"the PyTorch in {os.path.dirname(real)} is not used; `clew alias off` brings it back"
        )
    return 0
