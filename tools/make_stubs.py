"""Writes the type stubs of the native module, of the package's top level and of the modules that
offer native operations, from the table of operations.

Run after building: `PYTHONPATH=src python tools/make_stubs.py` (with --check: only compare, for
tests).
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path

import clew
import stub_tables as tables
from clew import _C, _namespace
from clew._base import dtypes as _dtypes
from clew._ops import installer as _installer
from clew._ops.signatures import REQUIRED, parse
from clew._tensor import methods as _tensor

PACKAGE = Path(clew.__file__).parent
HEADER = "# Made by tools/make_stubs.py from the table of operations; not edited by hand.\n\n"
TYPES = {
    "Tensor": "Tensor",
    "Operand": "Tensor | Number",
    "int": "int",
    "bool": "_bool",
    "float": "_float",
    "Scalar": "Number",
    "str": "_str",
    "dtype": "_dtype",
    "Generator": "Generator",
}


def parameters(signature: str, method: bool, inplace: bool) -> str:
    """The parameter list of one overload."""
    out, star = [], False
    for k, p in enumerate(parse(signature)[0]):
        if p.named and not star:
            out.append("*")
            star = True
        if method and k == 0:
            out.append("self")
            continue
        word = p.kind.rstrip("?*[]0123456789")
        kind = TYPES[word]
        if "[" in p.kind:
            kind = "Sequence[Tensor]" if word == "Tensor" else "_int | Sequence[_int]"
        elif kind == "int":
            kind = "_int"
        if p.kind.endswith("*") and not star:
            out.append(f"*{p.name}: _int | Sequence[_int]")
            star = True
            continue
        default = "" if p.default is REQUIRED else " = ..."
        out.append(f"{p.name}: {kind}{' | None' if '?' in p.kind else ''}{default}")
    if not inplace and not method:
        several = signature[signature.rindex("->") :].count("Tensor") > 1
        kind = "Sequence[Tensor] | None" if several else "Tensor | None"
        out += ([] if star else ["*"]) + [f"out: {kind} = ..."]
    return ", ".join(out)


def fields(signature: str) -> tuple[str, ...]:
    """The names of an operation's results; none where it has one result or they have no names."""
    returns = signature[signature.rindex("->") + 2 :].strip()
    return tuple(re.findall(r"Tensor (\w+)", returns))


def class_of(names: tuple[str, ...]) -> str:
    """The class that stands for the named tuples of these fields in the stub."""
    return "_" + "".join(n.title() for n in names)


def result(signature: str) -> str:
    """The return type of one overload."""
    if names := fields(signature):
        return class_of(names)
    returns = signature[signature.rindex("->") + 2 :].strip()
    if returns == "Tensor":
        return "Tensor"
    if returns == "Tensor[]":
        return "builtins.tuple[Tensor, ...]"
    return f"builtins.tuple[{', '.join(['Tensor'] * returns.count('Tensor'))}]"


def defined(name: str, forms: list[str], indent: str) -> list[str]:
    """The definitions of a function, each form given as "(parameters) -> result"."""
    decorator = [f"{indent}@overload"] if len(forms) > 1 else []
    return [text for f in forms for text in (*decorator, f"{indent}def {name}{f}: ...")]


def op_stub(name: str, f: object, indent: str, method: bool) -> list[str]:
    """The definition of an op, one overload a signature."""
    seen: list[str] = []
    for signature in f.signatures:  # type: ignore[attr-defined]
        first = signature[signature.index("(") + 1 :]
        if method and not first.startswith(("Tensor", "Operand")):
            continue
        form = f"({parameters(signature, method, name.endswith('_'))}) -> {result(signature)}"
        if form not in seen:
            seen.append(form)
    return defined(name, seen, indent)


# What an annotation in the sources may be made of to mean the same in the stub.
KNOWN = set(
    """
    Tensor Any None Callable Sequence Iterator Generator Size Number _bool _int _float _str builtins
    tuple type _dtype _device list dict
    """.split()
)


