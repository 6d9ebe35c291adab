"""The programs that the doctor is tested with: one file each, in the folder doctor.

`short` are small ones on data that its header makes, `whole` ones as users write them. `clean` ones
have nothing wrong. The others, by what their mistake is about, name in their first line a part of
what the finding is called. They hold two programs: a line that ends in `#-` belongs to the one with
the mistake alone, one that ends in `#+` to its clean twin. `# here` marks the line that the doctor
is to name (`#- here` one of the mistake alone).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "doctor"
HEADERS = {kind: (FOLDER / kind / "header.py").read_text("utf-8") for kind in ("short", "whole")}


class Program(NamedTuple):
    """A program with a mistake, a part of what the mistake is called, and its clean twin."""

    source: str
    line: int | None  # where it is to be found; None if no line is marked
    mistake: str
    twin: str


def _mistaken(path: Path, header: str) -> Program:
    first, body = path.read_text("utf-8").split("\n", 1)
    mark = "# mistake: "
    if not first.startswith(mark):
        raise ValueError(f"{path}: its first line must be '{mark}...'; got {first!r}")
    bad, good, line = [], [], None
    for text in f"{header}\n{body}".split("\n"):
        stripped = text.rstrip()
        if not stripped.endswith("#+"):
            bad.append(text)
            if stripped.endswith("here"):
                line = len(bad)
        if not stripped.endswith(("#-", "#- here")):
            good.append(text)
    return Program("\n".join(bad), line, first.removeprefix(mark), "\n".join(good))


MISTAKES: dict[str, Program] = {}
CLEAN: dict[str, str] = {}
for kind, header in HEADERS.items():
    for path in sorted((FOLDER / kind / "mistakes").rglob("*.py")):
        assert path.stem not in MISTAKES, path
        MISTAKES[path.stem] = _mistaken(path, header)
    for path in sorted((FOLDER / kind / "clean").glob("*.py")):
        assert path.stem not in CLEAN, path
        CLEAN[path.stem] = f"{header}\n{path.read_text('utf-8')}"
