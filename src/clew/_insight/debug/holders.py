"""Who holds a parameter: modules, and lists and dicts that modules do not look into."""

from __future__ import annotations

import ast
import gc
import inspect
import linecache
import re
import sys
import textwrap
from collections import deque
from collections.abc import Iterator
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
    TracebackType,
)
from typing import Any

from clew import Tensor
from clew._base import provenance as _provenance
from clew._base.statements import names_in
from clew._insight.debug.place import Place

_DEPTH = 4  # of lists in lists


def owner_of(models: list[Any], parameter: Tensor) -> tuple[Any, str] | None:
    """The model that knows a parameter, and the name that it has there."""
    for model in models:
        for name, known in model.named_parameters():
            if known is parameter:
                return model, name
    return None


def _modules_in(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Modules and parameters in plain containers."""
    from clew import nn

    if isinstance(value, (nn.Module, nn.Parameter)):
        yield value
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from _modules_in(part, depth - 1)
    elif depth and isinstance(value, (list, tuple, set)):
        for part in value:
            yield from _modules_in(part, depth - 1)


def _all_modules(models: list[Any]) -> list[Any]:
    """All modules, those in plain containers included."""
    from clew import nn

    found: dict[int, Any] = {}
    pending = list(models)
    while pending:
        module = pending.pop()
        if id(module) in found:
            continue
        found[id(module)] = module
        pending += [m for m in module.children() if m is not None]
        for value in vars(module).values():
            if isinstance(value, (list, tuple, dict, set)):
                pending += [m for m in _modules_in(value) if isinstance(m, nn.Module)]
    return list(found.values())


def hidden_in(models: list[Any], parameter: Tensor) -> tuple[Any, str, str] | None:
    """The module, its attribute and the kind of the plain container that a parameter lies in."""
    from clew import nn

    for module in _all_modules(models):
        for name, value in vars(module).items():
            if name.startswith("_") and name in (
                "_modules",
                "_parameters",
                "_buffers",
            ):
                continue
            if not isinstance(value, (list, tuple, dict, set)):
                continue
            for part in _modules_in(value):
                inside = part.parameters() if isinstance(part, nn.Module) else (part,)
                if any(p is parameter for p in inside):
                    return module, name, type(value).__name__
    return None


def assignment(kind: type, attribute: str) -> Place | None:
    """The line of a class's methods that sets an attribute of self."""
    for base in kind.__mro__:
        for method in vars(base).values():
            code = getattr(inspect.unwrap(method) if callable(method) else None, "__code__", None)
            number = None if code is None else _line_that_sets(code, attribute)
            if code is not None and number is not None:
                return Place(None, code.co_filename, number)
    return None


def _line_that_sets(code: CodeType, attribute: str) -> int | None:
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines))))
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        for target in [t for each in targets for t in getattr(each, "elts", (each,))]:
            if isinstance(target, ast.Attribute) and target.attr == attribute:
                return code.co_firstlineno + target.lineno - 1
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in _SETTERS:
            names = [a for a in node.args[:2] if _is_made(a, attribute)]
            if names:
                return code.co_firstlineno + node.lineno - 1
    return None


_SETTERS = ("setattr", "add_module", "register_module")


def _is_made(name: ast.expr, attribute: str) -> bool:
    """Whether an expression is an attribute's name, as text or as an f-string that fits it."""
    if isinstance(name, ast.JoinedStr):
        parts = [re.escape(str(getattr(part, "value", ""))) for part in name.values]
        kinds = [isinstance(part, ast.Constant) for part in name.values]
        pattern = "".join(text if known else ".+" for text, known in zip(parts, kinds))
        return re.fullmatch(pattern, attribute) is not None
    return isinstance(name, ast.Constant) and name.value == attribute


def attribute_set(file: str, attribute: str, loops: bool = False) -> Place | None:
    """The one line of a file that sets an attribute; None where there are several.

    Args:
        file: to look in.
        attribute: its name.
        loops: whether a loop's own variable counts, too.
    """
    tree = _tree_of(file)
    if tree is None:
        return None
    own = {n for each in ast.walk(tree) if isinstance(each, ast.For) for n in names_in(each.target)}
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
        and target.attr == attribute
        and (loops or not (isinstance(target.value, ast.Name) and target.value.id in own))
    }
    return Place(None, file, lines.pop()) if len(lines) == 1 else None


def holder_of(tensors: list[Tensor]) -> Any:
    """The list or dict that holds all of these tensors, perhaps in tuples or dicts, if one does."""
    if not tensors:
        return None
    mine = {id(t) for t in tensors}
    for holder in gc.get_referrers(tensors[0]):
        within = isinstance(holder, (tuple, dict))
        around = [holder, *gc.get_referrers(holder)] if within else [holder]
        for outer in around:
            if outer is not tensors and isinstance(outer, (list, deque, dict)):
                parts = outer.values() if isinstance(outer, dict) else outer
                inside = [q for part in list(parts) for q in _entries(part)]
                if mine <= {id(q) for q in inside}:
                    return outer
    return None


