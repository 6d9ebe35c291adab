"""What the text of the program tells without doubt: results that are thrown away, names that are
bound anew, sizes in another order. Only files are read whose lines trained something."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import weakref
from collections.abc import Iterator
from typing import ClassVar

from clew._base import provenance as _provenance
from clew._base.statements import names_in
from clew._insight.debug.doctor.rule import Rule
from clew._insight.debug.doctor.run import Pass, Run
from clew._insight.debug.place import Place

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def parsed(file: str) -> ast.Module:
    """A file's syntax tree; an empty one where it is no Python."""
    return _tree("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=8)
def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # lines of a notebook, or another language
        return ast.Module([], [])


def within(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function's or module's own body: not in those inside of it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _SCOPES):
            yield from within(child)


@functools.lru_cache(maxsize=8)
def scopes(text: str) -> list[tuple[ast.AST, list[ast.AST]]]:
    """The module and all functions in it, each with what stands in its own body."""
    tree = _tree(text)
    found = [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]
    return [(scope, list(within(scope))) for scope in found]


# Of runs, the files that are read.
_files: weakref.WeakKeyDictionary[Run, list[str]] = weakref.WeakKeyDictionary()


def files(run: Run, seen: set[str]) -> list[str]:
    """The files of a program's models, and those that were seen."""
    if run not in _files:
        found = dict.fromkeys(sorted(seen))
        for kind in {type(m) for model in run.models for m in model.modules()}:
            code = getattr(inspect.unwrap(kind.forward), "__code__", None)
            if code is not None and not code.co_filename.startswith(_provenance._LIBRARY):
                found[code.co_filename] = None
        _files[run] = list(found)
    return _files[run]


class SourceRule(Rule):
    """A rule that reads the files that trained something, when all is over.

    Attributes:
        hint: what must stand in a file for it to be parsed.
    """

    hint: ClassVar[re.Pattern[str]]
    FEW = 3  # backwards of which the file is noted

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.seen: set[str] = set()
        self.left = self.FEW

    def backward(self, pass_: Pass) -> None:
        if self.left and self.run.optimizers:
            self.left -= 1
            if pass_.place is not None:
                self.seen.add(pass_.place.file)

    def finish(self) -> None:
        if not any(watched.steps for watched in self.run.optimizers.values()):
            return
        for file in files(self.run, self.seen):
            text = "".join(linecache.getlines(file))
            for scope, body in scopes(text) if self.hint.search(text) else ():
                self.look(file, scope, body)

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        """Reads a module's or function's own body."""


def statements(node: ast.AST) -> list[ast.stmt]:
    """The statements in a node, such as a loop or a function."""
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def overwriting(file: str, line: int) -> tuple[str, int] | None:
    """The variable that a line sets, and the statement after it that sets it to something else
    before anything has read it; None where there is no such statement."""
    for node in ast.walk(parsed(file)):
        for at, first in enumerate(body := statements(node)):
            if not isinstance(first, ast.Assign) or len(first.targets) != 1:
                continue
            target = first.targets[0]
            if not isinstance(target, ast.Name) or not (
                first.lineno <= line <= (first.end_lineno or first.lineno)
            ):
                continue
            for after in body[at + 1 :]:
                if not isinstance(after, ast.Assign):
                    if target.id in names_in(after):
                        return None
                elif target.id in names_in(after.value):
                    return None
                elif any(getattr(t, "id", "") == target.id for t in after.targets):
                    return target.id, after.lineno
    return None


# Methods and functions of tensors that do not change their arguments. No other class has methods
# of these names.
_METHODS = set(
    "clamp permute unsqueeze squeeze masked_fill detach contiguous relu sigmoid tanh softmax "
    "log_softmax requires_grad clamp_min clamp_max nan_to_num expand_as view_as".split()
)
_FUNCTIONS = set(
    "clamp clip relu sigmoid tanh softmax log_softmax dropout gelu leaky_relu normalize pad "
    "squeeze unsqueeze flatten interpolate max_pool2d avg_pool2d layer_norm silu elu".split()
)
_PREFIXES = {"F", "torch", "clew", "functional"}
_LAYERS = set(
    "Dropout Dropout1d Dropout2d Dropout3d ReLU LeakyReLU GELU SiLU ELU Tanh Sigmoid Softmax "
    "LogSoftmax LayerNorm GroupNorm RMSNorm MaxPool2d AvgPool2d Flatten Hardtanh Mish".split()
)
_CLOCKS = {"time", "perf_counter", "process_time", "timeit", "synchronize", "raises"}


class ThrownAway(SourceRule):
    mistake = "the result of an operation is thrown away"
    hint = re.compile(
        rf"^\s*([\w.]+\.({'|'.join(sorted(_METHODS | _FUNCTIONS))})|self\.\w+)\(", re.MULTILINE
    )

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        if self._measures(body):
            return
        last = scope.body[-1] if isinstance(scope, ast.Module) and scope.body else None
        tried = {id(n) for t in body if isinstance(t, ast.Try) for n in ast.walk(t)}
        for statement in body:
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                continue
            if statement is last or id(statement) in tried:
                continue  # a notebook shows what stands last
            what = self._wasted(statement.value, scope)
            if what is None:
                continue
            name, subject = what
            if not self._goes_on(statement, subject, body):
                continue
            self.find(
                Place(None, file, statement.lineno),
                f"{name}() leaves {subject} as it is and gives a new tensor, which line "
                f"{statement.lineno} does not keep; {subject} is used after it",
                f"keep it: {subject} = {ast.unparse(statement.value)}",
            )

    @staticmethod
    def _measures(body: list[ast.AST]) -> bool:
        """Whether a function measures time, or expects errors: results are not the point there."""
        called = [n.func for n in body if isinstance(n, ast.Call)]
        return any(getattr(f, "attr", getattr(f, "id", "")) in _CLOCKS for f in called)

    def _wasted(self, call: ast.Call, scope: ast.AST) -> tuple[str, str] | None:
        """The name of a call without side effects, and its variable; None for other calls."""
        if any(k.arg in ("out", "inplace") for k in call.keywords):
            return None
        func, first = call.func, call.args[0] if call.args else None
        if not isinstance(func, ast.Attribute):
            return None
        name, owner = func.attr, func.value
        prefix = ast.unparse(owner).rpartition(".")[2]
        if prefix in _PREFIXES:
            known = name in _FUNCTIONS and isinstance(first, ast.Name)
            return (name, ast.unparse(first)) if known and first is not None else None
        if isinstance(owner, ast.Name) and owner.id == "self" and isinstance(first, ast.Name):
            kind = self._layer(name, scope)
            return (f"{name}, a {kind},", first.id) if kind else None
        if name in _METHODS and isinstance(owner, ast.Name):
            return name, owner.id
        return None

    def _layer(self, name: str, scope: ast.AST) -> str:
        """The kind of a layer that does nothing but give a result; empty for another."""
        if getattr(scope, "name", "") != "forward":
            return ""
        line = getattr(scope, "lineno", 0)
        for model in self.run.models:
            for module in model.modules():
                code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
                part = module._modules.get(name)
                if part is None or code is None or not line - 8 < code.co_firstlineno <= line:
                    continue
                kind = type(part).__name__
                hooked = part._forward_hooks or part._forward_pre_hooks
                changes = getattr(part, "inplace", False)
                if kind in _LAYERS and not hooked and not changes:
                    return kind
        return ""

    @staticmethod
    def _goes_on(statement: ast.Expr, subject: str, body: list[ast.AST]) -> bool:
        """Whether the variable is read after the statement."""
        end = statement.end_lineno or statement.lineno
        return any(
            isinstance(n, ast.Name)
            and n.id == subject
            and isinstance(n.ctx, ast.Load)
            and n.lineno > end
            for n in body
        )


def side_by_side(iterated: ast.expr) -> bool:
    """Whether a loop goes through parameters of two models side by side."""
    if not isinstance(iterated, ast.Call) or getattr(iterated.func, "id", "") != "zip":
        return False
    kinds = {"parameters", "named_parameters", "buffers", "values"}
    called = [
        a.func.attr
        for a in iterated.args
        if isinstance(a, ast.Call) and isinstance(a.func, ast.Attribute)
    ]
    return len(called) >= 2 and set(called) <= kinds


class BoundAnew(SourceRule):
    mistake = "a moving average never reaches its parameters"
    hint = re.compile(r"\bfor\b.*\bzip\(")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        for loop in body:
            if not isinstance(loop, ast.For) or not side_by_side(loop.iter):
                continue
            own = names_in(loop.target)
            for statement in loop.body:
                if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                    continue
                target = statement.targets[0]
                if not isinstance(target, ast.Name) or target.id not in own:
                    continue
                used = names_in(statement.value)
                after = loop.body[loop.body.index(statement) + 1 :]
                if target.id in used and len(used & own) >= 2 and not self._read(after, target.id):
                    self.find(
                        Place(None, file, statement.lineno),
                        f"{target.id} is a name for a parameter in this loop, and line "
                        f"{statement.lineno} gives the name to a new tensor: the parameter stays "
                        "as it was, and nothing reads what was computed",
                        f"write into it: {target.id}.copy_(...), or mul_() and add_(), under "
                        "no_grad()",
                    )

    @staticmethod
    def _read(statements: list[ast.stmt], name: str) -> bool:
        found = [n for s in statements for n in ast.walk(s) if isinstance(n, ast.Name)]
        return any(n.id == name and isinstance(n.ctx, ast.Load) for n in found)


class SizesExchanged(SourceRule):
    mistake = "view() where permute() was meant"
    hint = re.compile(r"\.(view|reshape)\(\s*\(?\s*[a-z]\w*\s*,")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        sizes: dict[str, list[str]] = {}  # of variables, the names given to their sizes
        for node in body:
            if isinstance(node, ast.Call):
                self._call(file, node, sizes)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                for inner in ast.walk(node.value):  # before the name stands for something else
                    if isinstance(inner, ast.Call):
                        self._call(file, inner, sizes)
                self._note(node.targets[0], node.value, sizes)

    def _call(self, file: str, node: ast.Call, sizes: dict[str, list[str]]) -> None:
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("view", "reshape"):
            return
        owner = node.func.value
        if not isinstance(owner, ast.Name) or owner.id not in sizes:
            return
        given = list(node.args)
        if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
            given = given[0].elts
        order = [a.id for a in given if isinstance(a, ast.Name)]
        known = sizes[owner.id]
        if len(order) == len(given) and sorted(order) == sorted(known) and order != known:
            self.find(
                Place(None, file, node.lineno),
                f"{owner.id} has the {len(known)} sizes ({', '.join(known)}), and "
                f"{node.func.attr}() gives it the same in another order: the numbers stay where "
                "they lie in memory, so that rows mix what belonged to several",
                f"exchange dimensions: {owner.id}.permute"
                f"({', '.join(str(known.index(n)) for n in order)})",
            )

    @staticmethod
    def _note(target: ast.expr, value: ast.expr, sizes: dict[str, list[str]]) -> None:
        if isinstance(target, ast.Name):
            sizes.pop(target.id, None)  # another tensor now
            return
        elements = getattr(target, "elts", [])
        for element in elements:
            sizes.pop(getattr(element, "id", ""), None)
        shape = value.func if isinstance(value, ast.Call) else value
        if not isinstance(shape, ast.Attribute) or shape.attr not in ("shape", "size"):
            return
        found = [e.id for e in elements if isinstance(e, ast.Name)]
        if isinstance(shape.value, ast.Name) and len(found) == len(elements) == len(set(found)):
            if "_" not in found and len(found) > 1:
                sizes[shape.value.id] = found


class NormalisedAgain(SourceRule):
    mistake = "the data is changed in place, in every epoch again"
    hint = re.compile(r"^\s*\w+ ?[-/]= |\.(sub|div)_\(", re.MULTILINE)

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        for outer in body:
            if not isinstance(outer, (ast.For, ast.While)):
                continue
            for inner in ast.walk(outer):
                if isinstance(inner, ast.For) and inner is not outer:
                    self._loop(file, outer, inner)

    def _loop(self, file: str, outer: ast.AST, inner: ast.For) -> None:
        calls = [n for n in ast.walk(inner) if isinstance(n, ast.Call)]
        if not any(getattr(c.func, "attr", "") == "backward" for c in calls):
            return
        set_within = {
            n.id
            for n in ast.walk(outer)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        parts: dict[str, str] = {}  # variables that are slices of what is made before the loops
        for statement in inner.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0], statement.value
                if isinstance(target, ast.Name):
                    parts.pop(target.id, None)
                    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
                        base = value.value
                        if isinstance(base, ast.Name) and base.id not in set_within:
                            parts[target.id] = base.id
            changed = self._changed(statement)
            if changed in parts and self._is_given(calls, changed, statement.lineno):
                self.find(
                    Place(None, file, statement.lineno),
                    f"{changed} is a part of {parts[changed]} that shares its memory, and line "
                    f"{statement.lineno} changes it in place: {parts[changed]} is changed once "
                    "more in each epoch",
                    f"compute a new tensor, {changed} = ..., or do it once, before the loops",
                    (file, changed),
                )

    @staticmethod
    def _changed(statement: ast.stmt) -> str:
        """The variable that a statement scales or shifts in place."""
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Sub, ast.Div)):
            return getattr(statement.target, "id", "")
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in ("sub_", "div_"):
                return getattr(call.func.value, "id", "")
        return ""

    @staticmethod
    def _is_given(calls: list[ast.Call], name: str, line: int) -> bool:
        """Whether a variable, or a part of it, is given to a call after a line."""
        return any(name in names_in(a) and c.lineno > line for c in calls for a in c.args)


