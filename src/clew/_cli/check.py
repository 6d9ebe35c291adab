"""`clew doctor` and `clew run --check`: names of torch that a program uses and clew lacks.

Sources are parsed, never run. The program's own files are read as a whole; of installed packages
only what runs when they are imported counts as needed, and what their functions name is listed
apart, since nobody knows whether they are called.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew._cli._read_names import CALLED, NEEDED, OPTIONAL, REFUSED, _Names, _Reader

__all__ = ["Finding", "check"]

# Bounds on what is read: a program that imports half of the world is still checked in seconds.
MAX_FILES = 4000
MAX_BYTES = 64 << 20
MAX_FILE_BYTES = 4 << 20
# Large packages that work without torch: nothing of theirs is read.
_WITHOUT_TORCH = frozenset(
    "numpy scipy pandas matplotlib PIL sklearn sympy numba llvmlite cv2 IPython pytest tensorflow "
    "jax jaxlib networkx pyarrow setuptools pip pkg_resources requests urllib3 tqdm yaml "
    "cython Cython mpmath greenlet".split()
)


@dataclass(frozen=True)
class Finding:
    """A use of a name that clew lacks."""

    file: str
    line: int
    name: str  # torch.x.y
    remedy: str
    # needed, optional (guarded), refused (raises when called), or called (in a function of an
    # installed package)
    kind: str


@dataclass
class Report:
    """What a check found, and what it read."""

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    unread: list[str] = field(default_factory=list)  # files that could not be parsed
    cut: bool = False  # the bounds ended the search


@functools.cache
def _find(name: str) -> tuple[str | None, list[str] | None]:
    """File and folders of a module, found without importing its packages."""
    parent = name.rpartition(".")[0]
    path = None
    if parent:
        path = _find(parent)[1]
        if path is None:
            return None, None
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path, None)
        except Exception:  # a finder of somebody else
            continue
        if spec is not None:
            break
    else:
        return None, None
    origin, folders = spec.origin, spec.submodule_search_locations
    source = origin if origin is not None and origin.endswith(".py") else None
    return source, None if folders is None else list(folders)


def _skipped(name: str) -> bool:
    top = name.split(".")[0]
    return top in sys.stdlib_module_names or top in _WITHOUT_TORCH or top in ("clew", "torch")


def _packages(name: str) -> Iterator[str]:
    """A module and the packages around it, outermost first: importing it runs them all."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        yield ".".join(parts[:i])


def _rank(kind: str) -> int:
    return (NEEDED, OPTIONAL, REFUSED, CALLED).index(kind)


def check(path: str, module: str | None = None) -> Report:
    """Looks for names of torch that a program and the modules it imports use and clew lacks.

    Args:
        path: of the program.
        module: its dotted name, where it is run with -m.

    Returns:
        The findings in the order in which the files are imported.

    Raises:
        OSError: the program cannot be read.
        SyntaxError: it cannot be parsed.
    """
    report = Report()
    names = _Names()
    root = os.path.dirname(os.path.abspath(path))
    package = "" if module is None else module.rpartition(".")[0]
    todo = [(os.path.abspath(path), package, NEEDED)]
    seen: dict[str, str] = {}
    total = 0
    first = True
    while todo:
        file, package, arrived = todo.pop()
        if report.files >= MAX_FILES or total >= MAX_BYTES:
            report.cut = True
            break
        own = file.startswith(root + os.sep) and "site-packages" not in file[len(root) :]
        try:
            if not first and os.path.getsize(file) > MAX_FILE_BYTES:
                raise ValueError("too long")
            with open(file, "rb") as stream:
                source = stream.read(MAX_FILE_BYTES + 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source, file)
            reader = _Reader(package, own, b"torch" in source)
            reader.visit(tree)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            if first:
                raise
            report.unread.append(file)
            continue
        first = False
        report.files += 1
        total += len(source)
        _judge(report, names, file, reader, arrived)
        for target, kind in reversed(reader.imports):
            if kind == CALLED or _skipped(target):
                continue
            worse = max(kind, arrived, key=_rank)
            for one in _packages(target):
                if one in seen and _rank(seen[one]) <= _rank(worse):
                    continue
                seen[one] = worse
                where, folders = _find(one)
                if where is not None:
                    inside = one if folders is not None else one.rpartition(".")[0]
                    todo.append((where, inside, worse))
    return report