def annotation(text: object) -> str:
    """An annotation of the sources in the stub's words; Any where it has none."""
    if not isinstance(text, str):
        return "Any"
    said = text.replace("_C.", "").replace("clew.", "")
    plain = {"bool", "int", "float", "str", "dtype", "device"}
    said = re.sub(r"\w+", lambda m: f"_{m[0]}" if m[0] in plain else m[0], said)
    said = re.sub(r"\b(tuple|type)\b", r"builtins.\1", said)
    return said if set(re.findall(r"\w+", said)) <= KNOWN else "Any"


BY_NAME = {
    "memory_format": "_memory_format | None",
    "device": "_DeviceLike | None",
    "dtype": "_dtype | None",
}


def python_form(f: object) -> str:
    """The form of a method written in Python."""
    shown = []
    star = False
    signature = inspect.signature(f)  # type: ignore[arg-type]
    for k, p in enumerate(signature.parameters.values()):
        said = "" if k == 0 else annotation(p.annotation)
        if said == "Any":
            said = BY_NAME.get(p.name, "Any")
        name = p.name if k else "self"
        if p.kind is p.VAR_POSITIONAL:
            shown.append(f"*{name}: {said}")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            shown.append(f"**{name}: {said}")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                shown.append("*")
                star = True
            shown.append(
                f"{name}{': ' if said else ''}{said}{'' if p.default is p.empty else ' = ...'}"
            )
    return f"({', '.join(shown)}) -> {annotation(signature.return_annotation)}"


def split_form(text: str) -> str:
    """A line of the tables as a form."""
    inside, _, returns = text.rpartition(" -> ")
    return f"({inside}) -> {returns}"


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def attribute(name: str) -> list[str]:
    """An attribute of Tensor; a property where it cannot be assigned."""
    kind = tables.ATTRIBUTES.get(name, "_bool")
    if isinstance(inspect.getattr_static(_C.Tensor, name), property) and name != "layout":
        kind = "Tensor"
    if name in tables.WRITABLE:
        return [f"    {name}: {kind}"]
    return ["    @property", f"    def {name}(self) -> {kind}: ..."]


def tensor_class() -> list[str]:
    """The Tensor class: attributes, operators, ops, methods."""
    lines = ["class Tensor:", *tables.SPECIAL_METHODS.splitlines()]
    for name in _namespace._LAZY_METHODS:
        getattr(_C.Tensor, name)  # puts the function in its place
    for name in sorted(n for n in dir(_C.Tensor) if not n.startswith("__")):
        value = inspect.getattr_static(_C.Tensor, name)
        if name in tables.METHODS:
            forms = [split_form(text) for text in tables.METHODS[name].split("\n")]
            if isinstance(value, staticmethod):
                lines.append("    @staticmethod")
            lines += defined(name, forms, "    ")
        elif isinstance(value, (types.GetSetDescriptorType, property, bool)):
            lines += attribute(name)
        elif type(value).__name__ == "OpMethod":
            lines += op_stub(name, value, "    ", True)
        elif isinstance(value, types.FunctionType):
            lines += defined(name, [python_form(value)], "    ")
        elif name.startswith("_"):
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...")
        else:
            raise SystemExit(f"stub_tables.METHODS lacks Tensor.{name}")
    for op in BINARY:
        for form in (f"__{op}__", f"__r{op}__", f"__i{op}__"):
            if hasattr(_C.Tensor, form):
                lines.append(f"    def {form}(self, other: Any) -> Tensor: ...")
    for op in ("lt", "le", "gt", "ge"):
        lines.append(f"    def __{op}__(self, other: Any) -> Tensor: ...")
    for op in ("eq", "ne"):
        lines.append(
            f"    def __{op}__(self, other: object) -> Tensor: ...  # type: ignore[override]"
        )
    for op in ("neg", "pos", "abs", "invert"):
        lines.append(f"    def __{op}__(self) -> Tensor: ...")
    return [*lines, ""]


