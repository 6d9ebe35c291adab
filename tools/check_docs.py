"""Report what the texts of public names lack: python tools/check_docs.py [--list KIND] [MODULE...]

Every public module, class, function, method and attribute of clew is looked at, those of the
native module too. The kinds of findings:

    empty       there is no text
    summary     the text does not begin with one sentence
    args        Args: names other parameters than the signature does, or there is no Args:
    returns     nothing says what a function returns
    example     there is no example
    foreign     no example uses the name that the text belongs to
    repeated    an alias repeats another name's text in full

Prints the number of findings of each kind, or with --list the names. tests/test_described.py
allows few.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import clew

KINDS = ["empty", "summary", "args", "returns", "example", "foreign", "repeated"]
# Arguments that every function has, or that PyTorch has retired.
COMMON = {"self", "cls", "out", "args", "kwargs"}
SECTION = re.compile(
    r"^(Args|Shapes?|Returns|Raises|Yields|Example|Examples|Note|Notes|Attributes):"
)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:", re.MULTILINE)
RETURNS = re.compile(
    r"^(Returns|Yields)\b|\bgives?\b|\breturn(s|ing)?\b|\bas PyTorch\b", re.MULTILINE
)
# A first sentence that names the result.
SAYS_WHAT = re.compile(
    r"(The|An?|Whether|Which|What|Where|How|All|Each|One|Two|Every|Several)\b|[A-Z0-9]\w+ of "
)

# A text that refers to another name may leave out what stands there.
OTHER_NAME = re.compile(
    r"[Aa]nother name (of|for)|[Tt]he same as|NumPy's name (for|of)|[Ss]ee (:?\w*:?`|clew\.)"
    r"|^Raises: |[Aa]s (for|of|in) :?\w*:?`|as there\b"
)


class Named(NamedTuple):
    """A public name and what it means."""

    path: str
    value: object
    owner: object

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


class Finding(NamedTuple):
    kind: str
    path: str
    why: str


def text_of(named: Named) -> str:
    """The text, a base class's where a member has none, without lines of native signatures."""
    text = getattr(named.value, "__doc__", None)
    if isinstance(named.owner, type) and not text:
        above = (vars(base)[named.name] for base in named.owner.__mro__ if named.name in vars(base))
        text = next((d for a in above if (d := getattr(a, "__doc__", None))), None)
    text = inspect.cleandoc(text or "")
    above, gap, rest = text.partition("\n\n")
    if gap and all(re.match(r"[\w.]+\(.*\) -> ", line) for line in above.splitlines()):
        return rest
    return text


