"""What error messages say of lines, names and parameters; the core asks when an error is told.

Everything here looks at what is there and changes nothing but the text of a message.
"""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import itertools
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Any

from clew import _C
from clew._base.provenance import Location, describe, describe_calls, parameter_name, short_path
from clew._C import Tensor

__all__ = ["describe", "describe_calls"]


def line(code: CodeType, offset: int, *_: str) -> str:
    """The number of the line."""
    return str(Location(code, offset).line)


# ---- names that a line shows ----


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # not Python as it stands, such as a notebook's magic
        return None


_MOST = 4  # tensors that are listed
_NOT_REACHED = "does not reach the result: "
_OPERATIONS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def _found(at: Location) -> tuple[ast.stmt, ast.AST] | None:
    """The statement and the expression in it that the instruction belongs to."""
    tree = _parsed("".join(linecache.getlines(at.file)))
    if tree is None:
        return None
    first, last, column, end = at.span
    for statement in ast.walk(tree):
        if not isinstance(statement, _SIMPLE):
            continue
        if not statement.lineno <= first <= (statement.end_lineno or first):
            continue
        if column is None:  # before Python 3.11: only where there is nothing to mix up
            if isinstance(statement, ast.AugAssign):
                return statement, statement
            parts = [n for n in ast.walk(statement) if isinstance(n, _OPERATIONS)]
            return (statement, parts[0]) if len(parts) == 1 else None
        for part in ast.walk(statement):
            if not isinstance(part, (ast.expr, ast.AugAssign)):
                continue
            where = (part.lineno, part.end_lineno, part.col_offset, part.end_col_offset)
            if where == (first, last, column, end):
                return statement, part
    return None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_END_IN_A_VIEW = ("flatten", "ravel", "reshape", "reshape_as", "unflatten", "view_as")


def _makes(part: ast.AST, path: str, kind: str, node: str) -> bool:
    """Whether the node is what the expression gives, and not a step on the way there: functions
    of the library run several operations, all of which belong to this line."""
    op = _plain(node.removesuffix("Backward0").removesuffix("Backward"))
    if isinstance(part, ast.Subscript):
        return op in ("select", "index", "slice", "getitem")
    if isinstance(part, ast.Attribute):
        return op == "transpose" or op == _plain(part.attr)
    if not isinstance(part, ast.Call):
        return isinstance(part, (ast.BinOp, ast.UnaryOp, ast.AugAssign))
    called = ast.unparse(part.func).rpartition(".")
    if called[2] == "apply":  # of a custom Function
        return op == _plain(called[0].rpartition(".")[2])
    if _plain(called[2]) == op or (op == "view" and called[2] in _END_IN_A_VIEW):
        return True
    # A layer that is one operation: the module in progress is the one that the line calls.
    own = path.rpartition(".")[2]
    return _plain(kind) == op and (not own or own == called[2])


def result_name(code: CodeType, offset: int, path: str, kind: str, node: str) -> str:
    """The name that the line gives to what a node makes there, such as ``h`` or ``self.state``;
    empty for what has none.

    Args:
        path: of the module in progress.
        kind: its class.
        node: the node's name.
    """
    found = _found(Location(code, offset))
    if found is None or not _makes(found[1], path, kind, node):
        return ""
    statement, part = found
    target: ast.AST | None = None
    if isinstance(statement, ast.AugAssign) and part is statement:
        target = statement.target
    elif isinstance(statement, ast.Assign) and part is statement.value:
        target = statement.targets[0] if len(statement.targets) == 1 else None
    elif isinstance(statement, ast.AnnAssign) and part is statement.value:
        target = statement.target
    return ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""


_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
    ast.Mod: "remainder",
    ast.FloorDiv: "floordivide",
    ast.BitAnd: "bitwiseand",
    ast.BitOr: "bitwiseor",
    ast.BitXor: "bitwisexor",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


def operand_names(code: CodeType, offset: int, kind: str, operation: str, count: int) -> str:
    """What the line calls the operands of an operation that failed there: a line each, empty where
    it has no name for one; all empty where the expression is not that operation.

    Args:
        kind: class of the module in progress.
        operation: its name, as the error tells it.
        count: how many tensors it was given.
    """
    at = Location(code, offset)
    part = _expression(at)
    parts = [] if part is None else _operands(part, at.file, kind, operation, count)
    if len(parts) != count:
        return ""
    return "\n".join(
        ast.unparse(part) if isinstance(part, (ast.Name, ast.Attribute)) else "" for part in parts
    )


def _expression(at: Location) -> ast.AST | None:
    """The expression that the instruction belongs to, or the statement `x += y`."""
    tree = _parsed("".join(linecache.getlines(at.file)))
    first, last, column, end = at.span
    if tree is None or column is None:
        return None
    for part in ast.walk(tree):
        if isinstance(part, (ast.expr, ast.AugAssign)) and part.lineno == first:
            if (part.end_lineno, part.col_offset, part.end_col_offset) == (last, column, end):
                return part
    return None


