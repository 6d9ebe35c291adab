"""Say in one line what a machine lacks for building clew: run by the Makefile before anything else.

Exits with 1 and prints the command that helps on Debian and Ubuntu.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from importlib.util import find_spec


def missing() -> list[str]:
    """The Debian packages that would bring what is not here."""
    packages = []
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        packages.append("python3-venv")
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        packages.append("python3-dev")
    compiler = os.environ.get("CXX", "").split()
    if not any(shutil.which(name) for name in [*compiler[:1], "g++", "c++", "clang++"]):
        packages.append("g++")
    return packages


def main() -> int:
    """Return the exit status."""
    if sys.version_info < (3, 10):  # noqa: UP036 (pip has not asked yet)
        print(
            f"clew needs Python 3.10 or newer; {sys.executable} is {sys.version.split()[0]}. "
            "Name another one: make PYTHON=python3.12 ...",
            file=sys.stderr,
        )
        return 1
    packages = missing()
    if packages:
        print(
            f"Building clew with {sys.executable} needs what these packages bring: "
            f"{' '.join(packages)}\n    apt-get install {' '.join(packages)}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