def _entries(value: Any) -> Any:
    """What a tuple or dict holds; anything else itself."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, tuple) else (value,)


def _names_of(kept: Any) -> set[str]:
    """What a list or dict is called: variables, attributes and keys that lead to it."""
    # An object may keep its attributes without a dict until one is asked for.
    holders = gc.get_referrers(kept)
    spaces = [h if isinstance(h, dict) else getattr(h, "__dict__", {}) for h in holders]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # variables of functions that run are in no dict
        if not frame.f_code.co_filename.startswith(_provenance._LIBRARY):
            spaces.append(frame.f_locals)
        frame = frame.f_back
    return {name for space in spaces for name, value in space.items() if value is kept}


def put_into(kept: Any, file: str) -> Place | None:
    """The line of a file that puts something into a list or dict, found by what that is called
    there. None where it is not known for sure."""
    if kept is None:
        return None
    names = _names_of(kept)
    # `history[key].append(value)`: what lies in a dict goes by the dict's name, too.
    above = [h for h in gc.get_referrers(kept) if isinstance(h, dict) and "__name__" not in h]
    outer = {name for holder in above for name in _names_of(holder)}
    tree = _tree_of(file)
    if tree is None:
        return None
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            into = node.func.value if node.func.attr in ("append", "appendleft", "insert") else None
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            into = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            into = node.targets[0].value
        else:
            continue
        if into is None:
            continue
        asked = into.func if isinstance(into, ast.Call) else None
        varies = isinstance(into, ast.Subscript) and not isinstance(into.slice, ast.Constant)
        if isinstance(into, ast.Subscript) and varies:
            found = _last_name(into.value) in outer
        elif isinstance(asked, ast.Attribute) and asked.attr == "setdefault":
            found = _last_name(asked.value) in outer
        else:
            found = _last_name(into) in names
        if found:
            lines.add(node.lineno)
    return Place(None, file, lines.pop()) if len(lines) == 1 else None


def appended(file: str, attribute: str) -> Place | None:
    """The one line of a file that appends to what an attribute of self holds."""
    tree = _tree_of(file)
    lines = {
        node.lineno
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "append"
        and isinstance(node.func.value, ast.Attribute)
        and node.func.value.attr == attribute
    }
    return Place(None, file, lines.pop()) if len(lines) == 1 else None


def _tree_of(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


def _last_name(node: ast.expr) -> Any:
    """Of a variable its name, of an attribute its last part, of a subscript its key."""
    if isinstance(node, ast.Subscript):
        return node.slice.value if isinstance(node.slice, ast.Constant) else None
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def repetition(file: str) -> Place | None:
    """The one line of a file that puts one module several times into a Sequential or ModuleList,
    as in `[layer] * 3`, `[layer for _ in range(3)]` or `[copy(layer) for _ in range(3)]`. None
    where there are several."""
    tree = _tree_of(file)
    if tree is None:
        return None
    lines = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _last_name(node.func) not in _CONTAINERS:
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
                again = isinstance(part.left, ast.List) or isinstance(part.right, ast.List)
            elif isinstance(part, (ast.ListComp, ast.GeneratorExp)):
                # A name that the loop does not set is one thing each time round.
                shallow = isinstance(part.elt, ast.Call) and _last_name(part.elt.func) == "copy"
                again = (shallow or isinstance(part.elt, (ast.Name, ast.Attribute))) and not (
                    names_in(part.elt) & {n for g in part.generators for n in names_in(g.target)}
                )
            else:
                continue
            if again:
                lines.add(part.lineno)
    return Place(None, file, lines.pop()) if len(lines) == 1 else None


_CONTAINERS = ("Sequential", "ModuleList")


def held_by(tensor: Tensor, besides: list[Any], depth: int = _DEPTH) -> str:
    """Who holds a tensor that no variable leads to, in words that follow "held".

    Args:
        tensor: the tensor.
        besides: lists that hold it, too, and are left out.
        depth: of lists in lists.
    """
    ours = {id(each) for each in besides}
    found = _held_by(tensor, "", depth, ours) or _kind_of_owner(tensor, depth, ours)
    return found or "outside of Python's objects, as by a NumPy array"


def _kind_of_owner(held: Any, depth: int, ours: set[int]) -> str:
    """What holds it in Python, where that has no name."""
    found = gc.get_referrers(held)
    ours.add(id(found))
    for owner in found:
        if id(owner) in ours or isinstance(owner, FrameType):
            continue
        inside = depth and isinstance(owner, (list, tuple, set, frozenset, dict, deque))
        above = _kind_of_owner(owner, depth - 1, ours) if inside else ""
        return above or f"by a {type(owner).__name__} that no variable leads to"
    return ""


def _held_by(held: Any, part: str, depth: int, ours: set[int]) -> str:
    """The first owner that has a name: a function for its closure, an object for its attribute."""
    found = gc.get_referrers(held)
    ours.add(id(found))  # the next round finds this list, too
    owners = [owner for owner in found if id(owner) not in ours]
    for owner in owners:
        name = _closure_of(owner) or _attribute_of(owner, held, part) or _steps_of(owner, held)
        if name:
            return name
    for owner in owners if depth else ():
        if isinstance(owner, (list, tuple, set, frozenset, dict, deque)):
            name = _space_of(owner, held, part) or _held_by(owner, "[...]", depth - 1, ours)
            if name:
                return name
    for owner in owners if depth else ():
        name = _traceback_of(owner, depth, ours) if isinstance(owner, FrameType) else ""
        if name:
            return name
    return ""


def _closure_of(owner: Any) -> str:
    """The function, if a cell of its closure holds the value."""
    for closure in gc.get_referrers(owner) if isinstance(owner, CellType) else ():
        for function in gc.get_referrers(closure) if isinstance(closure, tuple) else ():
            if isinstance(function, FunctionType):
                return f"by a closure of {_at(function.__qualname__, function.__code__)}"
    return ""


def _at(name: str, code: CodeType) -> str:
    return f"{name} at {Place(None, code.co_filename, code.co_firstlineno).short}"


def _attribute_of(owner: Any, held: Any, part: str) -> str:
    """The object and its attribute, also one that has a slot instead of a place in a dict."""
    if isinstance(owner, type):
        return ""  # its dict is looked at
    fields: Any = getattr(owner, "__dict__", None)
    for name, value in list(fields.items()) if isinstance(fields, dict) else ():
        if value is held:
            return f"by {_called(owner)}.{name}{part}"
    for kind in type(owner).__mro__:
        for name, slot in vars(kind).items() if "__slots__" in vars(kind) else ():
            try:
                if isinstance(slot, MemberDescriptorType) and slot.__get__(owner) is held:
                    return f"by {_called(owner)}.{name}{part}"
            except AttributeError:  # the slot is empty
                continue
    return ""


def _called(owner: Any) -> str:
    """What an object is called: modules, classes and functions by name, others by their class."""
    if isinstance(owner, ModuleType):
        return owner.__name__
    if isinstance(owner, (type, FunctionType)):
        return owner.__qualname__
    return type(owner).__name__


def _steps_of(owner: Any, held: Any) -> str:
    """The generator or coroutine that waits, and its variable."""
    for kind, frame_of in _IN_STEPS.items():
        frame = getattr(owner, frame_of) if isinstance(owner, kind) else None
        if frame is not None:
            name = next((k for k, v in frame.f_locals.items() if v is held), "")
            where = _at(owner.__qualname__, frame.f_code)
            return f"by {name or 'a variable'} in {where}, which waits"
    return ""


_IN_STEPS: dict[type, str] = {
    GeneratorType: "gi_frame",
    CoroutineType: "cr_frame",
    AsyncGeneratorType: "ag_frame",
}


def _space_of(owner: Any, held: Any, part: str) -> str:
    """The object, class or module whose attributes lie in a dict; the function whose default
    arguments lie in a tuple."""
    # An object's attributes lie in a dict once somebody has asked for it.
    items = list(owner.items()) if isinstance(owner, dict) else []
    name = next((k for k, v in items if v is held), None)
    for above in gc.get_referrers(owner) if isinstance(owner, (dict, tuple)) else ():
        if isinstance(above, FunctionType) and (
            above.__defaults__ is owner or above.__kwdefaults__ is owner
        ):
            return f"by a default argument of {_at(above.__qualname__, above.__code__)}"
        own = getattr(above, "__dict__", None)
        inside = isinstance(above, type) and own is not None and own.get(name) is held
        if name is not None and (own is owner or inside):
            return f"by {_called(above)}.{name}{part}"
    return ""


def _traceback_of(frame: FrameType, depth: int, ours: set[int]) -> str:
    """The exception that is kept, if a frame is there for its traceback alone."""
    running: FrameType | None = sys._getframe(1)
    while running is not None:
        if running is frame:
            return ""
        running = running.f_back
    for owner in gc.get_referrers(frame):
        above: Any = owner
        while isinstance(above, TracebackType):  # the outermost one is what the exception has
            owner, above = (
                above,
                next((t for t in gc.get_referrers(above) if isinstance(t, TracebackType)), None),
            )
        for error in gc.get_referrers(owner) if isinstance(owner, TracebackType) else ():
            if isinstance(error, BaseException):
                holder = _held_by(error, "", depth - 1, ours)
                return f"by the traceback of a {type(error).__name__} that is kept" + (
                    f" {holder}" if holder else ""
                )
    return ""