def _operands(
    part: ast.AST, file: str, kind: str, operation: str, count: int
) -> list[ast.expr | None]:
    op = _plain(operation.rpartition(".")[2])
    if isinstance(part, (ast.BinOp, ast.AugAssign, ast.Compare)):
        operator = part.ops[0] if isinstance(part, ast.Compare) else part.op
        if _OPERATORS.get(type(operator)) != op:
            return []
        if isinstance(part, ast.Compare):
            return [part.left, *part.comparators]
        return [part.left, part.right] if isinstance(part, ast.BinOp) else [part.target, part.value]
    if not isinstance(part, ast.Call):
        return []
    called = part.func.attr if isinstance(part.func, ast.Attribute) else ""
    called = part.func.id if isinstance(part.func, ast.Name) else called
    given = part.args
    if _plain(kind) == op and called != "" and _plain(called) != op:
        # A layer that is one operation: its own tensors come after the argument.
        return [*given, *[None] * (count - 1)] if len(given) == 1 else []
    if _plain(called) != op:
        return []
    if isinstance(part.func, ast.Attribute) and not _is_imported(part.func.value, file):
        given = [part.func.value, *given]
    if given and isinstance(given[0], (ast.List, ast.Tuple)):
        return list(given[0].elts) if len(given[0].elts) < 3 else []
    tensors = [a for a in given if not isinstance(a, (ast.Constant, ast.Tuple, ast.List))]
    return list(tensors[:1] if count == 1 else tensors)


def _is_imported(owner: ast.expr, file: str) -> bool:
    """Whether the name is that of a module, such as F in ``F.relu_(h)``."""
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    tree = _parsed("".join(linecache.getlines(file)))
    names = {
        (alias.asname or alias.name).partition(".")[0]
        for imported in ast.walk(tree or ast.Module([], []))
        if isinstance(imported, (ast.Import, ast.ImportFrom))
        for alias in imported.names
    }
    return isinstance(owner, ast.Name) and owner.id in names


def rewrite(code: CodeType, offset: int, *_: str) -> str:
    """The in-place write on the line in its out-of-place form, ``h = h + 1``."""
    at = Location(code, offset)
    found = _found(at)
    if found is None:
        return ""
    statement, part = found
    if isinstance(statement, ast.AugAssign) and part is statement:
        if not isinstance(statement.target, (ast.Name, ast.Attribute)):
            return ""
        target = ast.unparse(statement.target)
        value = ast.BinOp(statement.target, statement.op, statement.value)
        return f"{target} = {ast.unparse(value)}"
    if not (isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)):
        return ""
    owner, name = part.func.value, part.func.attr
    if not isinstance(owner, (ast.Name, ast.Attribute)) or not isinstance(statement, ast.Expr):
        return ""
    if statement.value is not part or _is_imported(owner, at.file):
        return ""
    plain = name.removesuffix("_")
    if plain == name or name.endswith("__") or not callable(getattr(Tensor, plain, None)):
        return ""
    call = ast.Call(ast.Attribute(owner, plain, ast.Load()), part.args, part.keywords)
    return f"{ast.unparse(owner)} = {ast.unparse(call)}"


# ---- parameters ----


def _models() -> Iterator[Any]:
    """Modules that are alive and part of no other."""
    # By type, not isinstance(), which may run code of objects that pretend to be others.
    found = [o for o in gc.get_objects() if _C.ModuleBase in type(o).__mro__]
    inner = {id(m) for o in found for m in vars(o).get("_modules", {}).values()}
    return (o for o in found if id(o) not in inner and "_parameters" in vars(o))


def member(tensor: Tensor) -> str:
    """``the parameter fc1.weight of Net``, or buffer, or a view of one; empty for other tensors.

    What backward has saved is another object than the member, over the same memory.
    """
    # Asking for memory that calls wait for would run them.
    memory = 0 if _C._levels(tensor) or _C._waits(tensor) else tensor._address()
    view = ""
    for model in itertools.chain(_C._called_roots(), _models()):
        for table in (model.named_parameters(), model.named_buffers()):
            for name, one in table:
                kind = "parameter" if one.requires_grad else "buffer"
                told = f"the {kind} {name} of {type(model).__name__}"
                if one is tensor:
                    return told
                if not memory or _C._levels(one) or _C._waits(one):
                    continue
                if one._address() == memory and one.shape == tensor.shape:
                    return told
                if one._address() <= memory < one._address() + one.nbytes:
                    view = view or f"a view of {told}"
    return view


def called_member(tensor: Tensor) -> str:
    """``the parameter fc1.weight of Net`` for what belongs to a model that was called."""
    found = parameter_name(tensor)
    if found is None:
        return ""
    kind = "parameter" if tensor.requires_grad else "buffer"
    return f"the {kind} {found[0]} of {found[1]}"


def unused(roots: tuple[Tensor, ...], inputs: dict[int, Tensor]) -> str:
    """The inputs of autograd.grad, by number, that no root depends on; and what to do."""
    from clew._insight.graph.graph import graph

    asked = None if any(_C._levels(t) for t in roots) else graph(roots)
    lines = [""]
    for i, t in list(inputs.items())[:_MOST]:
        name = member(t)
        text = f"input {i}, {name + ', ' if name else ''}{t.dtype.name}{list(t.shape)}"
        if asked is not None:
            text += f": {asked.why(t).reason.removeprefix(_NOT_REACHED)}"
        lines.append(text)
    if len(inputs) > _MOST:
        lines.append(f"and {len(inputs) - _MOST} more")
    lines.append("set allow_unused=True to get None there, or leave it out of the inputs")
    return "\n  ".join(lines)


