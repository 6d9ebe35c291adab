"""Check that sources include and import in one direction only and that files stay short.

A file of src/clew needs the files that it imports anywhere, inside functions too, and no file may
need itself through others. A bare `import clew`, or a name imported from it, is an import of
clew/__init__.py: what the package loads cannot use it, and all other files can. `clew.nn.x` is an
import of clew.nn.

Prints one line a finding and exits with 1 if there is any. tests/test_layers.py runs it too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What the files of each folder of csrc/ may include.
CPP_LAYERS = {
    "base": {"base"},
    "kernels": {"base", "kernels"},
    "tensor": {"base", "tensor"},
    "graph": {"base", "tensor", "graph"},
    "ops": {"base", "kernels", "tensor", "graph", "ops"},
    "program": {"base", "kernels", "tensor", "graph", "program"},
    "python": {"base", "kernels", "tensor", "graph", "ops", "program", "python"},
}

# Single files that stand outside their folder's rule: a call of few elements spreads its operands
# before it asks for a loop, and tensors are Python objects.
CPP_ALLOWED = {
    ("graph", "kernels/core/spread.h"),
    ("tensor", "Python.h"),
    ("graph", "Python.h"),
    ("graph", "frameobject.h"),
}

# Ranks of the parts of src/clew: a module imports its own rank or a lower one. The files at the
# package's top that are named here belong to the core; whatever is not named is "the rest".
PYTHON_RANKS = {
    "_C": 0,
    "_base": 1,
    "autograd": 2,
    "_tensor": 2,
    "_ops": 2,
    "fft": 2,
    "func": 2,
    "linalg": 2,
    "masked": 2,
    "signal": 2,
    "sparse": 2,
    "special": 2,
    "nn": 3,
    "_files": 4,
    "_insight": 4,
    "_program": 4,
    "optim": 4,
    "_registered": 5,
    # Loaded by programs written for PyTorch alone.
    "_alias": 5,
    "_cli": 5,
    "_torch": 5,
}
# Where PyTorch's names put them, but needed by everything.
CORE_MODULES = {"utils.hooks", "utils._pytree"}
CORE = 1
REST = 5

MAX_LINES = 1000
MAX_COLUMNS = 100

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
PYTHON_HEADERS = re.compile(r"^(Python|frameobject|structmember)\.h$")


def cpp_findings(root: Path) -> Iterator[str]:
    """Includes that go the wrong way."""
    for path in sorted((root / "csrc").rglob("*")):
        if path.suffix not in (".cpp", ".h"):
            continue
        layer = path.relative_to(root / "csrc").parts[0]
        name = path.relative_to(root)
        if layer not in CPP_LAYERS:
            yield f"{name}: csrc/{layer} is not a layer"
            continue
        for quote, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if (layer, target) in CPP_ALLOWED:
                continue
            if PYTHON_HEADERS.match(target) and layer != "python":
                yield f"{name}: {target} belongs to csrc/python alone"
            if target.startswith("oneapi/") and layer != "kernels":
                yield f"{name}: {target} belongs to csrc/kernels alone"
            if quote != '"':
                continue
            if not (root / "csrc" / target).exists():
                yield f"{name}: include {target} by its path from csrc/"
                continue
            used = target.split("/")[0]
            if used not in CPP_LAYERS[layer]:
                yield f"{name}: csrc/{layer} must not include {target}"


def rank(module: str) -> int:
    """The rank of a module named relative to the package: "nn.modules.linear", "_tensor"."""
    if module in CORE_MODULES:
        return CORE
    top = module.split(".")[0]
    if top in PYTHON_RANKS:
        return PYTHON_RANKS[top]
    return CORE if top.startswith("_") and not top.startswith("__") else REST


def imports(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Line and name, relative to `clew`, of each module imported when this one is.

    Imports inside functions are left out: they happen later, so they cannot make a circle.
    """
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("clew."):
                    yield node.lineno, alias.name[len("clew.") :]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                parts = package.split(".") if package else []
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join(parts + (node.module.split(".") if node.module else []))
            elif node.module == "clew" or (node.module or "").startswith("clew."):
                base = (node.module or "")[len("clew.") :]
            else:
                continue
            if base:
                yield node.lineno, base
            else:
                for alias in node.names:
                    yield node.lineno, alias.name
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += ast.iter_child_nodes(node)


def python_findings(root: Path) -> Iterator[str]:
    """Imports that go upward."""
    source = root / "src" / "clew"
    modules = {
        ".".join(p.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for p in source.rglob("*.py")
    }
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        module = ".".join(parts)
        if module in ("__init__", "__main__"):
            continue  # the package's front gathers everything
        package = ".".join(parts[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, target in imports(tree, package):
            top = target.split(".")[0]
            known = (
                top in modules
                or top in PYTHON_RANKS
                or any(name.startswith(top + ".") for name in modules)
            )
            if known and rank(target) > rank(module):
                yield f"{path.relative_to(root)}:{line}: {module} must not import {target}"


def needed(path: Path, modules: dict[str, Path], module: str) -> set[str]:
    """The modules of `modules` that a file needs anywhere, except for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        names: list[str] = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0] if node.args else None
            names = [first.value] if isinstance(first, ast.Constant) else []
        elif isinstance(node, ast.Attribute) and dotted(node).startswith("clew."):
            found.add(known(dotted(node), modules))
            continue
        for name in names:
            if name.split(".")[:2] != ["clew", "_C"]:  # the native module
                found.add(known(name, modules))
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):  # which nobody evaluates
                parts = value if isinstance(value, list) else [value]
                pending += [part for part in parts if isinstance(part, ast.AST)]
    return found - {"", module}


def dotted(node: ast.expr) -> str:
    """``clew.nn.Linear`` where an expression is that; empty for what is no name."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""


def known(name: str, modules: dict[str, Path]) -> str:
    """The module that a name is, or is in; empty where it is none of ours."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def circles(needs: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that need one another, the largest first (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(needs[module]):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(needs):
        if module not in number:
            visit(module)
    return sorted(found, key=lambda group: (-len(group), group))


def circle_findings(root: Path) -> Iterator[str]:
    """Files that need themselves."""
    source = root / "src"
    modules = {
        ".".join(p.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): p
        for p in source.rglob("*.py")
    }
    for group in circles({name: needed(path, modules, name) for name, path in modules.items()}):
        yield f"src: a circle of imports: {', '.join(group)}"


def length_findings(root: Path) -> Iterator[str]:
    """Files and lines that are too long."""
    for folder in ("csrc", "src", "tests", "bench", "examples", "tools"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".py") or path.is_symlink():
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            name = path.relative_to(root)
            if len(lines) > MAX_LINES:
                yield f"{name}: {len(lines)} lines; split it, {MAX_LINES} is the limit"
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS:
                    yield f"{name}:{number}: {len(line)} columns; {MAX_COLUMNS} is the limit"


def findings(root: Path = ROOT) -> list[str]:
    """Everything that is wrong under `root`."""
    return [
        *cpp_findings(root),
        *python_findings(root),
        *circle_findings(root),
        *length_findings(root),
    ]


def main() -> int:
    """Print the findings; return the exit status."""
    found = findings()
    print("\n".join(found) if found else "layers and lengths: nothing to object to")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
