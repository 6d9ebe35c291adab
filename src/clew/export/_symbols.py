"""Numbers that are not constants of a program: sizes of inputs, elements of tensors.

A symbol has its value in each of the runs that are recorded together. Python arithmetic with it is
recorded; where Python insists on a number, the runs must agree (then the program checks it), or
the export stops at that line.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from clew import _C
from clew.export._errors import ExportError, here, library_asks

__all__ = ["Poison", "Sym", "SymBool", "SymFloat", "SymInt", "SymSize", "broadcast_size"]

# Functions of the library that ask for data only to raise, or to hint at what they compute anyway.
_CHECKS = {
    *(
        "check",
        "_check_parameters",
        "_validate_sample",
        "_check_edges",
        "_check_first",
        "gaussian_nll_loss",
        "_unpool",
        "_is_causal",
    ),
    *("_check_range", "_quantile", "segment_reduce", "cov", "_observation_weights"),
}
_recorder: list[Any] = []  # the running recorders, innermost last


def recorder() -> Any:
    """The recorder that is running."""
    if not _recorder:
        raise ExportError("a size of an export was used after the export had ended")
    return _recorder[-1]


class Sym:
    """A number with a value in each run."""

    __slots__ = ("vals", "value")
    kind = ""

    def __init__(self, value: Any, vals: list[Any]) -> None:
        self.value = value
        self.vals = vals

    def __repr__(self) -> str:
        if not _recorder:
            return f"{self.kind}({self.vals[0]})"
        return repr(settle(self, "its text"))

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        # Text may be a key, or be compared: what it says is a decision.
        return format(settle(self, "its text"), spec)

    def __hash__(self) -> int:
        # A dict or a set tells by it whether it has the number; the library's hold sizes to
        # compare them with themselves.
        if library_asks():
            return id(self)
        return hash(settle(self, "its place in a dict or a set"))

    def __bool__(self) -> bool:
        return bool(settle(self.same(bool), "its truth"))

    def same(self, change: Callable[[Any], Any]) -> Any:
        """This number as int, float or bool."""
        return compute(change.__name__, change, (self,))

    def __index__(self) -> int:
        return int(settle(self, "its value"))

    def __int__(self) -> int:
        return int(settle(self, "its value"))

    def __float__(self) -> float:
        return float(settle(self, "its value"))

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __floor__(self) -> Any:
        return compute("math.floor", math.floor, (self,))

    def __ceil__(self) -> Any:
        return compute("math.ceil", math.ceil, (self,))

    def __trunc__(self) -> Any:
        return compute("math.trunc", math.trunc, (self,))

    def __round__(self, digits: Any = None) -> Any:
        return compute("round", round, (self,) if digits is None else (self, digits))


class SymInt(Sym):
    """An int."""

    __slots__ = ()
    kind = "int"
    __class__ = property(lambda self: int)
    real = numerator = property(lambda self: self)
    imag = property(lambda self: 0)
    denominator = property(lambda self: 1)

    def bit_length(self) -> int:
        return int(settle(self, "its bits")).bit_length()


class SymFloat(Sym):
    """A float."""

    __slots__ = ()
    kind = "float"
    __class__ = property(lambda self: float)

    real = property(lambda self: self)
    imag = property(lambda self: 0.0)

    def as_integer_ratio(self) -> tuple[int, int]:
        return float(settle(self, "its value")).as_integer_ratio()

    def is_integer(self) -> Any:
        return compute("eq", operator.eq, (self, compute("int", int, (self,))))


class SymBool(Sym):
    """A bool."""

    __slots__ = ()
    kind = "bool"
    __class__ = property(lambda self: bool)


# Operands that change nothing, and on which sides.
_NEUTRAL = {"add": (0, (0, 1)), "sub": (0, (1,)), "mul": (1, (0, 1)), "floordiv": (1, (1,))}
_MAY_FAIL: dict[str, type[Exception]] = {
    **dict.fromkeys(("truediv", "floordiv", "mod", "pow"), ZeroDivisionError),
    **dict.fromkeys(("math.exp", "math.pow"), OverflowError),
    **dict.fromkeys(("math.sqrt", "math.log", "math.log2", "math.log10", "math.isqrt"), ValueError),
}
_KINDS: dict[type, type[Sym]] = {int: SymInt, float: SymFloat, bool: SymBool}
SYMS = (SymInt, SymFloat, SymBool)


def value_in(x: Any, run: int) -> Any:
    """A number's value in a run."""
    return x.vals[run] if type(x) in SYMS else x