def without_parameters(way_out: str) -> str:
    """Why a value has no history although nothing cut it off; way_out is a line of the message."""
    for model in () if way_out else reversed(_C._called_roots()):
        parameters = list(model.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            return (
                "\n  nothing that it was computed from requires grad"
                f"\n  all {len(parameters)} parameters of {type(model).__name__} are frozen "
                "(requires_grad=False)\n  set requires_grad=True on what is to be trained"
            )
    return (
        f"\n  nothing that it was computed from requires grad{way_out}\n  set requires_grad=True "
        "on the tensors to differentiate"
    )


# ---- numbers on their way ----


def way_out(code: CodeType, offset: int, *_: str) -> str:
    """How numbers that are used on a line left a graph, where the names of the program tell so."""
    at = Location(code, offset)
    for how, op, place, _, _ in _C._leavings():
        if op is not None or not how or place[0].co_filename != at.file:
            continue
        left = Location(place[0], place[1])
        if _flows(at.file, left.line, at.line):
            where = describe(place[0], place[1], place[2] or "", place[3] or "")
            return f"\n  its value left a graph through {how} at {where}"
    return ""


def _flows(file: str, source: int, target: int) -> bool:
    """Whether a name that gets its value on one line is used, directly or through others, on
    another of the same function."""
    tree = _parsed("".join(linecache.getlines(file)))
    if tree is None:
        return False
    body = _innermost(tree, source)
    if body is not _innermost(tree, target):
        return False
    statements = [
        s
        for s in ast.walk(body)
        if isinstance(s, (*_SIMPLE, ast.For, ast.With, ast.If, ast.While)) and s is not body
    ]
    # np.save(path, x) does not change np.
    imported = {
        (name.asname or name.name).partition(".")[0]
        for s in ast.walk(tree)
        if isinstance(s, (ast.Import, ast.ImportFrom))
        for name in s.names
    }
    held: set[str] = set()
    before = -1
    while before < len(held):  # loops bring values back up
        before = len(held)
        for s in statements:
            on_source = s.lineno <= source <= (s.end_lineno or s.lineno)
            if isinstance(s, (ast.With, ast.If, ast.While)):
                continue
            used = s.iter if isinstance(s, ast.For) else s
            if (on_source and not isinstance(s, ast.For)) or held & _names(used, ast.Load):
                held |= _written(s) - imported
    return any(
        s.lineno <= target <= (s.end_lineno or s.lineno)
        and isinstance(s, _SIMPLE)
        and held & _names(s, ast.Load)
        for s in statements
    )


def _innermost(tree: ast.Module, line: int) -> ast.AST:
    """The smallest function that holds the line, or the module."""
    found: ast.AST = tree
    for node in ast.walk(tree):  # inner ones come later
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                found = node
    return found


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _written(statement: ast.AST) -> set[str]:
    """Names that a statement gives a value to, or whose object it changes."""
    found = _names(statement, ast.Store)
    targets: list[ast.AST] = list(getattr(statement, "targets", []))
    targets += [t for t in [getattr(statement, "target", None)] if t is not None]
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            targets.append(value.func)  # values.append(x), and not print(x)
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


# ---- custom Functions ----


def gradient_of(context: Any, index: int) -> str:
    """Which argument a gradient of a custom Function belongs to, and where backward stands."""
    function = context._function
    own = function.setup_context is function.__mro__[-2].setup_context
    names = list(inspect.signature(function.forward).parameters.values())[1 if own else 0 :]
    backward = function.backward
    if function.vjp is not function.__mro__[-2].vjp:
        backward = function.vjp
    code = inspect.unwrap(backward).__code__
    first = code.co_firstlineno
    while linecache.getline(code.co_filename, first).lstrip().startswith("@"):
        first += 1
    where = f"{short_path(code.co_filename)}:{first} in {backward.__qualname__}"
    if index < 0 or any(p.kind is p.VAR_POSITIONAL for p in names[: index + 1]):
        listed = ", ".join(str(p).split(":")[0].split("=")[0] for p in names)
        text = f"\n  forward's arguments are {listed}" if index < 0 else ""
        advice = "return one gradient for each argument, None for those that have none"
    else:
        text = f"\n  gradient {index} is that of forward's argument `{names[index].name}`"
        advice = "return a gradient of the argument's shape, or None"
    return f"{text}\n  backward begins at {where}\n  {advice}"


# ---- errors that Python code of the library raised ----


def name_module(error: BaseException, code: CodeType, offset: int, path: str, kind: str) -> None:
    """Adds to the message which module was being called from which line, once."""
    if len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    if "\n  in " not in error.args[0]:
        error.args = (f"{error.args[0]}\n  in {describe(code, offset, path, kind)}",)
