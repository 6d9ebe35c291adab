"""Writes docs/coverage.md: PyTorch 2.13's public names beside clew's.

Needs an environment with torch==2.13.0, numpy and scipy beside clew; run as
`python tools/coverage.py` (`--check` only says whether the page is up to date, `--print NAME` shows
one module's rows). A name is present when clew has it and its parameters and, for classes, its
public members are there; it differs when some are not. coverage_notes.py holds what no inspection
finds: reasons and meanings.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import torch

import clew
from coverage_notes import (
    DIFFERS,
    INNER_MEMBERS,
    MODULES,
    NOT_PUBLIC,
    OTHER_PARAMETERS,
    REMOVED,
    SAME_DEFAULTS,
    SAME_MEMBERS,
    SAME_PARAMETERS,
    reason,
)

warnings.simplefilter("ignore")
PAGE = Path(__file__).resolve().parent.parent / "docs" / "coverage.md"


class Missing:
    """No such name."""


def find(root: Any, path: str) -> Any:
    """The object of a dotted path, importing submodules on the way; Missing when there is none."""
    import importlib

    found = root
    for part in filter(None, path.split(".")):
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError, NotImplementedError):
            if not isinstance(found, types.ModuleType):
                return Missing
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return Missing
    return found


def public_names(path: str) -> list[str]:
    """What PyTorch offers there."""
    holder = find(torch, path)
    listed = None if path in ("", "Tensor") else getattr(holder, "__all__", None)
    names = []
    for name in sorted(set(listed if listed is not None else dir(holder))):
        if name.startswith("_") or name in NOT_PUBLIC:
            continue
        if path in ("", "Tensor") and name in REMOVED:
            continue
        value = getattr(holder, name, None)
        if isinstance(value, types.ModuleType) or (value is torch.Tensor and path):
            continue
        made_in = getattr(value, "__module__", None) or "torch"
        if listed is None and not str(made_in).startswith("torch"):
            continue
        names.append(name)
    return names


def split_arguments(text: str) -> list[str]:
    """The arguments of a signature's text, split at commas outside brackets and quotes."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def written(doc: str, name: str) -> dict[str, str | None]:
    """Parameters and defaults that the first lines of a doc give for the function."""
    found: dict[str, str | None] = {}
    for line in doc.replace("\\\n", " ").splitlines()[:60]:
        line = line.strip().removeprefix(".. function::").strip()
        match = re.match(rf"(?:[\w.]+\.)?{re.escape(name)}\((.*)\)\s*(?:->.*)?$", line)
        if not match:
            continue
        for part in split_arguments(match[1]):
            head, _, default = (p.strip() for p in part.partition("="))
            head = head.split(":")[0].strip().split(" ")[-1].lstrip("*")
            if head.isidentifier():
                found.setdefault(head, default or None)
    return found


def from_schemas(path: str, doc: str) -> dict[str, Any]:
    """Parameters and defaults of all overloads of a native PyTorch function."""
    parts = path.split(".")
    prefix = f"{parts[0]}_" if parts[0] in ("linalg", "special", "fft") else ""
    packet = getattr(torch.ops.aten, prefix + parts[-1], None)
    found: dict[str, Any] = {}
    schemas = [getattr(packet, o)._schema for o in packet.overloads()] if packet else []
    given = [[a for a in s.arguments if not a.is_out] for s in schemas]
    of_tensors = [any("Tensor" in str(a.type) for a in arguments) for arguments in given]
    for arguments, tensors in zip(given, of_tensors):
        if any("Dimname" in str(a.type) for a in arguments):
            continue
        if any(of_tensors) and not tensors:  # TorchScript's forms for numbers and lists
            continue
        for a in arguments:
            name = {"self": "input"}.get(a.name, a.name)
            found.setdefault(name, a.default_value if a.has_default_value() else Missing)
    if "out" in written(doc, parts[-1]):
        found["out"] = None
    return found


OPS = (type(clew.add), type(clew.Tensor.add))


def parameters(f: Any, path: str) -> dict[str, Any] | None:
    """Parameters and defaults of a function; None when nothing tells."""
    name, method = path.rsplit(".", 1)[-1], path.startswith("Tensor.")
    found: dict[str, Any]
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        doc = getattr(f, "__doc__", None) or ""
        if isinstance(f, OPS):
            texts = written(doc, name) or written(doc, name.rstrip("_"))
            found = {n: literal(default) for n, default in texts.items()}
        else:
            found = {} if clew_made(f) else from_schemas(path, doc)
    else:
        if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            return None
        found = {
            p.name: Missing if p.default is p.empty else p.default
            for p in signature.parameters.values()
        }
    if method and found:
        found.pop("input", None)
        found.pop("out", None)
    found.pop("self", None)
    return found or None


def clew_made(f: Any) -> bool:
    return str(getattr(f, "__module__", None) or "clew").startswith("clew")


def literal(text: str | None) -> Any:
    """A default's value; Missing when it is no plain literal."""
    try:
        return ast.literal_eval((text or "").strip())
    except (ValueError, SyntaxError):
        return Missing


def plain(value: Any) -> Any:
    """A default in a form that compares: numbers as float, (n, n) as n, () and False as None."""
    if isinstance(value, (list, tuple)):
        parts = [plain(v) for v in value]
        return parts[0] if len({*map(repr, parts)}) == 1 else tuple(parts) or None
    if type(value) is int:
        return float(value)
    if value is False:
        return None
    return value if isinstance(value, (bool, float, str, type(None))) else Missing


