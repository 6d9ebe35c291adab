"""Writes the type stubs of the native module and of the package's top level from the table of
operations.

Run after building: `PYTHONPATH=src python tools/make_stubs.py` (with --check: only compare, for
tests).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path

import clew
from clew import _C, _namespace, _tensor

PACKAGE = Path(clew.__file__).parent
HEADER = "# Made by tools/make_stubs.py from the table of operations; not edited by hand.\n\n"
TYPES = {
    "Tensor": "Tensor",
    "Operand": "Tensor | Number",
    "int": "int",
    "bool": "_bool",
    "float": "_float",
    "Scalar": "Number",
    "str": "str",
    "dtype": "_dtype",
    "Generator": "Generator",
}
PARAMETER = re.compile(
    r"(?P<type>\w+)(?P<opt1>\?)?(?P<list>\[\d*\])?(?P<opt2>\?)?(?P<var>\*)? "
    r"(?P<name>\w+)(=(?P<default>.+))?$"
)


def split(text: str) -> list[str]:
    """The parameters of a signature, split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "[(" or -(c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in (*parts, text[start:]) if p.strip()]


def parameters(signature: str, method: bool, inplace: bool) -> str:
    """The parameter list of one overload."""
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    out, star = [], False
    for k, text in enumerate(split(inside)):
        if text == "*":
            out.append("*")
            star = True
            continue
        m = PARAMETER.match(text)
        assert m, (signature, text)
        if method and k == 0:
            out.append("self")
            continue
        kind = TYPES[m["type"]]
        optional = bool(m["opt1"] or m["opt2"])
        if m["list"] and m["type"] == "Tensor":
            kind = "Sequence[Tensor]"
        elif m["list"]:
            kind = "_int | Sequence[_int]"
        elif kind == "int":
            kind = "_int"
        if m["var"] and not star:
            out.append(f"*{m['name']}: _int | Sequence[_int]")
            star = True
            continue
        default = "" if m["default"] is None else " = ..."
        out.append(f"{m['name']}: {kind}{' | None' if optional else ''}{default}")
    if not inplace and not method:
        out += ([] if star else ["*"]) + ["out: Any = ..."]
    return ", ".join(out)


def result(signature: str) -> str:
    """The return type of one overload."""
    returns = signature[signature.rindex("->") + 2 :].strip()
    if returns == "Tensor":
        return "Tensor"
    if returns == "Tensor[]":
        return "tuple[Tensor, ...]"
    return (
        "Any"
        if re.search(r"Tensor \w", returns)
        else f"tuple[{', '.join(['Tensor'] * returns.count('Tensor'))}]"
    )


def op_stub(name: str, f: object, indent: str, method: bool) -> list[str]:
    """The definition of an op, one overload a signature."""
    inplace = name.endswith("_")
    seen: list[str] = []
    for signature in f.signatures:  # type: ignore[attr-defined]
        first = signature[signature.index("(") + 1 :]
        if method and not first.startswith(("Tensor", "Operand")):
            continue
        line = f"def {name}({parameters(signature, method, inplace)}) -> {result(signature)}: ..."
        if line not in seen:
            seen.append(line)
    decorator = [f"{indent}@overload"] if len(seen) > 1 else []
    return [text for line in seen for text in (*decorator, f"{indent}{line}")]


def python_stub(name: str, f: object, indent: str) -> str:
    """The definition of a function written in Python."""
    try:
        signature = inspect.signature(f)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return (
            f"{indent}def {name}({'self, ' if indent else ''}*args: Any, **kwargs: Any) -> Any: ..."
        )
    shown = []
    star = False
    for p in signature.parameters.values():
        annotation = "" if p.name == "self" else ": Any"
        if p.kind is p.VAR_POSITIONAL:
            shown.append(f"*{p.name}: Any")
            star = True
        elif p.kind is p.VAR_KEYWORD:
            shown.append(f"**{p.name}: Any")
        else:
            if p.kind is p.KEYWORD_ONLY and not star:
                shown.append("*")
                star = True
            shown.append(f"{p.name}{annotation}{'' if p.default is p.empty else ' = ...'}")
    text = signature.return_annotation
    plain = (
        text
        if isinstance(text, str) and text in ("Tensor", "bool", "int", "str", "None")
        else "Any"
    )
    plain = {"bool": "_bool", "int": "_int"}.get(plain, plain)
    return f"{indent}def {name}({', '.join(shown)}) -> {plain}: ..."


