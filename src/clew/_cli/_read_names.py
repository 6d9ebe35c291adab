"""The names of torch that a Python source uses, read without running it, and which clew lacks."""

from __future__ import annotations

import ast
import collections
import importlib
import sys
import types
import warnings
from typing import Any

NEEDED, OPTIONAL, REFUSED, CALLED = "needed", "optional", "refused", "called"


_GUARDS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"})
# What took the place of names that PyTorch itself no longer has.
_REPLACED = {
    "torch._six": "PyTorch has removed it: use str, int, float('inf') and collections.abc",
    "torch.gels": "PyTorch has removed it: use torch.linalg.lstsq",
    "torch.gesv": "PyTorch has removed it: use torch.linalg.solve",
    "torch.ifft": "PyTorch has removed it: use torch.fft.ifft",
    "torch.irfft": "PyTorch has removed it: use torch.fft.irfft",
    "torch.legacy": "PyTorch has removed it: use torch.nn",
    "torch.onnx.dynamo_export": "PyTorch has removed it: use torch.onnx.export",
    "torch.potrf": "PyTorch has removed it: use torch.linalg.cholesky",
    "torch.potrs": "PyTorch has removed it: use torch.cholesky_solve",
    "torch.rfft": "PyTorch has removed it: use torch.fft.rfft",
    "torch.trtrs": "PyTorch has removed it: use torch.linalg.solve_triangular",
    "torch.utils.ffi": "PyTorch has removed it: use torch.library.custom_op",
    "torch.utils.serialization": "PyTorch has removed it: use torch.save and torch.load",
    "torch.utils.trainer": "PyTorch has removed it: write the loop",
}
# Parts that clew lacks as a whole, by the beginnings of their names.
_PARTS = {
    "torch._dynamo": "there is no such compiler here; programs run as they are",
    "torch._inductor": "there is no such compiler here; programs run as they are",
    "torch.ao.quantization": "only quantize_dynamic is part of clew",
    "torch.distributed": "docs/distributed.md says what there is",
    "torch.fake_quantize": "there are no quantized tensors; see torch.ao.quantization",
    "torch.jit": "scripts run as Python: leave the setting out; docs/export.md says what there is",
    "torch.nn.intrinsic": "only torch.ao.quantization.quantize_dynamic is part of clew",
    "torch.nn.qat": "only torch.ao.quantization.quantize_dynamic is part of clew",
    "torch.quantization": "only quantize_dynamic is part of clew",
    "torch.quantize": "there are no quantized tensors; see torch.ao.quantization",
    "torch.testing._internal": "PyTorch's own tests are not part of clew; use torch.testing",
}
_GPU_HOMES = ("torch.cuda", "torch.xpu", "torch.mps", "torch.mtia", "torch.hip", "torch.npu")


class _Names:
    """Which names of torch clew has, asked of clew itself."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self._refusals: dict[str, str | None] = {}

    def refusal(self, name: str) -> str | None:
        """Why a name that clew has cannot be called; None for others."""
        if name not in self._refusals:
            self._refusals[name] = self._why(name)
        return self._refusals[name]

    def _why(self, name: str) -> str | None:
        value: Any = importlib.import_module("torch")
        for part in name.split(".")[1:]:
            try:
                value = getattr(value, part)
            except Exception:
                return None
        why = vars(value).get("_why") if isinstance(value, type) else None
        return why if isinstance(why, str) else None

    def remedy(self, name: str) -> str | None:
        """What to do about a name that clew lacks; None for one that it has."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> str | None:
        parts = name.split(".")
        value: Any = importlib.import_module("torch")
        for depth, part in enumerate(parts[1:], 1):
            if part.startswith("__"):
                return None
            home = ".".join(parts[:depth])
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = getattr(value, part)
            except AttributeError:
                try:
                    value = importlib.import_module(f"{home}.{part}")
                except ImportError:
                    return self._advice(home, part, value)
            except Exception:
                return None  # it is there, and says by itself what it lacks
            if home == "torch" and part == "ops":
                return None  # filled by whoever registers operations
            if not isinstance(value, types.ModuleType | type):
                return None  # what an object has is not known before it is there
            why = getattr(value, "_why", None)
            if isinstance(value, type) and isinstance(why, str):
                return None  # may be imported; says why when it is called
        return None

    def _advice(self, home: str, part: str, value: Any) -> str:
        from clew._namespace import nearest_name

        name = f"{home}.{part}"
        if name in _REPLACED:
            return _REPLACED[name]
        if name.startswith(_GPU_HOMES):
            return "needs a GPU: guard it with torch.cuda.is_available()"
        near = nearest_name(part, dir(value))
        if near:
            return f"nearest: {home}.{near}"
        for begin, advice in _PARTS.items():
            if name.startswith(begin):
                return advice
        return "clew has nothing like it"