def compare_functions(path: str, theirs: Any, ours: Any) -> list[str]:
    want, have = parameters(theirs, path), parameters(ours, path)
    if want is None or have is None or path in SAME_PARAMETERS:
        return []
    ignored = {"args", "kwargs"} | OTHER_PARAMETERS | {n for n in want if n.startswith("_")}
    if isinstance(ours, OPS):
        ignored |= {"out", "name"}
    packed = "args" in have or "size" in have
    if "A" in have or "L" in have or "LU_data" in have:  # as documented, not as in the schema
        ignored |= {"input", "input2", "input3", "other"}
    lacking = [n for n in want if n not in have and n not in ignored and not packed]
    said = ["lacks " + ", ".join(f"`{n}`" for n in lacking)] if lacking else []
    for n in want:
        a, b = plain(want[n]), plain(have.get(n, Missing))
        if a is not Missing and b is not Missing and a != b and n not in SAME_DEFAULTS:
            said.append(f"`{n}` is {have[n]!r} by default, not {want[n]!r}")
    return said


def compare_classes(path: str, theirs: Any, ours: Any) -> list[str]:
    said = []
    try:
        said += compare_functions(path, theirs.__init__, ours.__init__)
    except AttributeError:
        pass
    skip = INNER_MEMBERS | NOT_PUBLIC | REMOVED
    # FloatTensor and the like, which make tensors, have a tensor's members.
    makes_tensors = issubclass(theirs, torch.Tensor) or path.endswith("Tensor")
    if makes_tensors or path in SAME_MEMBERS:
        return said
    lacking = [
        n for n in dir(theirs) if not n.startswith("_") and n not in skip and not hasattr(ours, n)
    ]
    lacking = [n for n in lacking if not isinstance(getattr(theirs, n, None), types.ModuleType)]
    if lacking:
        said.append("lacks " + ", ".join(f"`.{n}`" for n in lacking))
    return said


def examine(path: str) -> tuple[str, str]:
    """('present' | 'differs' | 'absent', how or why) of one dotted name."""
    theirs, ours = find(torch, path), find(clew, path)
    if ours is Missing:
        return "absent", reason(path)
    said: list[str] = []
    if isinstance(theirs, type) and isinstance(ours, type):
        said = compare_classes(path, theirs, ours)
    elif callable(theirs) and callable(ours) and not isinstance(theirs, type):
        said = compare_functions(path, theirs, ours)
    if path in DIFFERS:
        said.append(DIFFERS[path])
    return ("differs" if said else "present"), "; ".join(said)


def wrap(names: list[str]) -> str:
    """Names in code style, in lines of about 120 columns."""
    lines, line = [], ""
    for name in names:
        piece = f"`{name}`"
        if line and len(line) + len(piece) + 1 > 118:
            lines.append(line)
            line = ""
        line = f"{line} {piece}" if line else piece
    return "\n".join([*lines, line])


def page() -> str:
    head = [
        "# PyTorch's names in clew",
        "",
        "All public names of PyTorch 2.13's modules against clew's, made by `tools/coverage.py`: "
        "do not edit. A name",
        "*differs* when parameters or members are missing, a default is another one, or the "
        "meaning is known to differ. What the",
        "values, derivatives and errors of the present names are like is measured by "
        "`make parity`. Names that are *out of scope*",
        "belong to what clew is not: other devices, quantized tensors, TorchScript, "
        "compiler and tracing internals.",
        "",
        "| module | names | present | differs | absent | out of scope |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    body: list[str] = []
    for path in MODULES:
        rows = {n: examine(f"{path}.{n}" if path else n) for n in public_names(path)}
        present = [n for n, (s, _) in rows.items() if s == "present"]
        differs = [(n, how) for n, (s, how) in rows.items() if s == "differs"]
        absent = [n for n, (s, why) in rows.items() if s == "absent" and not why]
        outside: dict[str, list[str]] = {}
        for n, (s, why) in rows.items():
            if s == "absent" and why:
                outside.setdefault(why, []).append(n)
        label = "torch" + (f".{path}" if path else "")
        beyond = sum(map(len, outside.values()))
        head.append(
            f"| [{label}](#{label.replace('.', '').lower()}) | {len(rows)} | {len(present)} | "
            f"{len(differs)} | {len(absent)} | {beyond} |"
        )
        body += [f"## {label}", ""]
        if differs:
            body += ["Differs:", "", *(f"- `{n}`: {how}" for n, how in differs), ""]
        if absent:
            body += ["Absent:", "", wrap(absent), ""]
        for why in sorted(outside):
            body += [f"Out of scope, {why}:", "", wrap(outside[why]), ""]
        if present:
            body += ["Present:", "", wrap(present), ""]
    return "\n".join([*head, "", *body]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only compare with the page")
    parser.add_argument("--print", metavar="MODULE", help="show what differs or is absent there")
    options = parser.parse_args()
    if not torch.__version__.startswith("2.13."):
        sys.exit(f"coverage: the page is about PyTorch 2.13; this is {torch.__version__}")
    if options.print is not None:
        path = options.print.removeprefix("torch").strip(".")
        for n in public_names(path):
            status, how = examine(f"{path}.{n}" if path else n)
            if status != "present":
                print(f"{n:40} {status} {how}")
        return 0
    text = page()
    if options.check:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/coverage.md is out of date: run tools/coverage.py")
            return 1
        return 0
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
