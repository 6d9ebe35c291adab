"""Sources include and import in one direction, and files stay short."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from types import ModuleType

import pytest

import clew

ROOT = Path(__file__).resolve().parent.parent

CPP = "csrc/ops/a.cpp"
NN = "src/clew/nn/a.py"
FOREIGN = [
    ("csrc/kernels/a.cpp", '#include "tensor/t.h"\n', "csrc/kernels must not include tensor/t.h"),
    ("csrc/base/a.h", "#include <Python.h>\n", "Python.h belongs to csrc/python alone"),
    (CPP, "#include <oneapi/dnnl/dnnl.h>\n", "belongs to csrc/kernels alone"),
    (CPP, '#include "t.h"\n', "include t.h by its path from csrc/"),
    (CPP, "void f(Vjp& c) {\n  g<T>(c.in(0).data<T>());\n}\n    .vjp = f,\n", "f takes a raw data"),
    (
        CPP,
        "    .run =\n        [](C c, T& o) { g(c.in[0].nd()); },\n",
        "run takes a raw data pointer",
    ),
    ("csrc/graph/a.cpp", "char* f(T t) { return t->address(); }\n", "takes raw data pointers"),
    ("csrc/python/convert.cpp", "void f() {}\n", "is named but takes no pointer"),
    ("csrc/other/a.cpp", "\n", "csrc/other is not a layer"),
    (
        CPP,
        "namespace {\nint known(const T& x,\n          int n = 0) {\n",
        "known(const T&, int) stands in a.cpp",
    ),
    (CPP, "namespace {\nstruct Known {\n", "Known stands in a.cpp, too"),
    (NN, "from clew.optim import sgd\n", "nn.a must not import optim"),
    (NN, "from ..optim import sgd\n", "nn.a must not import optim"),
    ("src/clew/nn/__init__.py", "from .. import optim\n", "nn must not import optim"),
    ("src/clew/_a.py", "try:\n    import clew.nn\nexcept E:\n    f\n", "_a must not import nn"),
    (NN, "def f():\n    from clew import optim\n", "nn.a must not import optim"),
    (NN, "import clew\nf = lambda: clew.optim.sgd\n", "nn.a must not import optim.sgd"),
    ("tests/a.py", "x\n" * 1001, "1001 lines"),
    ("src/clew/a.py", "x" * 101, "101 columns"),
]
FINE = [
    (CPP, '#include "tensor/t.h"\n#include <vector>\n'),
    (
        CPP,
        "namespace {\nint known(const T& x) {\n}  // namespace\nint known(const T& y, int m) {\n",
    ),
    (CPP, "void f_rows(Vjp& c) {\n  g(c.in[0].nd());\n}\n    .cpu = f_rows,\n    .vjp = g,\n"),
    ("src/clew/optim/a.py", "from clew.nn import linear\nfrom clew import nn\nimport numpy\n"),
    ("src/clew/nn/parallel/a.py", "from clew.optim import sgd\n"),
    (NN, "if TYPE_CHECKING:\n    from clew import optim\n"),
    ("tests/a.py", "x\n" * 1000),
]


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools/check_layers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(tmp_path, "csrc/tensor/t.h", "")
    own = "namespace {\nint known(const T& y, int m) {\n}\nstruct Known {\n};\n}  // namespace\n"
    write(tmp_path, "csrc/ops/known.cpp", own)
    for name in ("nn/__init__", "nn/linear", "optim/__init__", "optim/sgd"):
        write(tmp_path, f"src/clew/{name}.py", "")
    return tmp_path


@pytest.mark.parametrize(("name", "text", "finding"), FOREIGN)
def test_finds(checker: ModuleType, tree: Path, name: str, text: str, finding: str) -> None:
    assert checker.findings(tree) == []
    write(tree, name, text)
    found = checker.findings(tree)
    assert len(found) == 1 and finding in found[0], found


def test_later_lists_what_goes_upward_inside_functions(checker: ModuleType, tree: Path) -> None:
    (module, target), *_ = [pair for pair in checker.LATER if pair[0].startswith("nn.")]
    name = f"src/clew/{module.replace('.', '/')}.py"
    write(tree, f"src/clew/{target.replace('.', '/')}.py", "")
    write(tree, name, f"def f():\n    import clew.{target}\n")
    assert checker.findings(tree) == []
    write(tree, name, f"import clew.{target}\n")
    early, unused = checker.findings(tree)
    assert f"{name}:1: {module} must not import {target}" in early
    assert f"{module} no longer needs {target}" in unused


@pytest.mark.parametrize(("name", "text"), FINE)
def test_accepts(checker: ModuleType, tree: Path, name: str, text: str) -> None:
    write(tree, name, text)
    assert checker.findings(tree) == []


# Files that are imported in a circle, and files that seem to be.
LATE = "def f():\n    "
CIRCLES = [
    {"clew/_a.py": "from clew import _b\n", "clew/_b.py": "import clew._a\n"},
    {"clew/_a.py": LATE + "from clew._b import x\n", "clew/_b.py": LATE + "from . import _a\n"},
    {"clew/__init__.py": "from clew import _a\n", "clew/_a.py": LATE + "import clew\n"},
    {"clew/__init__.py": "from clew import _a\n", "clew/_a.py": "from clew import x\n"},
    {"clew/_a.py": LATE + "m.import_module('clew._b')\n", "clew/_b.py": "from clew import _a\n"},
    {"clew/n/__init__.py": "from .a import x\n", "clew/n/a.py": "from . import y\n"},
    {
        "clew/n/a.py": LATE + "import clew\n    clew.o.b.f(1)\n",
        "clew/o/b.py": "from clew.n import a\n",
    },
    {"clew/n/a.py": "from ..o.b import x\n", "clew/o/b.py": "from ..n import a\n"},
]
NO_CIRCLES = [
    {"clew/__init__.py": "from clew import _C, _a\n", "clew/_a.py": "from clew import _C\n"},
    {"clew/__init__.py": "from clew import _a\n", "clew/_a.py": "from clew._C import x\n"},
    {"clew/__init__.py": "\n", "clew/_a.py": "import clew\n"},
    {
        "clew/_a.py": "from clew import _b\n",
        "clew/_b.py": "if TYPE_CHECKING:\n    from clew import _a\n",
    },
    {
        "clew/n/a.py": "import clew\ndef f(x: clew.o.b.C) -> clew.o.b.C:\n    g(x).o.b\n",
        "clew/o/b.py": "from clew.n import a\n",
    },
    {"clew/n/a.py": "from .b import x\n", "clew/n/b.py": "from clew.n.c import y\n"},
]


@pytest.mark.parametrize("files", CIRCLES)
def test_finds_circles(checker: ModuleType, tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(tmp_path, f"src/{name}", text)
    (found,) = checker.circle_findings(checker.package_needs(tmp_path))
    assert "a circle of imports: clew" in found and found.count(",") == 1


@pytest.mark.parametrize("files", NO_CIRCLES)
def test_finds_no_circle(checker: ModuleType, tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(tmp_path, f"src/{name}", text)
    assert list(checker.circle_findings(checker.package_needs(tmp_path))) == []


def test_circles_are_told_apart(checker: ModuleType) -> None:
    needs = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d", "f"}, "f": set()}
    assert checker.circles(needs) == [["a", "b", "c"], ["d", "e"]]


FAMILIES_IN_A_CIRCLE = [
    # Three folders; two, through a layer's own sources.
    {"ops/a/x.cpp": "ops/b/x.h", "ops/b/x.h": "ops/c/x.h", "ops/c/y.cpp": "ops/a/y.h"},
    {"ops/a/x.cpp": "ops/b/x.h", "ops/b/y.cpp": "ops/a/y.h"},
]
FAMILIES_IN_ORDER = [
    # The layer's own headers are below its families, its own sources above them.
    {"ops/list.cpp": "ops/a/x.h", "ops/a/x.h": "ops/op.h"},
    {"ops/a/x.cpp": "ops/b/x.h", "ops/a/y.cpp": "ops/b/y.h"},
]


def write_families(root: Path, includes: dict[str, str]) -> None:
    for target in includes.values():
        write(root, f"csrc/{target}", "")
    for name, target in includes.items():
        write(root, f"csrc/{name}", f'#include "{target}"\n')


@pytest.mark.parametrize("includes", FAMILIES_IN_A_CIRCLE)
def test_finds_families_in_a_circle(
    checker: ModuleType, tmp_path: Path, includes: dict[str, str]
) -> None:
    write_families(tmp_path, includes)
    (found,) = checker.family_findings(tmp_path)
    assert "a circle of includes: ops/a, ops/b" in found


@pytest.mark.parametrize("includes", FAMILIES_IN_ORDER)
def test_finds_no_circle_of_families(
    checker: ModuleType, tmp_path: Path, includes: dict[str, str]
) -> None:
    write_families(tmp_path, includes)
    assert list(checker.family_findings(tmp_path)) == []


def test_this_tree(checker: ModuleType) -> None:
    found = checker.findings(ROOT)
    assert not found, "\n".join(found)


def test_no_two_test_files_have_one_name():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))  # pytest imports one module of a name


def test_thread_local_variables_of_the_module_are_few():
    """The loader has room for some 1600 bytes of them, for all libraries of a process together."""
    data = Path(clew._C.__file__).read_bytes()
    if data[:5] != b"\x7fELF\x02":
        pytest.skip("not a 64-bit ELF module")
    start, size, count = (
        *struct.unpack_from("<Q", data, 32),
        *struct.unpack_from("<HH", data, 54),
    )
    headers = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
    pt_tls = 7
    assert sum(h[6] for h in headers if h[0] == pt_tls) <= 512