PREAMBLE = """from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

_bool = bool
_int = int
_float = float
Number = _bool | _int | _float | complex

"""

DTYPE = """class dtype:
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    name: str
    def to_complex(self) -> dtype: ...
    def to_real(self) -> dtype: ...

class device:
    type: str
    index: _int | None
    def __init__(self, type: str | device, index: _int | None = ...) -> None: ...

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

_dtype = dtype
_device = device

class OutOfMemoryError(RuntimeError, MemoryError): ...

class ModuleBase:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Deferring:
    __wrapped__: Any
    def __init__(self, function: Any, least: _int) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class Node:
    next_functions: tuple[tuple[Any, _int], ...]
    metadata: dict[Any, Any]
    variable: Tensor
    @property
    def saved_tensors(self) -> tuple[Any, ...]: ...
    _input_metadata: list[Any]
    def name(self) -> str: ...
    register_hook: Any
    register_prehook: Any
    location: Any
    module: Any
    module_type: Any
    _place: tuple[Any, ...] | None
    _callers: list[tuple[Any, ...]]
    _cut: tuple[Any, ...] | None
    def __call__(self, *grads: Any) -> Any: ...
    def _hooks_dict(self, pre: _bool) -> Any: ...
    def _sequence_nr(self) -> _int: ...
    def _release_saved(self) -> None: ...

"""

BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def tensor_class() -> list[str]:
    """The Tensor class: attributes, operators, ops, methods."""
    lines = ["class Tensor:", "    def __init__(self, *args: Any, **kwargs: Any) -> None: ..."]
    attributes = {
        "shape": "Size",
        "dtype": "_dtype",
        "device": "_device",
        "ndim": "_int",
        "requires_grad": "_bool",
        "is_leaf": "_bool",
        "grad": "Tensor | None",
        "_grad": "Tensor | None",
        "grad_fn": "Any",
        "data": "Tensor",
        "_version": "_int",
        "_base": "Tensor | None",
        "output_nr": "_int",
        "itemsize": "_int",
        "nbytes": "_int",
        "retains_grad": "_bool",
    }
    for name in _namespace._LAZY_METHODS:
        getattr(_C.Tensor, name)  # puts the function in its place
    for name in sorted(n for n in dir(_C.Tensor) if not n.startswith("__")):
        value = inspect.getattr_static(_C.Tensor, name)
        if isinstance(value, types.GetSetDescriptorType):
            lines.append(f"    {name}: {attributes.get(name, '_bool')}")
        elif isinstance(value, property):
            lines.append(f"    {name}: {'Any' if name == 'layout' else 'Tensor'}")
        elif type(value).__name__ == "OpMethod":
            lines += op_stub(name, value, "    ", True)
        elif isinstance(value, types.FunctionType):
            lines.append(python_stub(name, value, "    "))
        else:
            returns = {
                "item": "Any",
                "tolist": "Any",
                "numpy": "Any",
                "size": "Any",
                "stride": "Any",
                "backward": "None",
            }
            integers = (
                "dim",
                "ndimension",
                "numel",
                "nelement",
                "element_size",
                "data_ptr",
                "storage_offset",
            )
            kind = returns.get(name, "_int" if name in integers else "Any")
            if name.endswith("_") or name.startswith("new_") or name in ("detach", "as_subclass"):
                kind = "Tensor"
            if name.startswith("is_"):
                kind = "_bool"
            decorator = ["    @staticmethod"] if name == "_make_subclass" else []
            this = "" if decorator else "self, "
            lines += [*decorator, f"    def {name}({this}*args: Any, **kwargs: Any) -> {kind}: ..."]
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
    lines += [
        "    def __getitem__(self, key: Any) -> Tensor: ...",
        "    def __setitem__(self, key: Any, value: Any) -> None: ...",
        "    def __len__(self) -> _int: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...",
        "    def __bool__(self) -> _bool: ...",
        "    def __int__(self) -> _int: ...",
        "    def __float__(self) -> _float: ...",
        "    def __index__(self) -> _int: ...",
        "    def __hash__(self) -> _int: ...",
        "    def __deepcopy__(self, memo: Any) -> Tensor: ...",
        "    def __dlpack__(self, **kwargs: Any) -> Any: ...",
        "    def __dlpack_device__(self) -> tuple[_int, _int]: ...",
        "",
    ]
    return lines


