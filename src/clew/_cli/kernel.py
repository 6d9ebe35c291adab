"""`clew kernel install|uninstall`: a Jupyter kernel in which `import torch` means clew.

A kernel is a folder with a file kernel.json, which says how it is started: as `clew run` starts
any other program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from typing import Any

import clew

__all__ = ["install", "uninstall"]

_START = ["-m", "clew", "run", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
_NEEDED = ("ipykernel", "jupyter_client")


def _folder(name: str, prefix: str | None) -> str:
    """Where the kernel lies: under a prefix, or in the user's data."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or not name.strip("."):
        raise ValueError(f"a kernel's name has letters, digits, '.', '_' and '-'; got {name!r}")
    if prefix is None:
        from jupyter_core.paths import jupyter_data_dir

        data = jupyter_data_dir()
    else:
        data = os.path.join(os.path.abspath(prefix), "share", "jupyter")
    return os.path.join(data, "kernels", name)


def _is_ours(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as file:
            spec = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(spec, dict) and spec.get("argv", [])[1:] == _START


def _environment() -> dict[str, str]:
    """What the kernel needs to find clew: this process's PYTHONPATH, if it found clew by that."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(clew.__file__)))
    path = os.environ.get("PYTHONPATH", "")
    found = home in map(os.path.abspath, filter(None, path.split(os.pathsep)))
    return {"PYTHONPATH": path} if found else {}


def _missing() -> bool:
    """Whether Jupyter's packages are not there; if so, tells how to install them."""
    if all(importlib.util.find_spec(name) is not None for name in _NEEDED):
        return False
    words = f"{sys.executable} -m pip install {' '.join(_NEEDED)}"
    print(f"clew kernel: needs Jupyter's kernel; install it with {words}", file=sys.stderr)
    return True


def _fail(status: int, what: Any) -> int:
    print(f"clew kernel: {what}", file=sys.stderr)
    return status


def install(name: str, display_name: str, prefix: str | None) -> int:
    """Installs the kernel, in place of an older one of the same name.

    Args:
        name: of its folder; what `jupyter console --kernel` is given.
        display_name: what notebooks show.
        prefix: of the environment that gets it; None for the user's own data.

    Returns:
        The exit status.
    """
    if _missing():
        return 2
    try:
        folder = _folder(name, prefix)
    except ValueError as error:
        return _fail(2, error)
    if os.path.lexists(folder) and not _is_ours(folder):
        return _fail(1, f"{folder} is not a kernel of clew's; choose another --name")
    spec = {
        "argv": [sys.executable, *_START],
        "display_name": display_name,
        "language": "python",
        "env": _environment(),
        "metadata": {"debugger": True},
    }
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "kernel.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)
    except OSError as error:
        return _fail(1, f"{folder} cannot be written: {error.strerror}")
    print(f"The kernel {name!r} is in {folder}: torch is clew there.")
    return 0


def uninstall(name: str, prefix: str | None) -> int:
    """Removes a kernel that `install` installed with the same name and prefix.

    Returns:
        The exit status.
    """
    if prefix is None and _missing():
        return 2
    try:
        folder = _folder(name, prefix)
    except ValueError as error:
        return _fail(2, error)
    if not os.path.lexists(folder):
        return _fail(1, f"there is no kernel {name!r}: {folder} does not exist")
    if not _is_ours(folder):
        return _fail(1, f"{folder} is not a kernel of clew's, and stays")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        return _fail(1, f"{folder} cannot be removed: {error.strerror}")
    print(f"The kernel {name!r} was removed from {folder}.")
    return 0
