"""Check that sources include and import in one direction only and that files stay short.

A file of csrc/ includes what CPP_LAYERS lists for its layer, and the folders of a layer, its
families, do not include one another in a circle. In csrc/ops, rules of shapes and gradients and
the steps of composite operations take no raw data pointers. Files of a folder are compiled together
in releases, so no name that they define for themselves stands in two of them.

A file of src/clew needs the files that it imports anywhere, inside functions too. It may need files
of its own rank and of lower ones (PYTHON_RANKS), and inside functions also what LATER lists for it.
No file may need itself through others. A bare `import clew`, or a name imported from it, is an
import of clew/__init__.py: what the package loads cannot use it, and all other files can.
`clew.nn.x` is an import of clew.nn.

Prints one line a finding and exits with 1 if there is any. tests/test_layers.py runs it too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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

# Ranks of the parts of src/clew: a module needs its own rank or a lower one. The longest name that
# fits counts; other files at the package's top whose names begin with "_" belong to the core, and
# whatever else is not named is "the rest".
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
    "storage": 2,
    "nn": 3,
    "_files": 4,
    "_insight": 4,
    "_program": 4,
    "optim": 4,
    "_registered": 5,
    "_registering": 5,
    # Diagnostics of whole programs: their loaders, their scalers of gradients.
    "_insight.debug.doctor": 5,
    "_insight.debug.recorder": 5,
    "_insight.debug.replaying": 5,
    # Models on several ranks: they stand on distributed.
    "nn.parallel": 5,
    # The parts of jit, and what PyTorch's libraries look for.
    "_scripted": 5,
    "_trace_graph": 5,
    "_utils": 5,
    # Loaded by programs written for PyTorch alone.
    "_alias": 5,
    "_cli": 5,
    "_torch": 5,
}
# Where PyTorch's names put them, but needed by everything.
CORE_MODULES = {"__future__", "utils.hooks", "utils._pytree", "utils._tree_nodes"}
CORE = 1
REST = 5

# The needs that go upward, all of them inside functions: (file, what it needs) and why. A name that
# is not here is a finding, and so is one that is here for nothing.
LATER = {
    ("_files.construct", "distributed.tensor._saving"): "files hold parts of distributed tensors",
    ("_files.construct", "nested"): "files hold tensors of parts of different lengths",
    ("_files.construct", "nested._strided"): "files hold tensors of parts of different lengths",
    ("_files.safe", "_cli.run"): "pickles name things as PyTorch does; `clew run` knows the names",
    ("_ops.opcheck", "testing"): "opcheck compares results as testing does",
    ("_tensor.array_namespace", "array_api"): "Array API programs ask a tensor for this module",
    ("_tensor.html", "nn.parameter"): "a tensor's text says whether it is a Parameter",
    ("autograd._backward", "_insight.explain"): "an error message says why a tensor was not used",
    ("func._modules", "nn.utils.stateless"): "functional_call calls modules",
    ("nn.modules._convert", "_program.options"): "Module.compile takes the options of compile",
    ("nn.modules._summary", "_insight.graph.model"): "Module.summary is this picture of a model",
    ("nn.modules.attention", "nested._modules"): "its inputs can have sequences of other lengths",
    ("nn.modules.rnn", "nested._modules"): "its inputs can have sequences of other lengths",
    ("nn.modules.batchnorm", "distributed.nn.functional"): "SyncBatchNorm asks the other ranks",
    ("nn.utils.clip_grad", "_insight.debug.summary"): "an error message shows the gradient",
    ("nn.utils.clip_grad", "distributed.tensor._norms"): "gradients can lie on several ranks",
    ("sparse._changes", "nn.functional"): "dropout of a sparse tensor",
    ("sparse._rules", "nn.functional"): "pad of a sparse tensor",
}

MAX_LINES = 1000
MAX_COLUMNS = 100

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
PYTHON_HEADERS = re.compile(r"^(Python|frameobject|structmember)\.h$")
# How code takes a raw data pointer, and the names of functions and slots that must not.
POINTER = re.compile(r"\.data<|->address\(\)|\.nd\(\)")
FUNCTION = re.compile(r"^[A-Za-z_\[].*?(\w+)\(")
SLOT = re.compile(r"^    \.(\w+) =")
NO_POINTERS = {"vjp", "run", "shape", "view", "batch", "rows", "passes"}  # slots
# Outside of csrc/kernels, csrc/tensor and csrc/ops, the files that take pointers: they run slots,
# make tensors, or stand between Python and tensors. ARCHITECTURE says what each does.
POINTER_FILES = {
    "graph": {"apply.cpp", "elementwise.cpp", "staged.cpp"},
    "program": {"gather_rows.cpp", "grouping.cpp"},
    "python": {
        "arguments.h", "convert.cpp", "creation.cpp", "creation_range.cpp", "dlpack.cpp",
        "generator.cpp", "indexing.cpp", "random.cpp", "sequence.cpp", "tensor_methods.cpp",
    },
}  # fmt: skip
SLOT_FUNCTION = re.compile(r"\.(\w+) =\s*&?(\w+)")
# What a file defines for itself: a type, or a function up to its parameters.
OWN_TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: :.*)? \{")
OWN_FUNCTION = re.compile(r"^(?! |using |namespace |template )[\w:<>,&*\[\]\" ]+?[ &*](\w+)\((.*)")
OWN_VALUE = re.compile(r"^(?:static |constexpr |const )+[\w:<>,&* ]+?[ &*](\w+)(?:\[.*\])? [={]")


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


def family(path: str) -> str:
    """The folder of a file of csrc/ below its layer: "ops/views" of "ops/views/order.cpp".

    A layer's own headers are what its families stand on, and its own sources stand on them.
    """
    parts = path.split("/")
    if len(parts) > 2:
        return "/".join(parts[:2])
    return f"{parts[0]}/*.h" if path.endswith(".h") else f"{parts[0]}/*.cpp"


def family_findings(root: Path) -> Iterator[str]:
    """Families of a layer that include one another in a circle."""
    needs: dict[str, set[str]] = {}
    for path in sorted((root / "csrc").rglob("*")):
        if path.suffix not in (".cpp", ".h"):
            continue
        name = path.relative_to(root / "csrc").as_posix()
        own = needs.setdefault(family(name), set())
        for quote, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if quote == '"' and target.split("/")[0] == name.split("/")[0]:
                needs.setdefault(family(target), set())
                own |= {family(target)} - {family(name)}
    for group in circles(needs):
        yield f"csrc: a circle of includes: {', '.join(group)}"


def pointer_findings(root: Path) -> Iterator[str]:
    """Raw data pointers outside of the slots that get operands with their bytes in place."""
    for path in sorted((root / "csrc" / "ops").rglob("*.cpp")):
        text, where = path.read_text(encoding="utf-8"), ""
        functions = {f for slot, f in SLOT_FUNCTION.findall(text) if slot in NO_POINTERS}
        for number, line in enumerate(text.splitlines(), 1):
            if slot := SLOT.match(line):
                where = slot[1]
            elif function := FUNCTION.match(line):
                where = function[1]
            if POINTER.search(line) and where in functions | NO_POINTERS:
                name = path.relative_to(root)
                yield f"{name}:{number}: {where} takes a raw data pointer; make a private op of it"
    for layer, known in POINTER_FILES.items():
        for path in sorted((root / "csrc" / layer).glob("*.*")):
            takes = bool(POINTER.search(path.read_text(encoding="utf-8")))
            if takes != (path.name in known):
                verb = "takes raw data pointers" if takes else "is named but takes no pointer"
                yield f"csrc/{layer}/{path.name}: {verb}; see POINTER_FILES"


def parameters(text: str) -> str:
    """The types of a function's parameters, from the text behind its opening bracket."""
    depth, parts = 1, [""]
    for c in text:
        depth += (c in "(<[{") - (c in ")>]}")
        if depth == 0:
            break
        if c == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += c
    return ", ".join(re.sub(r"([\s&*])\w+$", r"\1", p.split("=")[0].strip()).strip() for p in parts)


