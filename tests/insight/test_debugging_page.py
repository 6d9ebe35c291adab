"""docs/debugging.md shows what clew says today, and every mistake is told with its lines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "examples" / "mistakes"


@pytest.mark.at_once
@pytest.mark.skipif(sys.version_info < (3, 11), reason="messages name more from Python 3.11 on")
def test_the_page_is_up_to_date():
    tool = ROOT / "tools" / "debugging_page.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_program_is_shown_with_both_messages():
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    kept = json.loads((ROOT / "docs" / "debugging.json").read_text(encoding="utf-8"))
    names = {path.stem for path in PROGRAMS.glob("*.py")}
    assert names == set(kept) - {"version"} and len(names) == 12
    for name in names:
        assert f"(../examples/mistakes/{name}.py)" in text
        assert kept[name] in text
    for line in text.split("\n"):
        assert not re.search(r"(?<![\w.`(/])/(?!path)\w+/", line), line  # no absolute path


def test_messages_name_lines_of_the_program():
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    for section in text.split("\n### ")[1:]:
        name = re.search(r"examples/mistakes/(\w+)\.py", section)[1]
        lines = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8").split("\n")
        told = section.partition("\nclew:\n")[2]
        places = re.findall(rf"{name}\.py:(\d+)[^`\n]*: `([^\n]*?)`(?= \(|\n)", told)
        assert places or name in ("parameter_written", "unused_parameter"), name
        for number, source in places:
            assert lines[int(number) - 1].strip() == source