def compute(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Records ``py.<name>`` of numbers."""
    rec = recorder()
    if len(args) == 2:
        same = _NEUTRAL.get(name)
        for k in (0, 1):
            other = args[1 - k]
            if same is not None and k in same[1] and type(args[k]) is int and args[k] == same[0]:
                if type(other) is SymInt:
                    return other
    vals = []
    if name in _MAY_FAIL:
        rec.may_fail(_MAY_FAIL[name]("arithmetic"))
    for run in range(rec.runs):
        try:
            vals.append(function(*(value_in(a, run) for a in args)))
        except ArithmeticError as e:
            if rec.active[run]:
                rec.may_fail(e)
                raise
            vals.append(vals[0] if vals else 0)
    if vals[0] is NotImplemented:
        return NotImplemented
    kind = type(vals[0])
    if kind not in _KINDS:
        raise ExportError(
            f"export: {name} of a number that varies gives a {kind.__name__} at {here()}"
        )
    vals = [kind(v) for v in vals]
    return rec.number(f"py.{name}", args, _KINDS[kind], vals)


def compute_both(a: Any, b: Any) -> Any:
    """``a and b`` of conditions, plain ones or numbers of the program."""
    if a is True or b is True or a is False or b is False:
        return False if a is False or b is False else b if a is True else a
    return compute("both", lambda x, y: bool(x) and bool(y), (a, b))


def settle(sym: Sym, what: str) -> Any:
    """The value that a number has in all runs, which the program is to check."""
    rec = recorder()
    first = sym.vals[0]
    seen = [v for run, v in enumerate(sym.vals) if rec.active[run]]
    if any(v != first for v in seen):
        raise ExportError(
            f"export: {what} decides here in Python, and it varies ({seen}), at {here()}\n"
            f"  Write the decision as `if`, `while` or `for` in a function of your own (these are "
            f"kept), or as clew.where(); or leave the dim out of dynamic_shapes."
        )
    asks = library_asks()
    rec.guard(sym, first, decides=not asks or (sym.value.data and asks not in _CHECKS))
    return first


def _binary(name: str, function: Callable[..., Any]) -> tuple[Any, Any]:
    def plain(self: Any, other: Any) -> Any:
        if type(other) not in SYMS and type(other) not in (int, float, bool):
            return NotImplemented
        if name in _TRUE_IF_SAME and type(other) in SYMS and self.vals == other.vals:
            if not (self.value.data or other.value.data) and len(set(self.vals)) > 1:
                return _TRUE_IF_SAME[name]  # the same size under two names
        return compute(name, function, (self, other))

    def reflected(self: Any, other: Any) -> Any:
        if type(other) not in (int, float, bool):
            return NotImplemented
        return compute(name, function, (other, self))

    return plain, reflected


def _unary(name: str, function: Callable[..., Any]) -> Any:
    return lambda self: compute(name, function, (self,))


_TRUE_IF_SAME = {"eq": True, "ne": False, "le": True, "ge": True, "lt": False, "gt": False}
NUMBER_OPS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
for _name, _function in NUMBER_OPS.items():
    _plain, _reflected = _binary(_name, _function)
    setattr(Sym, f"__{_name}__", _plain)
    if _name not in _TRUE_IF_SAME:
        setattr(Sym, f"__r{_name}__", _reflected)
_UNARY: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
}
for _name, _function in _UNARY.items():
    setattr(Sym, f"__{_name}__", _unary(_name, _function))


class SymSize(tuple):
    """A shape with sizes that vary."""

    __slots__ = ()
    __class__ = property(lambda self: _C.Size)

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return size_of(found) if type(found) is tuple else found

    def __add__(self, other: Any) -> Any:
        return size_of((*self, *other))

    def __radd__(self, other: Any) -> Any:
        return size_of((*other, *self))

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, (tuple, list, _C.Size)):
            return False
        same: Any = len(self) == len(other)
        for a, b in zip(self, other):
            if same is not False:
                same = compute_both(same, a == b)
        return same

    def __ne__(self, other: Any) -> Any:
        same = self == other
        return compute("not", operator.not_, (same,)) if type(same) is SymBool else not same

    __hash__ = tuple.__hash__

    def numel(self) -> Any:
        """The product."""
        total: Any = 1
        for n in self:
            total = total * n
        return total


def size_of(sizes: Any) -> Any:
    """A clew.Size, or a SymSize where a size varies."""
    return SymSize(sizes) if any(type(n) in SYMS for n in sizes) else _C.Size(sizes)


def broadcast_size(*shapes: Any) -> Any:
    """broadcast_shapes() of shapes with sizes that vary; the operations check that they fit."""
    listed = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    out: list[Any] = []
    for d in range(1, max((len(s) for s in listed), default=0) + 1):
        sizes = [s[-d] for s in listed if len(s) >= d]
        found: Any = next((n for n in sizes if type(n) is int and n != 1), None)
        if found is None:
            found = 1
            for n in sizes:
                if type(n) in SYMS and (type(found) is int or n.vals != found.vals):
                    found = n if type(found) is int else compute("max", max, (found, n))
        out.insert(0, found)
    return size_of(out)


class Poison:
    """A variable that has no single value after a branch or a loop; using it raises."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        object.__setattr__(self, "_why", why)

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        raise ExportError(object.__getattribute__(self, "_why"))

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # inspect asks every object
            raise AttributeError(name)
        return self._fail()

    __setattr__ = _fail
    __bool__ = __iter__ = __len__ = __call__ = __getitem__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rtruediv__ = _fail
    __hash__ = None  # type: ignore[assignment]