def own_names(text: str) -> Iterator[str]:
    """What a file defines in its unnamed namespace, or as static; functions with parameters."""
    inside = False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line in ("namespace {", "}  // namespace"):
            inside = line == "namespace {"
        if not (inside or line.startswith("static ")):
            continue
        if found := OWN_TYPE.match(line) or OWN_VALUE.match(line):
            yield found[1]
        elif found := OWN_FUNCTION.match(line):
            whole = " ".join([found[2], *map(str.strip, lines[number + 1 : number + 8])])
            yield f"{found[1]}({parameters(whole)})"


def name_findings(root: Path) -> Iterator[str]:
    """Names of one file that another file of its folder has, too."""
    for folder in sorted({path.parent for path in (root / "csrc").rglob("*.cpp")}):
        if folder.relative_to(root / "csrc").parts[:1] == ("kernels",):
            continue
        owners: dict[str, str] = {}
        for path in sorted(folder.glob("*.cpp")):
            for name in dict.fromkeys(own_names(path.read_text(encoding="utf-8"))):
                other = owners.setdefault(name, path.name)
                if other != path.name:
                    yield f"{path.relative_to(root)}: {name} stands in {other}, too; rename one"


def rank(module: str) -> int:
    """The rank of a module named relative to the package: "nn.modules.linear", "_tensor"."""
    if module in CORE_MODULES:
        return CORE
    name = module
    while name:
        if name in PYTHON_RANKS:
            return PYTHON_RANKS[name]
        name = name.rpartition(".")[0]
    top = module.split(".")[0]
    return CORE if top.startswith("_") and not top.startswith("__") else REST