def native_stub() -> str:
    """The text of _C.pyi."""
    lines = [*tensor_class(), "class Generator:"]
    for name in sorted(n for n in dir(_C.Generator) if not n.startswith("_")):
        value = inspect.getattr_static(_C.Generator, name)
        if callable(value):
            kind = "Generator" if name in ("manual_seed", "set_state") else "Any"
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> {kind}: ...")
        else:
            lines.append(f"    {name}: Any")
    lines += ["    def __init__(self, device: Any = ...) -> None: ...", ""]
    known = {
        "Tensor",
        "Generator",
        "dtype",
        "device",
        "Size",
        "OutOfMemoryError",
        "Deferring",
        "ModuleBase",
        "Node",
        "functions",
        "ops",
        "_operation_kinds",
    }
    for name in sorted(dir(_C)):
        value = getattr(_C, name)
        if name in known or name.startswith("__"):
            continue
        if isinstance(value, _C.dtype):
            lines.append(f"{name}: dtype")
        elif isinstance(value, _C.Generator):
            lines.append(f"{name}: Generator")
        elif callable(value):
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
    lines += ["functions: dict[str, Any]", "ops: Any", "_operation_kinds: dict[str, str]", ""]
    return HEADER + PREAMBLE + DTYPE + "\n".join(lines)


def package_stub() -> str:
    """The text of __init__.pyi."""
    lines = [
        "from clew._C import dtype as _dtype",
        "from clew import autograd as autograd, random as random",
        *(
            f"import {path} as {name}"
            if "." not in path
            else f"from {path.rpartition('.')[0]} import {path.rpartition('.')[2]} as {name}"
            for name, path in sorted(_namespace._LAZY_MODULES.items())
            if importlib.util.find_spec(path)
        ),
        *(f"from {path} import {name} as {name}" for name, path in _namespace._LAZY_NAMES.items()),
        "from clew.autograd.grad_mode import enable_grad as enable_grad, inference_mode as "
        "inference_mode",
        "from clew.autograd.grad_mode import no_grad as no_grad, set_grad_enabled as "
        "set_grad_enabled",
    ]
    native = sorted(
        n
        for n in dir(_C)
        if not n.startswith("_") and n in vars(clew) and n not in ("ops", "functions")
    )
    native = [n for n in native if n not in _C.functions]
    dtypes = ("bool", "float", "int")
    sources = [importlib.import_module(path) for path in _namespace._SOURCES]
    made = {name for module in sources for name in module.__all__}
    tensors = {
        n
        for n in native
        if callable(getattr(_C, n)) and n in made and not isinstance(getattr(_C, n), type)
    }
    lines += [
        f"from clew._C import {n} as {n}" for n in native if n not in dtypes and n not in tensors
    ]
    names = [
        "float",
        "double",
        "half",
        "short",
        "int",
        "long",
        "cfloat",
        "cdouble",
        "layout",
        "memory_format",
        "strided",
        "contiguous_format",
        "preserve_format",
        "channels_last",
        "channels_last_3d",
        "finfo",
        "iinfo",
        "bool",
    ]
    lines += [f"from clew._dtypes import {n} as {n}" for n in names]
    lines += ["", "__version__: str", ""]
    for name in sorted(tensors):
        lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Tensor: ...")
    for module in sources:
        for name in module.__all__:
            value = getattr(module, name)
            if name in tensors or name in native or name in ("manual_seed",):
                continue
            if callable(value):
                lines.append(python_stub(name, value, ""))
    lines.append("def manual_seed(seed: Any) -> Generator: ...")
    for name in sorted(_C.functions):
        if "." not in name and vars(clew).get(name) is _C.functions[name]:
            lines += op_stub(name, _C.functions[name], "", False)
    lines += ["def __getattr__(name: str) -> Any: ...", ""]
    return (
        HEADER
        + PREAMBLE.replace("_bool = bool", "_bool = builtins.bool")
        .replace("_int = int", "_int = builtins.int")
        .replace("_float = float", "_float = builtins.float")
        .replace("| complex", "| builtins.complex")
        .replace("from typing", "import builtins\nfrom typing", 1)
        + "\n".join(lines)
    )


def main() -> int:
    """Writes both stubs, or with --check returns 1 when they differ from what stands."""
    assert _tensor
    status = 0
    for file, text in (
        (PACKAGE / "_C.pyi", native_stub()),
        (PACKAGE / "__init__.pyi", package_stub()),
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
