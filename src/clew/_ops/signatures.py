"""The signatures of the table of operations, for `inspect.signature` and whatever binds arguments.

An operation's signature text is written once, where the operation is declared, and the core takes
it apart.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from clew import _C

__all__ = ["REQUIRED", "Parameter", "parse", "signature_of"]

REQUIRED = inspect.Parameter.empty
_TYPES = {"Operand": "Tensor | Number", "Scalar": "Number"}


class Parameter(NamedTuple):
    """One parameter of an overload: its type as written, its name, whether it is given by name
    only, and its default.
    """

    kind: str
    name: str
    named: bool
    default: Any


def _default(text: str) -> Any:
    words = {"None": None, "True": True, "False": False}
    if text in words:
        return words[text]
    if text[:1] in "'\"":
        return text[1:-1]
    if text[:1] in "([":
        return tuple(int(n) for n in text[1:-1].split(",") if n.strip())
    try:
        return int(text)
    except ValueError:
        return float(text)


def parse(text: str) -> tuple[list[Parameter], str]:
    """The parameters of a signature such as "sum(Tensor input, *, dtype? dtype=None) -> Tensor",
    and what it says of the result.
    """
    parts, result = _C._signature_parts(text)
    return [
        Parameter(kind, name, named, REQUIRED if default is None else _default(default))
        for kind, name, named, default in parts
    ], result


def _word(kind: str) -> str:
    return kind.rstrip("?*[]0123456789")


def _type(kind: str) -> list[str]:
    """The Python types that a parameter of this kind accepts."""
    name = _word(kind)
    said = _TYPES.get(name, name)
    if "[" in kind:
        said = "Sequence[Tensor]" if name == "Tensor" else f"{said} | Sequence[{said}]"
    return [*said.split(" | "), *(["None"] if "?" in kind else [])]


def _result(text: str) -> str:
    if text == "Tensor":
        return text
    if text == "Tensor[]":
        return "tuple[Tensor, ...]"
    return f"tuple[{', '.join(['Tensor'] * text.count('Tensor'))}]"


def _joined(lists: list[list[str]]) -> str:
    """All types of some lists, each once, None last."""
    names = list(dict.fromkeys(n for types in lists for n in types))
    return " | ".join(sorted(names, key=lambda n: n == "None"))


def _merge(overloads: list[list[Parameter]]) -> list[Parameter]:
    """One list of parameters that calls of every overload fit.

    The longest overload gives order and names. What another one lacks may be left out, and what
    only another one has is given by name. A default of ``...`` says that the overload decides.
    """
    base = max(overloads, key=len)
    merged = []
    for at, p in enumerate(base):
        same = [next((q for q in o if q.name == p.name), None) for o in overloads]
        # Another overload may have another word for it in the same place (split's first two).
        alike = [q or _alias(o, at, p, base) for q, o in zip(same, overloads)]
        kinds = _joined([_type(q.kind) for q in alike if q])
        default = next((q.default for q in same if q and q.default is not REQUIRED), REQUIRED)
        if default is REQUIRED and not all(alike):
            default = None if "?" in p.kind else ...
        if p.kind.endswith("*"):  # any number of ints
            kinds, default = f"*{kinds}", REQUIRED
        merged.append(Parameter(kinds, p.name, p.named, default))
    optional = False
    for at, p in enumerate(merged):  # what follows a parameter with a default has one
        optional = optional or p.default is not REQUIRED
        if optional and p.default is REQUIRED and not p.named and p.kind[0] != "*":
            merged[at] = p._replace(default=...)
    known = {p.name for p in base}
    others: dict[str, Parameter] = {}
    for overload in overloads:
        for at, q in enumerate(overload):
            taken = at < len(base) and _alias(overload, at, base[at], base) is q
            if q.name in known or q.name in others or taken:
                continue
            default = q.default if q.default is not REQUIRED else None if "?" in q.kind else ...
            others[q.name] = Parameter(_joined([_type(q.kind)]), q.name, True, default)
    return [*merged, *others.values()]


def _alias(
    overload: list[Parameter], at: int, p: Parameter, base: list[Parameter]
) -> Parameter | None:
    """What an overload has in the place of a parameter under a name of its own."""
    if at >= len(overload) or any(q.name == p.name for q in overload):
        return None
    q = overload[at]
    if q.named or any(b.name == q.name for b in base):
        return None
    return q if _word(q.kind) == _word(p.kind) else None


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function or method of the table of operations.

    >>> import inspect
    >>> str(inspect.signature(clew.cumsum)).replace("'", "")
    '(input: Tensor, dim: int, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor'
    """
    method = type(function).__name__ == "OpMethod"
    parsed = [parse(text) for text in function.signatures]
    if method:
        parsed = [p for p in parsed if p[0] and p[0][0].kind in ("Tensor", "Operand")]
    results = list(dict.fromkeys(_result(r) for _, r in parsed))
    overloads = [p for p, _ in parsed]
    kind = inspect.Parameter
    out = []
    if method:
        out.append(kind("self", kind.POSITIONAL_ONLY))
        overloads = [o[1:] for o in overloads]
    merged = _merge(overloads)
    rest = False
    for p in merged:
        if p.kind.startswith("*"):
            rest = True
            out.append(kind(p.name, kind.VAR_POSITIONAL, annotation=p.kind[1:]))
            continue
        named = p.named or rest
        way = kind.KEYWORD_ONLY if named else kind.POSITIONAL_OR_KEYWORD
        out.append(kind(p.name, way, default=p.default, annotation=p.kind))
    if not method and not function.__name__.endswith("_"):
        several = any(r != "Tensor" for r in results)
        said = "Tensor | Sequence[Tensor] | None" if several else "Tensor | None"
        out.append(kind("out", kind.KEYWORD_ONLY, default=None, annotation=said))
    return inspect.Signature(out, return_annotation=" | ".join(results))
