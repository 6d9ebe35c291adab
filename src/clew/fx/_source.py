"""The Python source of a traced program: the names in it, and its lines."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import TYPE_CHECKING, Any

import clew
from clew._base import dtypes as _dtypes
from clew.fx.node import Node, public_name

if TYPE_CHECKING:
    from clew.fx.graph import Graph

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "gt": ">",
    "ge": ">=",
}
_PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
_LETTERS = re.compile(r"[^0-9a-zA-Z_]+")


class _Names:
    """Names that no two steps of a graph share."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._counts: dict[str, int] = {}

    def fresh(self, candidate: str) -> str:
        name = _LETTERS.sub("_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        base, number = name, 0
        found = re.match(r"(.*)_(\d+)$", name)
        if found and name in self.used:
            base, number = found[1], int(found[2])
        number = self._counts.get(base, number)
        while name in self.used or keyword.iskeyword(name) or hasattr(builtins, name):
            number += 1
            name = f"{base}_{number}"
        self._counts[base] = number
        self.used.add(name)
        return name


class _Writer:
    """Writes one function."""

    def __init__(self, graph: Graph, root: str) -> None:
        self.graph = graph
        self.root = root
        self.globals: dict[str, Any] = {}
        self.names = _Names()
        self.names.used |= graph._names.used | {root}

    def write(self) -> tuple[str, dict[str, Any]]:
        """The source, and the global names that it needs."""
        parameters, body = [], []
        last_use: dict[Node, Node] = {}
        for node in self.graph.nodes:
            for arg in node.all_input_nodes:
                last_use[arg] = node
        done: dict[Node, list[str]] = {}
        for value, user in last_use.items():
            if user.op != "output":
                done.setdefault(user, []).append(value.name)
        returned = False
        for node in self.graph.nodes:
            if node.op == "placeholder":
                default = f" = {self.value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{default}")
                given = node.target.lstrip("*")
                if given != node.name:  # callers pass it by the name that it has
                    body.append(f"{node.name} = {given}")
                continue
            if node.op == "output":
                body.append(f"return {self.value(node.args[0])}")
                returned = True
                continue
            line = f"{node.name} = {self.expression(node)}"
            unused = "".join(f"{name} = " for name in done.get(node, ()))
            body.append(f"{line};  {unused}None" if unused else line)
        if not returned:
            body.append("return None")
        head = ", ".join([self.root, *parameters])
        source = f"\n\n\ndef forward({head}):\n    " + "\n    ".join(body) + "\n"
        return source, self.globals

    def expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return self.attribute(node.target)
        given = [self.value(a) for a in node.args]
        named = [f"{k} = {self.value(v)}" for k, v in node.kwargs.items()]
        if node.op == "call_module":
            return f"{self.attribute(node.target)}({', '.join(given + named)})"
        if node.op == "call_method":
            return f"{given[0]}.{node.target}({', '.join(given[1:] + named)})"
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", "") in ("_operator", "operator") and not named:
            if name in _INFIX and len(given) == 2:
                return f"{given[0]} {_INFIX[name]} {given[1]}"
            if name in _PREFIX and len(given) == 1:
                return f"{_PREFIX[name]}{given[0]}"
            if name == "getitem" and len(given) == 2:
                return f"{given[0]}[{self.index(node.args[1])}]"
        if target is getattr and len(given) == 2 and isinstance(node.args[1], str):
            if node.args[1].isidentifier():
                return f"{given[0]}.{node.args[1]}"
        return f"{self.object(target)}({', '.join(given + named)})"

    def index(self, index: Any) -> str:
        return self.value(index)

    def attribute(self, path: str) -> str:
        out = self.root
        for part in path.split("."):
            out = f"{out}.{part}" if part.isidentifier() else f'getattr({out}, "{part}")'
        return out

    def of_clew(self, name: str) -> str | None:
        """A name of the package's; None where the graph has a step of the package's name."""
        if _dtypes.home in self.graph._names.used:
            return None
        self.names.used.add(_dtypes.home)
        self.globals[_dtypes.home] = clew
        return f"{_dtypes.home}.{name}"

    def object(self, value: Any) -> str:
        """A global name for a function, class or other object."""
        if getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return str(getattr(value, "__name__"))  # noqa: B009
        public = public_name(value)
        known = public and self.of_clew(public)
        if known:
            return known
        module = getattr(value, "__module__", None) or ""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "") or "constant"
        if module.startswith("clew"):
            module = "clew"
        hint = f"{module}_{name}".replace(".", "_")
        for known, other in self.globals.items():
            if other is value:
                return known
        fresh = self.names.fresh(hint)
        self.globals[fresh] = value
        return fresh

    def value(self, a: Any) -> str:
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            inner = ", ".join(map(self.value, a))
            if hasattr(a, "_fields"):
                return f"{self.object(type(a))}({inner})"
            return f"({inner},)" if len(a) == 1 else f"({inner})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            inner = ", ".join(f"{k!r}: {self.value(v)}" for k, v in a.items())
            return "{" + inner + "}"
        if isinstance(a, slice):
            inner = ", ".join(map(self.value, (a.start, a.stop, a.step)))
            return f"slice({inner})"
        if a is None or a is ... or isinstance(a, (bool, int, str, bytes)):
            return repr(a)
        if isinstance(a, float):
            return repr(a) if math.isfinite(a) else f'float("{a}")'
        if isinstance(a, clew.dtype):
            return self.of_clew(a.name) or self.object(a)
        if isinstance(a, complex):
            return f"({a!r})" if math.isfinite(abs(a)) else self.object(a)
        return self.object(a)