class Need(NamedTuple):
    """One place where a file needs a module of the package."""

    line: int
    target: str  # its whole name, "clew.nn.modules.linear"
    late: bool  # inside a function


def modules_of(root: Path) -> dict[str, Path]:
    """The files of src/, by the names of their modules."""
    source = root / "src"
    return {
        ".".join(p.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): p
        for p in sorted(source.rglob("*.py"))
    }


def needs_of(path: Path, modules: dict[str, Path], module: str) -> Iterator[Need]:
    """Each use of one of `modules` in a file, inside functions too, except for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, late = pending.pop()
        names: list[str] = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += [(part, late) for part in node.orelse]
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
            yield Need(node.lineno, known(dotted(node), modules), late)
            continue
        for name in names:
            target = known(name, modules)
            if name.split(".")[:2] != ["clew", "_C"] and target:  # the native module
                yield Need(getattr(node, "lineno", 0), target, late)
        inside = late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):  # which nobody evaluates
                parts = value if isinstance(value, list) else [value]
                pending += [(part, inside) for part in parts if isinstance(part, ast.AST)]


def package_needs(root: Path) -> dict[str, list[Need]]:
    """What each module of the package needs of others of it."""
    modules = modules_of(root)
    return {
        name: [need for need in needs_of(path, modules, name) if need.target != name]
        for name, path in modules.items()
    }


def python_findings(root: Path, needs: dict[str, list[Need]]) -> Iterator[str]:
    """Needs that go upward, and lines of LATER that are no longer true."""
    modules = modules_of(root)
    later: set[tuple[str, str]] = set()
    for name, found in needs.items():
        module = name.partition(".")[2]
        if module in ("", "__main__"):
            continue  # the package's front gathers everything
        for need in sorted(found):
            target = need.target.partition(".")[2]
            if not target or rank(target) <= rank(module):
                continue
            if need.late:
                later.add((module, target))
            if not need.late or (module, target) not in LATER:
                place = f"{modules[name].relative_to(root)}:{need.line}"
                yield f"{place}: {module} must not import {target}"
    for module, target in LATER:
        if f"clew.{module}" in modules and (module, target) not in later:
            yield f"tools/check_layers.py: {module} no longer needs {target}; take it out of LATER"


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


def circle_findings(needs: dict[str, list[Need]]) -> Iterator[str]:
    """Files that need themselves."""
    graph = {name: {need.target for need in found} for name, found in needs.items()}
    for group in circles(graph):
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
    needs = package_needs(root)
    return [
        *cpp_findings(root),
        *family_findings(root),
        *pointer_findings(root),
        *name_findings(root),
        *python_findings(root, needs),
        *circle_findings(needs),
        *length_findings(root),
    ]


def main() -> int:
    """Print the findings; return the exit status."""
    found = findings()
    print("\n".join(found) if found else "layers and lengths: nothing to object to")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