def _text(node: ast.expr) -> str | None:
    """`a.b.c` of a chain of attributes of a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _guarded(handlers: list[ast.ExceptHandler]) -> bool:
    for handler in handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if any((_text(k) or "").rpartition(".")[2] in _GUARDS for k in kinds):
            return True
    return False


def _asks(test: ast.expr) -> bool:
    """Whether a condition asks for a name, a version or a device."""
    for node in ast.walk(test):
        word = ""
        if isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.Attribute):
            word = node.attr
        word = word.lower()
        if word in ("hasattr", "find_spec") or "version" in word or "available" in word:
            return True
    return False


def _bound(function: Any) -> set[str]:
    """Names that a function binds by itself, so that they are not the module's."""
    args = function.args
    names = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    names.update(a.arg for a in (args.vararg, args.kwarg) if a is not None)
    if isinstance(function, ast.Lambda):
        return names
    shared: set[str] = set()
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            shared.update(node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)  # what is inside binds names of its own
        elif not isinstance(node, ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return names - shared


def _bound_once(module: ast.Module) -> frozenset[str]:
    """Names that a module assigns in one place only, and none of its functions."""
    counts: collections.Counter[str] = collections.Counter()
    for node in ast.walk(module):
        if isinstance(node, ast.Global):
            counts.update(node.names * 2)
    todo: list[ast.AST] = list(module.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] += 1
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return frozenset(name for name, count in counts.items() if count == 1)


class _Reader(ast.NodeVisitor):
    """Reads one module: names of torch that it uses, and modules that it imports."""

    def __init__(self, package: str, own: bool, torch: bool) -> None:
        self.package = package
        self.own = own  # of the program: what its functions do counts
        self._functions = own or torch  # else there is nothing in them to report
        self.uses: list[tuple[str, int, str]] = []
        self.calls: list[tuple[str, int, str]] = []
        self._once: frozenset[str] = frozenset()  # names that the module binds in one place only
        self.imports: list[tuple[str, str]] = []  # module, kind
        self._scopes: list[dict[str, str | None]] = [{}]
        self._guard = False
        self._inside = 0  # functions around
        self._classes = 0
        self._late_annotations = False  # annotations are not evaluated

    def _kind(self) -> str:
        if self._inside and not self.own:
            return CALLED
        return OPTIONAL if self._guard else NEEDED

    def _meaning(self, name: str) -> str | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _use(self, name: str, node: Any) -> None:
        self.uses.append((name, node.lineno, self._kind()))

    def visit_Module(self, node: ast.Module) -> None:
        self._once = _bound_once(node)
        self._late_annotations = sys.version_info >= (3, 14) or any(
            isinstance(n, ast.ImportFrom)
            and n.module == "__future__"
            and any(alias.name == "annotations" for alias in n.names)
            for n in node.body
        )
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """`F = torch.nn.functional` names a module as an import does."""
        self.generic_visit(node)
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        if (
            self._inside
            or self._classes
            or (isinstance(node.value, ast.Constant) and node.value.value is None)
        ):
            return  # names of functions are known already; `torch = None` is there for no torch
        root, dot, rest = (_text(node.value) or "").partition(".")
        meaning = self._meaning(root)
        for name in names:
            if meaning is not None and name in self._once and name not in self._scopes[-1]:
                self._scopes[-1][name] = f"{meaning}{dot}{rest}"
            elif name in self._scopes[-1]:
                self._scopes[-1][name] = None  # it means one thing here and another there

    def _visit_annotation(self, note: ast.expr) -> None:
        if not self._late_annotations:
            self.visit(note)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not self._inside:  # those of variables of functions are never looked at
            self._visit_annotation(node.annotation)
        for part in filter(None, [node.target, node.value]):
            self.visit(part)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes += 1
        self.generic_visit(node)
        self._classes -= 1

    def visit_Call(self, node: ast.Call) -> None:
        chain = _text(node.func)
        if chain is not None:
            root, dot, rest = chain.partition(".")
            meaning = self._meaning(root)
            if meaning is not None:
                self.calls.append((f"{meaning}{dot}{rest}", node.lineno, self._kind()))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.split(".")[0] == "torch":
                self._use(alias.name, node)
                meaning = alias.name if alias.asname else "torch"
                self._scopes[-1][alias.asname or "torch"] = meaning
            else:
                self._scopes[-1][alias.asname or alias.name.split(".")[0]] = None
                self.imports.append((alias.name, self._kind()))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            base = self.package.split(".") if self.package else []
            base = base[: len(base) - node.level + 1]
            module = ".".join([*base, *filter(None, [module])])
        for alias in node.names:
            if not node.level and module.split(".")[0] == "torch":
                name = module if alias.name == "*" else f"{module}.{alias.name}"
                self._use(name, node)
                self._scopes[-1][alias.asname or alias.name] = name
            else:
                self._scopes[-1][alias.asname or alias.name] = None
                if alias.name != "*":
                    self.imports.append((f"{module}.{alias.name}", self._kind()))
        if module and module.split(".")[0] != "torch":
            self.imports.append((module, self._kind()))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = _text(node)
        if chain is None:
            self.generic_visit(node)
            return
        root, _, rest = chain.partition(".")
        meaning = self._meaning(root)
        if meaning is not None and isinstance(node.ctx, ast.Load):
            self._use(f"{meaning}.{rest}", node)

    def visit_Try(self, node: Any) -> None:
        before = self._guard
        self._guard = before or _guarded(node.handlers)
        for part in node.body:
            self.visit(part)
        # What takes the place of a missing name, and what follows once it is there.
        for part in [*node.handlers, *node.orelse]:
            self.visit(part)
        self._guard = before
        for part in node.finalbody:
            self.visit(part)

    visit_TryStar = visit_Try

    def _visit_if(self, node: ast.If | ast.IfExp) -> None:
        if (_text(node.test) or "").rpartition(".")[2] == "TYPE_CHECKING":
            body: Any = node.body
            # Only names for annotations: nothing is imported, so nothing is used.
            kept = self.uses[:], self.imports[:]
            for part in body if isinstance(body, list) else [body]:
                self.visit(part)
            self.uses, self.imports = kept
            parts: Any = node.orelse
        else:
            parts = [node.body, node.orelse]
        before = self._guard
        self.visit(node.test)
        self._guard = before or _asks(node.test)
        for part in parts:
            for one in part if isinstance(part, list) else [part]:
                self.visit(one)
        self._guard = before

    visit_If = visit_IfExp = _visit_if

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        before = self._guard
        for value in node.values:
            self.visit(value)
            self._guard = self._guard or _asks(value)
        self._guard = before

    def _visit_function(self, node: Any) -> None:
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        if not isinstance(node, ast.Lambda):
            for part in node.decorator_list:
                self.visit(part)
            arguments = (a for a in ast.walk(node.args) if isinstance(a, ast.arg))
            for note in filter(None, [node.returns, *(a.annotation for a in arguments)]):
                self._visit_annotation(note)
        if not self._functions:
            return
        self._scopes.append(dict.fromkeys(_bound(node)))
        self._inside += 1
        for part in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(part)
        self._inside -= 1
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function
