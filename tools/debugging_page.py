"""Writes docs/debugging.md: the classic mistakes, what PyTorch says and what clew says.

`python tools/debugging_page.py` runs the programs in examples/mistakes with clew (those of silent/
with the doctor), writes the page;
`--torch-python PATH` runs them with PyTorch first and keeps what it says in docs/debugging.json;
`--check` only says whether the page is up to date. Python 3.11 or newer: messages name more there.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "examples" / "mistakes"
SILENT = PROGRAMS / "silent"
PAGE = ROOT / "docs" / "debugging.md"
KEPT = ROOT / "docs" / "debugging.json"  # what PyTorch said
TEXT = ROOT / "tools" / "debugging_text.md"  # what is written around the mistakes

ORDER = (
    "saved_then_written",
    "parameter_written",
    "backward_twice",
    "loss_without_grad",
    "detached",
    "counted_hits",
    "through_a_number",
    "unused_parameter",
    "wrong_shape",
    "wrong_gradient",
    "nan_forward",
    "nan_backward",
)
# What clew has for a mistake beyond PyTorch's interface: what stands there instead of which text.
BEYOND = {
    "unused_parameter": (
        "torch.autograd.grad(loss, list(net.parameters()))",
        "torch.debug.check_gradients(net, loss)",
    ),
    "nan_forward": ("torch.autograd.detect_anomaly()", "torch.debug.nan_watch()"),
    "nan_backward": ("torch.autograd.detect_anomaly()", "torch.debug.nan_watch()"),
}


def said(command: list[str], folder: Path) -> str:
    """What a program that fails says, without the traceback and without paths."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"},
    )
    if done.returncode == 0 or "Traceback (most recent call last)" not in done.stderr:
        raise SystemExit(f"{command} was expected to fail; it wrote:\n{done.stderr}")
    text = done.stderr.replace(f"{folder}{os.sep}", "").replace(f"{folder.resolve()}{os.sep}", "")
    before, _, after = text.rpartition("Traceback (most recent call last):\n")
    error = re.search(r"^\S.*", after, re.DOTALL | re.MULTILINE)
    assert error, text
    parts = []
    told = re.search(
        r"^\S+: \w*Warning: (Error detected in.*?)(?=^ \(Triggered|^\S|\Z)",
        before,
        re.DOTALL | re.MULTILINE,
    )
    if told:
        # The user's own frames of the forward pass.
        frames = re.sub(r'  File "/[^\n]*\n    [^\n]*\n(?:    [ ~^]*\n)?', "", told[1])
        parts.append(frames.rstrip())
    return "\n".join([*parts, error[0].rstrip()])


def with_pytorch(python: str) -> dict[str, str]:
    version = subprocess.run(
        [python, "-c", "import torch; print(torch.__version__.partition('+')[0])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    found = {name: said([python, f"{name}.py"], PROGRAMS) for name in ORDER}
    return {"version": version, **found}


def with_clew() -> dict[str, str]:
    def one(name: str) -> list[tuple[str, str]]:
        command = [sys.executable, "-m", "clew", "run", f"{name}.py"]
        results = [(name, said(command, PROGRAMS))]
        source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
        if name in BEYOND:
            assert BEYOND[name][0] in source, name
            with tempfile.TemporaryDirectory() as folder:
                changed = Path(folder).resolve() / f"{name}.py"
                changed.write_text(source.replace(*BEYOND[name]), encoding="utf-8")
                results.append((f"{name} beyond", said(command, changed.parent)))
        return results

    with ThreadPoolExecutor(2) as pool:
        return dict(pair for pairs in pool.map(one, ORDER) for pair in pairs)


# One process for all of them: most of a run is the start.
_WATCH = """
import json, os, sys, warnings
from clew._cli.run import install
from clew.debug import doctor
warnings.simplefilter("ignore")
install()
told = {}
for name in sorted(os.listdir(".")):
    if name.endswith(".py"):
        source = open(name, encoding="utf-8").read()
        with doctor(quiet=True) as watch:
            exec(compile(source, os.path.abspath(name), "exec"), {"__name__": "__main__"})
        told[name[:-3]] = str(watch)
json.dump(told, sys.stdout)
"""


def with_doctor() -> dict[str, str]:
    """What the doctor says of the programs whose mistake is silent."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCH],
        cwd=SILENT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    if done.returncode:
        raise SystemExit(f"the doctor's programs failed:\n{done.stderr}")
    told: dict[str, str] = json.loads(done.stdout)
    if missed := [name for name, text in told.items() if not text]:
        raise SystemExit(f"the doctor was expected to find something in {missed}")
    return told


def silent_section(name: str, told: str) -> str:
    source = (SILENT / f"{name}.py").read_text(encoding="utf-8")
    title = told.split("\n")[1].removeprefix("1. ")
    return "\n\n".join(
        [
            f"#### {title[0].upper()}{title[1:]}",
            f"[examples/mistakes/silent/{name}.py](../examples/mistakes/silent/{name}.py); PyTorch "
            "says nothing.",
            quoted(source, "python"),
            quoted(told),
        ]
    )


def measured(text: str) -> str:
    """The text without numbers that depend on the machine: fractions and the doctor's counts."""
    # How many rounds the doctor looks at depends on the time that it takes.
    text = re.sub(r"^ +seen:.*", lambda line: re.sub(r"\d+", "#", line[0]), text, flags=re.M)
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", "#", text)


def quoted(text: str, language: str = "") -> str:
    return f"```{language}\n{text.strip()}\n```"


def section(number: int, name: str, torch: dict[str, str], clew: dict[str, str]) -> str:
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, rest = (ast.get_docstring(tree) or "").partition("\n")
    last = tree.body[0].end_lineno or 0
    code = "\n".join(source.split("\n")[last:])
    parts = [
        f"### {number}. {title.rstrip('.')}",
        f"[examples/mistakes/{name}.py](../examples/mistakes/{name}.py)",
        quoted(code, "python"),
        f"PyTorch {torch['version']}:",
        quoted(torch[name]),
        "clew:",
        quoted(clew[name]),
    ]
    if name in BEYOND:
        call = BEYOND[name][1].replace("torch.", "clew.")
        parts += [f"clew, with `{call}` instead:", quoted(clew[f"{name} beyond"])]
    return "\n\n".join([*parts, rest.strip()])


def page(torch: dict[str, str], clew: dict[str, str]) -> str:
    sections = [section(i, name, torch, clew) for i, name in enumerate(ORDER, 1)]
    text = TEXT.read_text(encoding="utf-8")
    silent = [silent_section(name, told) for name, told in with_doctor().items()]
    for mark, parts in (("<!-- mistakes -->", sections), ("<!-- silent -->", silent)):
        assert text.count(mark) == 1, TEXT
        text = text.replace(mark, "\n\n".join(parts))
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", help="a Python that has PyTorch; runs its half anew")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when out of date")
    options = parser.parse_args()
    if options.torch_python:
        kept = json.dumps(with_pytorch(options.torch_python), indent=2, ensure_ascii=False)
        KEPT.write_text(kept + "\n", encoding="utf-8")
    text = page(json.loads(KEPT.read_text(encoding="utf-8")), with_clew())
    if options.check:
        if measured(PAGE.read_text(encoding="utf-8")) == measured(text):
            return 0
        print(f"{PAGE} is not what tools/debugging_page.py writes", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