def creation_forms(name: str, signature: str) -> list[str]:
    """The forms of a creation function, from its text signature and the tables."""
    inside = [p.strip() for p in signature.strip("()").split(",")]
    forms = []
    for front, dropped in tables.FORMS.get(name, (("", ()),)):
        out = [front] if front else []
        for p in inside:
            plain, _, default = p.partition("=")
            plain = plain.lstrip("*") if p not in ("*", "/") else p
            if plain in dropped:
                continue
            if p in ("*", "/"):
                out.append(p)
            elif p.startswith("*"):
                out.append(f"{p}: {tables.CREATION[plain]}")
            else:
                out.append(f"{plain}: {tables.CREATION[plain]}{' = ...' if default else ''}")
        forms.append(f"({', '.join(out)}) -> Tensor")
    return forms


def native_stub() -> str:
    """The text of _C.pyi."""
    lines = tensor_class()
    known = {
        "Tensor",
        "Generator",
        "dtype",
        "device",
        "Size",
        "OutOfMemoryError",
        "Asking",
        "Deferring",
        "GradMode",
        "ModuleBase",
        "Node",
        "functions",
        "ops",
        "_operation_kinds",
        "_operation_costs",
    }
    lazy = {n for n, path in _namespace._LAZY_NAMES.items() if path == "clew._C"}
    for name in sorted({*dir(_C), *lazy}):
        if name in known or name.startswith("__"):
            continue
        value = getattr(_C, name)
        text = getattr(value, "__text_signature__", None)
        if isinstance(value, _C.dtype):
            lines.append(f"{name}: dtype")
        elif isinstance(value, _C.Generator):
            lines.append(f"{name}: Generator")
        elif name in tables.FUNCTIONS:
            lines += defined(name, [tables.FUNCTIONS[name]], "")
        elif text and not name.startswith("_"):
            lines += defined(name, creation_forms(name, text), "")
        elif callable(value):
            assert name.startswith("_"), f"stub_tables.FUNCTIONS lacks {name}"
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
    lines += ["functions: dict[_str, Any]", "ops: Any", "_operation_kinds: dict[_str, _str]"]
    lines += ["_operation_costs: dict[_str, tuple[_str, _str | None, _str | None, _bool]]", ""]
    named = sorted({fields(s) for f in _C.functions.values() for s in f.signatures} - {()})
    classes = [
        f"class {class_of(names)}(NamedTuple):\n" + "".join(f"    {n}: Tensor\n" for n in names)
        for names in named
    ]
    text = "\n".join(classes) + "\n" + "\n".join(lines)
    return HEADER + tables.PREAMBLE + tables.CLASSES + text


def imported(name: str, path: str) -> str:
    """The line that gives a stub a name of another module."""
    return f"from {path} import {name} as {name}"


def result_classes() -> list[str]:
    """The lines that give a stub the classes of results with names."""
    named = sorted({fields(s) for f in _C.functions.values() for s in f.signatures} - {()})
    return [imported(class_of(names), "clew._C") for names in named]


def made_form(f: object) -> list[str]:
    """The forms of a function that a loop or another function made, which has no line of its own
    that a stub could import: one of a tensor, to a tensor; to two of them with `return_indices`.
    """
    inside, _, returns = python_form(f).rpartition(" -> ")
    first = next(iter(inspect.signature(f).parameters.values()))  # type: ignore[arg-type]
    taken = annotation(first.annotation)
    if taken == "Any":
        taken = "Tensor" if first.name == "input" else "Tensor | Number"
    inside = inside.replace("(self", f"({first.name}: {taken}", 1)
    pair = "builtins.tuple[Tensor, Tensor]"
    if f.__name__.endswith("_with_indices"):  # type: ignore[attr-defined]
        return [f"{inside} -> {pair}"]
    said = "return_indices: _bool = ..."
    if said in inside:
        given = inside.replace(said, "*, return_indices: Literal[True]")
        without = inside.replace(said, "return_indices: Literal[False] = ...")
        return [f"{without} -> Tensor", f"{given} -> {pair}", f"{inside} -> Any"]
    return [f"{inside} -> {'Tensor' if returns == 'Any' else returns}"]


