"""Print requirements, one a line: what building needs, or what the named extras are made of.

pip's build isolation installs what building needs afresh into a temporary folder for every build.
The Makefile installs it once into .venv instead, so that a rebuild compiles only what changed, and
fetches an extra's packages while the compiler works.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

OWN = re.compile(r"clew\[([\w,]+)\]")


def of_extras(project: dict[str, Any], extras: list[str]) -> list[str]:
    """What the extras ask for, those that name others of this project's included."""
    found = list(project["dependencies"])
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            own = OWN.fullmatch(requirement)
            found += of_extras(project, own[1].split(",")) if own else [requirement]
    return list(dict.fromkeys(found))


def main(extras: list[str]) -> None:
    """Print the list."""
    path = Path(__file__).resolve().parent.parent / "pyproject.toml"
    tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    if extras:
        print("\n".join(of_extras(tables["project"], extras)))
    else:
        building = [*tables["build-system"]["requires"], "cmake>=3.21", "ninja>=1.11"]
        print("\n".join(building))


if __name__ == "__main__":
    main(sys.argv[1:])
