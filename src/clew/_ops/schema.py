"""Schemas of operations that a program adds: `scale(Tensor x, float by=1.0) -> Tensor`.

A schema says which arguments a call may have, turns them into what the kernel is promised (a float
where an int was given, a list where a tuple was), and checks what the kernel gives back.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clew import _C
from clew._C import Tensor

__all__ = ["Schema", "infer_schema"]

_HEAD = re.compile(r"\s*(?:(?P<space>[\w]+)::)?(?P<name>[\w]+)(?:\.(?P<overload>\w+))?\s*\(")


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in (*parts, text[start:]) if p.strip()]


class _Parameter(typing.NamedTuple):
    type: str
    name: str
    default: Any
    keyword_only: bool


class Schema:
    """What a schema's text says.

    Args:
        text: such as "name(Tensor x, int n=1) -> Tensor".
        namespace: for messages.
    """

    def __init__(self, text: str, namespace: str = "") -> None:
        found = _HEAD.match(text)
        if not found:
            raise RuntimeError(
                "library: expected a schema such as 'name(Tensor x, int n=1) -> Tensor'; got "
                f"{text!r}"
            )
        self.text = text.strip()
        self.name = found["name"]
        self.namespace = namespace or found["space"] or ""
        self.overload_name = found["overload"] or ""
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
            at += 1
        inner = text[found.end() : at - 1]
        self.returns = text[at:].partition("->")[2].strip()
        self.arguments: list[_Parameter] = []
        keyword_only = False
        for part in _split(inner):
            if part == "*":
                keyword_only = True
                continue
            left, equals, default = part.partition("=")
            kind, _, name = left.strip().rpartition(" ")
            self.arguments.append(
                _Parameter(kind.strip(), name, _default(default) if equals else ..., keyword_only)
            )
        self.mutates = [a.name for a in self.arguments if "!" in a.type]
        self._converters = {a.name: _converter(_plain(a.type)) for a in self.arguments}
        self._positional = [a.name for a in self.arguments if not a.keyword_only]
        self._results = _result_types(self.returns)

    @property
    def _full_name(self) -> str:
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    @property
    def is_mutable(self) -> bool:
        """Whether the operation writes into an argument."""
        return bool(self.mutates)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """All arguments as the kernel gets them, by position where that is allowed.

        Raises:
            RuntimeError: they are not those that the schema names.
        """
        positional = self._positional
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self._full_name}: takes {len(positional)} positional arguments; got "
                f"{len(args)}. Its schema: {self.text}"
            )
        values = dict(zip(positional, args))
        for name, value in kwargs.items():
            if name not in self._converters:
                raise RuntimeError(
                    f"{self._full_name}: got an unexpected argument {name!r}. Its schema: "
                    f"{self.text}"
                )
            if name in values:
                raise RuntimeError(f"{self._full_name}: got the argument {name!r} twice")
            values[name] = value
        for a in self.arguments:
            if a.name not in values:
                if a.default is ...:
                    raise RuntimeError(
                        f"{self._full_name}: misses the argument {a.name!r}. Its schema: "
                        f"{self.text}"
                    )
                values[a.name] = a.default
                continue
            try:
                values[a.name] = self._converters[a.name](values[a.name])
            except (TypeError, ValueError, OverflowError):
                raise RuntimeError(
                    f"{self._full_name}: {a.name} should be {_words(_plain(a.type))}; got "
                    f"{_shown(values[a.name])}. Its schema: {self.text}"
                ) from None
        named = {a.name: values[a.name] for a in self.arguments if a.keyword_only}
        return tuple(values[name] for name in positional), named

    def check_result(self, result: Any) -> Any:
        """What a kernel gave; a tuple where the schema names several results.

        Raises:
            RuntimeError: it is not what the schema says.
        """
        kinds = self._results
        if kinds is None or not kinds:
            return result
        if len(kinds) == 1:
            self._check_one(kinds[0], result)
            return result
        if not isinstance(result, (tuple, list)) or len(result) != len(kinds):
            raise RuntimeError(
                f"{self._full_name}: the kernel must give {len(kinds)} results, {self.returns}; "
                f"got {_shown(result)}"
            )
        for kind, one in zip(kinds, result):
            self._check_one(kind, one)
        return tuple(result)

    def _check_one(self, kind: str, value: Any) -> None:
        good = True
        if kind in ("Tensor", "Tensor?"):
            good = value is None or isinstance(value, Tensor)
        elif kind == "Tensor[]":
            good = isinstance(value, (tuple, list)) and all(isinstance(t, Tensor) for t in value)
        if not good:
            raise RuntimeError(
                f"{self._full_name}: the kernel must give {kind}; got {_shown(value)}"
            )

    def __str__(self) -> str:
        spaced = "::" in self.text.partition("(")[0]
        return f"{self.namespace}::{self.text}" if self.namespace and not spaced else self.text


def _shown(value: Any) -> str:
    text = f" of {len(value)}" if isinstance(value, (tuple, list)) else ""
    if isinstance(value, (tuple, list)) and value:
        text += f" {type(value[0]).__name__}" + ("s" if len(value) > 1 else "")
    return type(value).__name__ + text


def _plain(kind: str) -> str:
    """A type without what it says of memory: Tensor of Tensor(a!)."""
    return re.sub(r"\([^)]*\)", "", kind)


_WORDS = {
    "Tensor": "a Tensor",
    "int": "a whole number",
    "SymInt": "a whole number",
    "float": "a number",
    "Scalar": "a number",
    "bool": "a bool",
    "SymBool": "a bool",
    "str": "a text",
    "ScalarType": "a dtype",
    "Device": "a device",
}


def _words(kind: str) -> str:
    """A type as messages call it."""
    if kind.endswith("?"):
        return f"{_words(kind[:-1])} or None"
    if kind.endswith("]"):
        return f"a list, each element {_words(kind[: kind.rindex('[')])}"
    return _WORDS.get(kind, kind)


def _result_types(text: str) -> list[str] | None:
    """The types of the results; None where the schema says nothing."""
    if not text:
        return None
    inner = _split(text[1:-1]) if text.startswith("(") and text.endswith(")") else [text]
    return [_plain(part).split()[0] for part in inner if part.strip()]


def _default(text: str) -> Any:
    text = text.strip()
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    if text.startswith("["):
        return [_default(part) for part in _split(text[1:-1])]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")


# ---- arguments: each function gives what the kernel gets, or raises TypeError or ValueError ----


def _tensor(value: Any) -> Any:
    if value is None or isinstance(value, Tensor):  # PyTorch, too, takes None for any tensor
        return value
    raise TypeError


def _element(value: Tensor, whole: bool) -> Any:
    if value.numel() != 1 or (whole and (value.is_floating_point() or value.is_complex())):
        raise TypeError
    return value.item()


def _int(value: Any) -> Any:
    if isinstance(value, Tensor):
        return int(_element(value, whole=True))
    if type(value) is int or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return operator.index(value)


def _float(value: Any) -> Any:
    if isinstance(value, Tensor):
        return float(_element(value, whole=False))
    if isinstance(value, float):
        return value
    if isinstance(value, (str, bytes)) or not hasattr(type(value), "__float__"):
        raise TypeError
    return float(value)


def _bool(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, Tensor):
        return bool(_element(value, whole=False))
    if isinstance(value, int) or type(value).__name__ in ("bool", "bool_"):  # NumPy's, too
        return bool(value)
    raise TypeError


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if not isinstance(value, Tensor) and hasattr(type(value), "item"):  # a NumPy number
        return value.item()
    raise TypeError


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError


def _dtype(value: Any) -> Any:
    if isinstance(value, _C.dtype):
        return value
    raise TypeError


def _device(value: Any) -> Any:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return _C.device(value)
    if isinstance(value, _C.device):
        return value
    raise TypeError


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "Tensor": _tensor,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "SymBool": _bool,
    "Scalar": _number,
    "str": _str,
    "ScalarType": _dtype,
    "Device": _device,
}


def _as_is(value: Any) -> Any:
    return value


@functools.lru_cache(maxsize=1024)
def _converter(kind: str) -> Callable[[Any], Any]:
    """What turns an argument of a type into what the kernel gets."""
    if kind.endswith("?"):
        inner = _converter(kind[:-1])
        return lambda value: None if value is None else inner(value)
    found = re.fullmatch(r"(.+)\[(\d*)\]", kind)
    if found is None:
        return _SIMPLE.get(kind, _as_is)
    one, count = _converter(found[1]), found[2]

    def several(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            parts = [one(v) for v in value]
            if found[1] == "Tensor" and any(v is None for v in parts):
                raise TypeError
            return parts
        if count and not isinstance(value, (str, bytes)):  # one number for all of int[2]
            return [one(value)] * int(count)
        raise TypeError

    return several


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: Any,
    op_name: str | None = None,
) -> str:
    """The schema that a function's annotations say.

    Args:
        prototype_function: the function.
        mutates_args: the names of the parameters that it writes to, or "unknown".
        op_name: what stands in front.

    Example:
        >>> from clew.library import infer_schema
        >>> def f(x: clew.Tensor, n: int = 2) -> clew.Tensor: ...
        >>> infer_schema(f, mutates_args=())
        '(Tensor x, SymInt n=2) -> Tensor'
    """
    hints = typing.get_type_hints(prototype_function)
    parameters = inspect.signature(prototype_function).parameters
    unknown = [] if mutates_args == "unknown" else sorted(set(mutates_args) - set(parameters))
    if unknown:
        raise ValueError(f"infer_schema: mutates_args names {unknown}, which are no parameters")
    parts, letters = [], iter("abcdefghijklmnopqrstuvwxyz")
    star = False
    for p in parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.name not in hints:
            raise ValueError(f"infer_schema: the parameter {p.name} has no annotation")
        kind = _type_name(hints[p.name], p.name)
        if mutates_args == "unknown" or p.name in mutates_args:
            kind = kind.replace("Tensor", f"Tensor({next(letters)}!)")
        default = ""
        if p.default is not p.empty:
            shown = f'"{p.default}"' if isinstance(p.default, str) else str(p.default)
            default = f"={shown}"
        parts.append(f"{kind} {p.name}{default}")
    back = hints.get("return", type(None))
    if back in (None, type(None)):
        returns = "()"
    elif typing.get_origin(back) is tuple:
        returns = f"({', '.join(_type_name(a, 'return') for a in typing.get_args(back))})"
    else:
        returns = _type_name(back, "return")
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _type_name(annotation: Any, where: str) -> str:
    plain = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"}
    plain |= {_C.dtype: "ScalarType", _C.device: "Device", complex: "complex"}
    if annotation in plain:
        return plain[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, Sequence, typing.Sequence, Iterable):
        return f"{_type_name(args[0], where)}[]"
    if args and type(None) in args:
        inner = [a for a in args if a is not type(None)]
        if len(inner) == 1:
            return f"{_type_name(inner[0], where)}?"
        if set(inner) <= {int, float, bool}:
            return "Scalar?"
    if args and set(args) <= {int, float, bool}:
        return "Scalar"
    raise ValueError(f"infer_schema: the annotation {annotation} of {where} has no schema type")
