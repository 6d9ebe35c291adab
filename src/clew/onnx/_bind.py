"""An operation's arguments by the names of its signature."""

from __future__ import annotations

import functools
from typing import Any

from clew import _C
from clew._ops.signatures import REQUIRED, Parameter, parse
from clew.export._ir import Node, Value
from clew.export._names import function_of

__all__ = ["bind"]


class Bound(dict):
    """Arguments by name, as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@functools.cache
def _signatures(op: str) -> list[list[Parameter]]:
    """The parameters of each overload."""
    return [parse(text)[0] for text in getattr(function_of(op), "signatures", ())]


def _fits(kind: str, value: Any) -> bool:
    if value is None:
        return kind.endswith("?")
    kind = kind.rstrip("?*")
    tensor = isinstance(value, Value) and value.kind == "tensor"
    if kind == "Tensor":
        return tensor
    if kind == "Operand":
        return tensor or isinstance(value, (Value, int, float, complex))
    if kind == "Scalar":
        return not tensor and isinstance(value, (Value, int, float, complex))
    if kind.endswith("]"):
        if kind.startswith("Tensor"):
            return isinstance(value, (tuple, list))
        if kind != "int[]" and isinstance(value, int):
            return True
        return isinstance(value, (tuple, list, _C.Size)) or (
            kind == "int[]" and isinstance(value, (int, Value))
        )
    if kind == "int":
        number = isinstance(value, Value) and value.kind == "int"
        return number or (isinstance(value, int) and not isinstance(value, bool))
    if kind == "float":
        return not tensor and isinstance(value, (Value, int, float))
    if kind == "bool":
        return isinstance(value, bool) or (isinstance(value, Value) and value.kind == "bool")
    if kind == "str":
        return isinstance(value, str)
    return kind not in ("dtype",) or isinstance(value, _C.dtype)


def _try(parameters: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound | None:
    bound = Bound()
    left = list(args)
    unused = dict(kwargs)
    for kind, name, named, default in parameters:
        if kind.endswith("]*") and left and not isinstance(left[0], (tuple, list, _C.Size)):
            bound[name] = tuple(left)
            left = []
            continue
        if left and not named:
            value = left.pop(0)
        elif name in unused:
            value = unused.pop(name)
        elif default is not REQUIRED:
            bound[name] = default
            continue
        else:
            return None
        if not _fits(kind, value):
            return None
        bound[name] = value
    return None if left or set(unused) - {"out"} else bound


def bind(node: Node) -> Bound | None:
    """The arguments of a node by name; None where no overload takes them."""
    for parameters in _signatures(node.op):
        found = _try(parameters, tuple(node.args), node.kwargs)
        if found is not None:
            return found
    return None
