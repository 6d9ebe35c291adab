"""Print what building needs, one requirement a line: pyproject.toml's list, CMake and Ninja.

pip's build isolation installs these afresh into a temporary folder for every build. The Makefile
installs them once into .venv instead, so that a rebuild compiles only what changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib


def main() -> None:
    """Print the list."""
    path = Path(__file__).resolve().parent.parent / "pyproject.toml"
    project: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    for requirement in [*project["build-system"]["requires"], "cmake>=3.21", "ninja>=1.11"]:
        print(requirement)


if __name__ == "__main__":
    main()
