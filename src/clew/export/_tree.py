"""How arguments and results nest, in a form that a file can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import Tensor
from clew.export._errors import ExportError

__all__ = ["build", "checked", "describe", "flatten", "match"]


def flatten(tree: Any, leaves: list[Any], what: str, is_leaf: Callable[[Any], bool]) -> Any:
    """The spec of a tree of tuples, lists, dicts and plain constants; leaves go into a list."""
    if is_leaf(tree):
        leaves.append(tree)
        return ["leaf"]
    if tree is None or isinstance(tree, (bool, int, float, str)):
        return ["constant", tree]
    if isinstance(tree, dict):
        if not all(isinstance(k, (str, int)) for k in tree):
            raise ExportError(f"export: {what} has a dict whose keys are not strings or ints")
        return ["dict", list(tree), [flatten(v, leaves, what, is_leaf) for v in tree.values()]]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts = [flatten(v, leaves, what, is_leaf) for v in tree]
        return ["named", type(tree).__name__, list(tree._fields), parts]
    if isinstance(tree, (tuple, list)):
        kind = "list" if isinstance(tree, list) else "tuple"
        return [kind, [flatten(v, leaves, what, is_leaf) for v in tree]]
    if hasattr(tree, "__dataclass_fields__"):
        fields = {k: getattr(tree, k) for k in tree.__dataclass_fields__}
        return flatten(fields, leaves, what, is_leaf)
    raise ExportError(
        f"export: {what} is a {type(tree).__name__}; tensors, numbers, strings, None, and tuples, "
        f"lists and dicts of these can be kept"
    )


def build(spec: Any, leaves: Any) -> Any:
    """The tree of a spec, with leaves from an iterator."""
    kind = spec[0]
    if kind == "leaf":
        return next(leaves)
    if kind == "constant":
        return spec[1]
    if kind == "dict":
        return {k: build(s, leaves) for k, s in zip(spec[1], spec[2])}
    if kind == "named":
        return named(spec[1], spec[2])(*[build(s, leaves) for s in spec[3]])
    parts = [build(s, leaves) for s in spec[1]]
    return parts if kind == "list" else tuple(parts)


_made: dict[Any, Any] = {}


def named(name: str, fields: list[str]) -> Any:
    """The class of a named tuple."""
    from collections import namedtuple

    key = (name, *fields)
    if key not in _made:
        _made[key] = namedtuple(name, fields)
    return _made[key]


def match(spec: Any, tree: Any, leaves: list[Any], what: str) -> None:
    """Collects the leaves of a tree, which must be built as the spec says."""
    kind = spec[0]
    if kind == "leaf":
        leaves.append(tree)
    elif kind == "constant":
        if tree is not spec[1] and tree != spec[1]:
            raise ExportError(
                f"exported program: {what} was {spec[1]!r} when it was exported, and is part of "
                f"the program; got {tree!r}"
            )
    elif kind == "dict":
        if not isinstance(tree, dict) or set(tree) != set(spec[1]):
            raise ExportError(f"exported program: {what} must be a dict with the keys {spec[1]}")
        for k, s in zip(spec[1], spec[2]):
            match(s, tree[k], leaves, f"{what}[{k!r}]")
    else:
        parts = spec[3] if kind == "named" else spec[1]
        if not isinstance(tree, (tuple, list)) or len(tree) != len(parts):
            got = len(tree) if isinstance(tree, (tuple, list)) else type(tree).__name__
            raise ExportError(
                f"exported program: {what} must have {len(parts)} elements; got {got}"
            )
        for i, (s, t) in enumerate(zip(parts, tree)):
            match(s, t, leaves, f"{what}[{i}]")


def describe(spec: Any, names: Any) -> str:
    """A spec with names for its leaves, as Python writes it."""
    kind = spec[0]
    if kind == "leaf":
        return str(next(names))
    if kind == "constant":
        return repr(spec[1])
    if kind == "dict":
        return "{" + ", ".join(f"{k!r}: {describe(s, names)}" for k, s in zip(*spec[1:])) + "}"
    if kind == "named":
        return f"{spec[1]}({', '.join(describe(s, names) for s in spec[3])})"
    inner = ", ".join(describe(s, names) for s in spec[1])
    if kind == "list":
        return f"[{inner}]"
    return f"({inner},)" if len(spec[1]) == 1 else f"({inner})"


def checked(spec: Any, depth: int = 0) -> Any:
    """A spec from a file, or ValueError."""
    if depth > 50 or not isinstance(spec, list) or not spec:
        raise ValueError("a tree of arguments is malformed")
    kind = spec[0]
    if kind == "leaf" and len(spec) == 1:
        return spec
    if kind == "constant" and len(spec) == 2:
        if spec[1] is None or isinstance(spec[1], (bool, int, float, str)):
            return spec
    elif kind == "dict" and len(spec) == 3:
        keys, parts = spec[1:]
        if isinstance(keys, list) and isinstance(parts, list) and len(keys) == len(parts):
            if all(isinstance(k, (str, int)) for k in keys):
                return ["dict", keys, [checked(s, depth + 1) for s in parts]]
    elif kind == "named" and len(spec) == 4:
        name, fields, parts = spec[1:]
        if isinstance(fields, list) and isinstance(parts, list) and len(fields) == len(parts):
            names = [name, *fields]
            if all(isinstance(n, str) and n.isidentifier() and n[0] != "_" for n in names):
                named(name, fields)
                return ["named", name, fields, [checked(s, depth + 1) for s in parts]]
    elif kind in ("tuple", "list") and len(spec) == 2 and isinstance(spec[1], list):
        return [kind, [checked(s, depth + 1) for s in spec[1]]]
    raise ValueError("a tree of arguments is malformed")


def is_tensor(x: Any) -> bool:
    """Whether something is a tensor."""
    return isinstance(x, Tensor)