class PositionsBySample(SourceRule):
    mistake = "positions are counted over the batch"
    hint = re.compile(r"self\.\w+\[ ?: ?(len\(|\w+\.(size\(0\)|shape\[0\]))")

    def look(self, file: str, scope: ast.AST, body: list[ast.AST]) -> None:
        if not isinstance(scope, _Function) or scope.name != "forward":
            return
        given = [a.arg for a in scope.args.args[1:]]
        for node in body:
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
                continue
            if not isinstance(node.left, ast.Name) or node.left.id not in given[:1]:
                continue
            name = self._by_first(node.right, node.left.id)
            found = self._table(name, scope) if name else None
            if found is None:
                continue
            shape, kind = found
            self.find(
                Place(None, file, node.lineno),
                f"self.{name}, of shape {shape}, is cut to the first dimension of {node.left.id}, "
                f"but {kind} of this model has batch_first=True: each sample gets one position, "
                "the same for all of its elements",
                f"{node.left.id} + self.{name}[: {node.left.id}.size(1)].transpose(0, 1)",
            )

    @staticmethod
    def _by_first(node: ast.expr, subject: str) -> str:
        """The attribute of self that is cut by the first size of a variable."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            return ""
        owner, upper = node.value, node.slice.upper
        if not isinstance(owner, ast.Attribute) or getattr(owner.value, "id", "") != "self":
            return ""
        first = (f"{subject}.size(0)", f"{subject}.shape[0]", f"len({subject})")
        return owner.attr if upper is not None and ast.unparse(upper) in first else ""

    def _table(self, name: str, scope: _Function) -> tuple[tuple[int, ...], str] | None:
        """The shape of a table of positions over one sample, where a layer of the same width takes
        the batch first; None where it is none."""
        from clew import Tensor, nn

        for model in self.run.models:
            for module in model.modules():
                code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
                table = getattr(module, name, None)
                if code is None or not isinstance(table, Tensor) or table.dim() != 3:
                    continue
                if code.co_firstlineno != scope.lineno or table.shape[1] != 1:
                    continue
                for part in model.modules():
                    takes = isinstance(part, nn.MultiheadAttention) and part.batch_first
                    if takes and part.embed_dim == table.shape[2]:
                        return tuple(table.shape), type(part).__name__
        return None