def _judge(report: Report, names: _Names, file: str, reader: _Reader, arrived: str) -> None:
    best: dict[tuple[str, int], Finding] = {}
    for name, line, kind in reader.uses:
        remedy = names.remedy(name)
        if remedy is None:
            continue
        worse = max(kind, arrived, key=_rank)
        old = best.get((name, line))
        if old is None or _rank(old.kind) > _rank(worse):
            best[name, line] = Finding(file, line, name, remedy, worse)
    for name, line, kind in reader.calls:
        why = names.refusal(name)
        # Where the program asks first, and in packages, nobody knows whether it is called.
        if why is not None and kind == arrived == NEEDED and reader.own:
            best.setdefault((name, line), Finding(file, line, name, why, REFUSED))
    # A file reached first by a guarded import may come again by a plain one.
    report.findings[:] = [
        f for f in report.findings if f.file != file or (f.name, f.line) not in best
    ]
    report.findings.extend(best.values())


_USAGE = """usage: clew doctor [--all] script.py
       clew doctor [--all] -m module
       clew run --check script.py

Reads a program and the modules that it imports, runs nothing, and lists the names of torch that
clew lacks, and the program's calls of names that can be imported and raise when they are called.
Methods of objects are not known before the program runs, and are not checked. --all
also lists names in functions of installed packages. The exit status is 1 when something that the
program needs is missing.
"""


def main(args: list[str]) -> int:
    """The command: prints what is missing and gives the exit status."""
    from clew._cli.run import install

    everything = args[:1] == ["--all"]
    args = args[everything:]
    module = None
    if rest := args[2 if args[:1] == ["-m"] else 1 :]:
        what = f"one program at a time, options first; got {rest[0]!r}, too"
        print(f"clew doctor: {what}", file=sys.stderr)
        return 2
    if args[:1] == ["-m"] and len(args) > 1:
        sys.path.insert(0, os.getcwd())
        module = args[1]
        path, folders = _find(module)
        if folders is not None:
            module += ".__main__"
            path, _ = _find(module)
        if path is None:
            print(f"clew doctor: no source of a module {args[1]!r} was found", file=sys.stderr)
            return 2
    elif not args or args[0].startswith("-"):
        print(_USAGE, end="", file=sys.stdout if args[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if args[:1] in (["-h"], ["--help"]) else 2
    else:
        path = args[0]
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    install()
    try:
        report = check(path, module)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        print(f"clew doctor: {path!r} cannot be read: {error}", file=sys.stderr)
        return 2
    return _show(report, everything)


def _show(report: Report, everything: bool) -> int:
    counts = dict.fromkeys((NEEDED, OPTIONAL, REFUSED, CALLED), 0)
    here = os.getcwd() + os.sep
    labels = {NEEDED: "", OPTIONAL: "optional: ", CALLED: "when called: "}
    for f in sorted(report.findings, key=lambda f: _rank(f.kind)):
        counts[f.kind] += 1
        if f.kind == CALLED and not everything:
            continue
        file = f.file.removeprefix(here)
        if f.kind == REFUSED:
            print(f"{file}:{f.line}: raises when it is called: {f.name}; {f.remedy}")
            continue
        print(f"{file}:{f.line}: {labels[f.kind]}clew has no {f.name}; {f.remedy}")
    for file in report.unread:
        print(f"{file}: not checked, since it cannot be parsed")
    if report.cut:
        print(f"Only the first {report.files} files were read.")
    files = "1 file" if report.files == 1 else f"{report.files} files"
    print(
        f"{files}: {counts[NEEDED]} missing names are needed, {counts[OPTIONAL]} are "
        f"guarded by the program, {counts[CALLED]} are in functions of installed packages"
        + (f"; {counts[REFUSED]} calls would raise" if counts[REFUSED] else "")
        + ("" if everything or not counts[CALLED] else " (--all lists them)")
    )
    if counts[NEEDED]:
        print("docs/ecosystem.md says which libraries run, and how to report one that does not.")
    return 1 if counts[NEEDED] else 0