def declared(path: str) -> set[str]:
    """The functions and classes that have a declaration of their own in a module."""
    tree = ast.parse(inspect.getsource(importlib.import_module(path)))
    return {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def module_stub(path: str) -> str:
    """The text of the stub of a module that offers native operations beside its own functions."""
    module = importlib.import_module(path)
    lines, own = [*result_classes(), imported("Tensor", "clew")], []
    lines.append("from clew._C import dtype as _dtype")
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or not callable(value) or value is _C.Tensor:
            continue
        if type(value).__name__ == "OpFunction":
            own += op_stub(name, value, "", False)
        elif name in declared(value.__module__):
            lines.append(imported(name, value.__module__))
        else:
            own += defined(name, made_form(value), "")
    return HEADER + tables.PREAMBLE + "\n".join(lines) + "\n\n" + "\n".join(own) + "\n"


def package_stub() -> str:
    """The text of __init__.pyi."""
    lines = result_classes()
    lines += ["from clew._C import dtype as _dtype"]
    lines += [
        f"import {path} as {name}" if "." not in path else imported(name, path.rpartition(".")[0])
        for name, path in sorted(_namespace._LAZY_MODULES.items())
        if importlib.util.find_spec(path)
    ]
    lines += [imported(n, "clew") for n in ("_C", "autograd", "random")]
    lines += [imported(name, path) for name, path in _namespace._LAZY_NAMES.items()]
    own: list[str] = []
    sources = [module.__name__ for module in _installer.sources()]
    made = {n: path for path in sources for n in _all(path)}
    public = {n: v for n, v in sorted(vars(clew).items()) if not n.startswith("_")}
    for name, value in public.items():
        if name in _namespace._LAZY_NAMES or isinstance(value, types.ModuleType):
            continue
        if name == "annotations":
            continue
        if isinstance(value, _C.dtype):
            own.append(f"{name}: _dtype")
        elif isinstance(value, float) or value is None:
            own.append(f"{name}: {'None' if value is None else '_float'}")
        elif value is getattr(_C, name, own):
            lines.append(imported(name, "clew._C"))
        elif value is _C.functions.get(name):
            own += op_stub(name, value, "", False)
        elif value is getattr(_dtypes, name, own):
            lines.append(imported(name, "clew._base.dtypes"))
        elif name in made:
            lines.append(imported(name, made[name]))
        else:
            lines.append(imported(name, value.__module__))
    own += ["__version__: _str", "__array_api_version__: _str", ""]
    return HEADER + tables.PREAMBLE + "\n".join(lines) + "\n\n" + "\n".join(own)


def _all(path: str) -> list[str]:
    """The public names of a module."""
    names: list[str] = importlib.import_module(path).__all__
    return names


def main() -> int:
    """Writes the stubs, or with --check returns 1 when they differ from what stands."""
    assert _tensor
    status = 0
    for file, text in (
        (PACKAGE / "_C.pyi", native_stub()),
        (PACKAGE / "__init__.pyi", package_stub()),
        (PACKAGE / "nn" / "functional" / "__init__.pyi", module_stub("clew.nn.functional")),
        (PACKAGE / "special" / "__init__.pyi", module_stub("clew.special")),
    ):
        if "--check" in sys.argv:
            if not file.exists() or file.read_text() != text:
                print(f"{file.name} is not up to date: run tools/make_stubs.py")
                status = 1
        else:
            file.write_text(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