def public_modules() -> Iterator[str]:
    yield "clew"
    for found in pkgutil.walk_packages(clew.__path__, "clew."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def members(owner: type) -> Iterator[str]:
    """The public names that a class itself defines; for Tensor, those that others install too."""
    return (n for n in (dir(owner) if owner is clew.Tensor else vars(owner)) if n[0] != "_")


def everything(wanted: list[str] | None = None) -> Iterator[Named]:
    """Each public name once, in the first module that has it."""
    seen: dict[int, object] = {}  # kept, or another object could come to have the number
    for module in public_modules():
        if wanted and not any(module == w or module.startswith(w + ".") for w in wanted):
            continue
        try:
            home = importlib.import_module(module)
        except ImportError:  # of a package that is not installed
            continue
        yield Named(module, home, None)
        for name in getattr(home, "__all__", None) or dir(home):
            value = getattr(home, name, None)
            ours = str(getattr(value, "__module__", None)).startswith("clew")
            if (
                name.startswith("_")
                or not (ours and callable(value))
                or getattr(value, "__name__", "").startswith("_")
                or isinstance(value, types.ModuleType)
                # An object, which has its class's text.
                or getattr(type(value), "__doc__", None) is getattr(value, "__doc__", "")
                or id(value) in seen
            ):
                continue
            seen[id(value)] = value
            yield Named(f"{module}.{name}", value, home)
            if not isinstance(value, type):
                continue
            for part in members(value):
                raw = inspect.getattr_static(value, part)
                described = callable(raw) or isinstance(
                    raw, (property, types.GetSetDescriptorType, classmethod, staticmethod)
                )
                if described and id(raw) not in seen and not isinstance(raw, type):
                    seen[id(raw)] = raw
                    yield Named(f"{module}.{name}.{part}", getattr(value, part, raw), value)


def parameters(value: object) -> list[str]:
    """The names that Args: should tell of."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [n for n in found.parameters if n not in COMMON and not n.startswith("_")]


def takes_anything(value: object) -> bool:
    """Whether the signature is (*args, **kwargs), of a function that passes them on."""
    try:
        found = list(inspect.signature(value).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    kinds = {p.kind for p in found if p.name not in ("self", "cls")}
    return kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def is_record(value: object) -> bool:
    """Whether a class is an exception, an enumeration or a number of named fields."""
    return isinstance(value, type) and (
        issubclass(value, (BaseException, enum.Enum, tuple)) or dataclasses.is_dataclass(value)
    )


def gives_something(value: object) -> bool:
    if isinstance(value, type):
        return False
    try:
        given = inspect.signature(value).return_annotation  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    if getattr(value, "__name__", "") == "backward" and given is inspect.Parameter.empty:
        return False  # native functions tell no annotation
    # What a context manager yields is None.
    return given not in (None, "None", "NoReturn", "Iterator[None]")


def sections(text: str) -> dict[str, str]:
    """The text by its headings; what stands before the first is called ''."""
    found: dict[str, list[str]] = defaultdict(list)
    heading = ""
    for line in text.splitlines():
        if match := SECTION.match(line):
            heading, line = match[1], line[match.end() :]
        elif line and not line.startswith(" "):
            heading = "" if line[0] not in ">." and heading == "Args" else heading
        found[heading].append(line)
    return {heading: "\n".join(lines) for heading, lines in found.items()}


def examples(text: str) -> str:
    return "\n".join(m[1] for m in re.finditer(r"^ *(?:>>>|\.\.\.) ?(.*)", text, re.MULTILINE))


def faults(named: Named) -> Iterator[Finding]:
    """What the text of one name lacks."""
    path, value, owner = named
    text = text_of(named)
    if not text:
        yield Finding("empty", path, "no text")
        return
    first = text.split("\n\n")[0].strip()
    words = re.sub(r"``?[^`]*``?", "", first)
    if not re.search(r"[.:)!?]$", first.split(">>>")[0].strip()):
        yield Finding("summary", path, f"no sentence: {first[:60]!r}")
    elif not re.search(r"[A-Za-z]{2,}", words):
        yield Finding("summary", path, f"no words: {first[:60]!r}")
    if isinstance(value, types.ModuleType) or not callable(value):
        return
    parts = sections(text)
    wanted = parameters(value)
    if "Args" in parts and not OTHER_NAME.search(parts["Args"]):
        told = [n.strip(" *") for entry in ENTRY.findall(parts["Args"]) for n in entry.split(",")]
        told = [n for n in told if n not in COMMON and not n.startswith("_")]
        # A method shows the function's text, which begins with the tensor itself.
        first = {"input", "tensor", "condition"} if owner is clew.Tensor else set()
        missing, odd = set(wanted) - set(told) - {"input"}, set(told) - set(wanted) - first
        if missing:
            yield Finding("args", path, f"not told: {', '.join(sorted(missing))}")
        if odd and not takes_anything(value):
            yield Finding("args", path, f"no such parameter: {', '.join(sorted(odd))}")
        if gives_something(value) and not (RETURNS.search(text) or SAYS_WHAT.match(text)):
            yield Finding("returns", path, "no Returns:")
    elif not is_record(value) and not OTHER_NAME.search(text) and named.name != "forward":
        # A short text may name them in a sentence; a class's text has forward's under Shapes:.
        untold = [n for n in wanted if n != "input" and not re.search(rf"\b{n}\b", text)]
        if len(untold) > 1 or (len(wanted) > 3 and untold):
            yield Finding("args", path, f"nothing on {', '.join(untold)}")
    shown = examples(text)
    if not shown:
        # A class's example stands for its methods too; Tensor has too many for that.
        if not is_record(value) and (not isinstance(owner, type) or owner is clew.Tensor):
            yield Finding("example", path, "no example")
    elif not re.search(rf"\b{re.escape(named.name.rstrip('_'))}_?\b", shown):
        yield Finding("foreign", path, f"shows {shown.splitlines()[0][:70]}")


def repeated(all_named: list[Named]) -> Iterator[Finding]:
    """Long texts that several names have word for word."""
    by_text: dict[str, list[Named]] = defaultdict(list)
    for named in all_named:
        text = text_of(named)
        if "\n\n" in text:
            by_text[text].append(named)
    for group in by_text.values():
        first = group[0].name.strip("_")
        for other in group[1:]:
            if other.name.strip("_") != first:
                yield Finding("repeated", other.path, f"the text of {group[0].path}")


def findings(wanted: list[str] | None = None) -> list[Finding]:
    all_named, told = [], set()
    for named in everything(wanted):
        # A function, its method and its in-place form share one text.
        names = frozenset(parameters(named.value)) - {"input", "tensor", "condition"}
        key = (named.name.rstrip("_"), text_of(named), names)
        if not key[1] or key not in told:
            all_named.append(named)
        told.add(key)
    return [*(f for named in all_named for f in faults(named)), *repeated(all_named)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", choices=[*KINDS, "all"], help="print the names of this kind")
    parser.add_argument("modules", nargs="*", help="only these modules and what is in them")
    options = parser.parse_args()
    found = findings(options.modules)
    for kind, path, why in found:
        if options.list in (kind, "all"):
            print(f"{path}: {kind}: {why}")
    counts = Counter(f.kind for f in found)
    for kind in KINDS:
        print(f"{kind:10}{counts[kind]:6}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
