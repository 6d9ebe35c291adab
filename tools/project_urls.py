"""Write `[project.urls]` into pyproject.toml: `project_urls.py https://host/owner/name [REF]`.

The release workflow calls it before it builds, with the address of the repository that it runs in,
so that what is published names the place it came from, wherever the repository lives by then.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
SECTION = re.compile(r"\[project\.urls\]\n(?:[^\[\n].*\n)*\n?")
ADDRESS = re.compile(r"https://[\w.-]+(?:/[\w.~-]+)+")
BEFORE = "[project.scripts]\n"


def with_urls(text: str, home: str, ref: str = "main") -> str:
    """The text of pyproject.toml with the table of addresses, in place of an earlier one.

    Raises:
        ValueError: `home` is no https address, or the text has no `[project.scripts]`.
    """
    home = home.rstrip("/")
    if not ADDRESS.fullmatch(home):
        raise ValueError(f"project_urls: {home!r} is no address such as https://host/owner/name")
    if text.count(BEFORE) != 1:
        raise ValueError("project_urls: pyproject.toml has no [project.scripts]")
    urls = {
        "Homepage": home,
        "Documentation": f"{home}/tree/{ref}/docs",
        "Source": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/{ref}/CHANGELOG.md",
    }
    table = "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return SECTION.sub("", text).replace(BEFORE, f"{table}\n{BEFORE}")


if __name__ == "__main__":
    PYPROJECT.write_text(
        with_urls(PYPROJECT.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8"
    )
