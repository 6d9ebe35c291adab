"""Questions about sizes that may be symbols; here they are numbers."""

from __future__ import annotations

from typing import Any

from clew._torch.absent import _COMPILER, absent

DimDynamic = absent("fx.experimental.symbolic_shapes", "DimDynamic", _COMPILER)
ShapeEnv = absent("fx.experimental.symbolic_shapes", "ShapeEnv", _COMPILER)
StatelessSymbolicContext = absent(
    "fx.experimental.symbolic_shapes", "StatelessSymbolicContext", _COMPILER
)


class GuardOnDataDependentSymNode(RuntimeError):
    """A size that data decides was asked for its value; here its value is known."""


class ConstraintViolationError(RuntimeError):
    """A size that was said to be free is not."""


def is_symbolic(val: Any) -> bool:
    """False: sizes are numbers."""
    return False


def free_symbols(val: Any) -> set[Any]:
    """The symbols in sizes: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether there are symbols in sizes: no."""
    return False


has_free_unbacked_symbols = has_symbolic_sizes_strides = has_free_symbols


def guard_or_false(a: Any) -> bool:
    """The truth of a condition, which is known."""
    return bool(a)


guard_bool = guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def statically_known_false(a: Any) -> bool:
    """Whether a condition is known to be false."""
    return not a


def guard_int(a: Any) -> int:
    """A size as a number."""
    return int(a)


def guard_float(a: Any) -> float:
    """A number."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """A number, as it is."""
    return a


def has_static_value(a: Any) -> bool:
    """Whether a size is known: it is."""
    return True


has_guarding_hint = is_concrete_bool = is_concrete_int = is_concrete_float = has_static_value


def sym_eq(x: Any, y: Any) -> bool:
    """Whether sizes are equal."""
    return bool(x == y)


def sym_and(*conditions: Any) -> bool:
    """Whether all hold."""
    return all(conditions)


def sym_or(*conditions: Any) -> bool:
    """Whether one holds."""
    return any(conditions)
