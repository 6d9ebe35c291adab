"""What operations are called in an exported program, and what a program may call.

A program may call operations of the table, a few methods and functions that make tensors,
arithmetic of numbers, and operations that this process has registered (clew.library); nothing else,
whatever a file says.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import clew
from clew import _C, Tensor
from clew._base.function_modes import _Again
from clew._ops.signatures import parse
from clew.export._symbols import NUMBER_OPS

__all__ = [
    "CREATION",
    "WHOLE",
    "added",
    "canonical",
    "function_of",
    "inplace_at",
    "number_function",
    "written_by",
]

# Methods that are recorded as they are.
METHODS = frozenset(
    """
    clone contiguous to type type_as cpu float double half bfloat16 int long short char byte bool
    cfloat cdouble nonzero unique unique_consecutive index_put index_put_ index_reduce
    index_reduce_ detach detach_ copy_ fill_ zero_ new_zeros new_ones new_empty new_full new_tensor
    uniform_ normal_ bernoulli_ random_ exponential_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_
    swapdims_ clone select_scatter slice_scatter diagonal_scatter narrow_copy cauchy_ log_normal_
    geometric_
    """.split()
)
# Functions that make tensors of numbers.
CREATION = frozenset(
    """
    arange empty empty_like empty_strided eye full full_like linspace logspace ones ones_like rand
    rand_like randint randint_like randn randn_like randperm scalar_tensor tril_indices
    triu_indices zeros zeros_like normal
    """.split()
)
OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
# Functions in Python that make constants of sizes or have a gradient of their own, and are
# therefore recorded whole.
WHOLE = {
    "nn.functional.interpolate": ("clew.nn.functional", "interpolate"),
    **{
        f"nn.functional.{n}": ("clew.nn.functional", n)
        for n in ("affine_grid", "grid_sample", "ctc_loss", "pdist")
    },
    "nn.packed_rnn": ("clew.nn.modules.rnn", "_packed_rnn"),
    "linalg.matrix_exp": ("clew.linalg", "matrix_exp"),
    "linalg.pseudo_inverse": ("clew.linalg._svd", "_pseudo_inverse"),
    "frexp": ("clew", "frexp"),
    "cdist": ("clew", "cdist"),
    **{
        f"special.{n}": ("clew.special", n)
        for n in """
        gammainc gammaincc airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0
        modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
        chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
        """.split()
    },
}
UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not", "pos": "positive"}


@functools.cache
def _of_slots() -> dict[str, tuple[str, bool]]:
    """Of a slot's name: the operation, and whether its operands come in reverse."""
    found = {f"__{n}__": (n, False) for n in COMPARISONS}
    for name, op in OPERATORS.items():
        found[f"__{name}__"] = (op, False)
        found[f"__r{name}__"] = (op, True)
        found[f"__i{name}__"] = (op + "_", False)
    found["__imatmul__"] = ("matmul", False)
    found |= {f"__{n}__": (op, False) for n, op in UNARY.items()}
    found["__getitem__"] = ("getitem", False)
    found["__setitem__"] = ("setitem", False)
    return found


@functools.cache
def _of_functions() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for name in dir(_C.ops):
        function = getattr(_C.ops, name)
        found[function] = name if _C.functions.get(name) == function else f"ops.{name}"
    for name, function in _C.functions.items():
        if found.get(function, "ops.").startswith("ops."):
            found[function] = name
    return found


def canonical(function: Any) -> tuple[str, bool] | None:
    """The operation's name, and whether the operands are in reverse; None where a call is no
    operation of its own."""
    kind = type(function).__name__
    if kind == "_Operation" and type(function).__module__ == "clew._registered":
        return function._qualname, False
    if kind == "OpFunction":
        found = _of_functions().get(function)
        return None if found is None else (found, False)
    name = getattr(function, "__name__", "")
    if kind == "OpMethod":
        if name in _C.functions:
            return name, False
        return (f"ops.{name}", False) if hasattr(_C.ops, name) else (f"Tensor.{name}", False)
    if kind == "wrapper_descriptor":
        return _of_slots().get(name)
    if name == "type_":
        name = "type"
    if name in METHODS and (kind == "method_descriptor" or kind == "function"):
        module = getattr(function, "__module__", "") or ""
        if kind == "method_descriptor" or module in (
            "clew._tensor.conversions",
            "clew._tensor.methods",
            "clew._ops.scattering",
            "clew._ops.shaping",
            "clew",
        ):
            return f"Tensor.{name}", False
        if getattr(Tensor, name, None) is function or module.startswith("clew._"):
            return f"Tensor.{name}", False
    return None


@functools.cache
def inplace_at(op: str) -> int | None:
    """The position of an operation's argument `inplace`; None where there is none."""
    for text in getattr(function_of(op), "signatures", ()):
        names = [p.name for p in parse(text)[0]]
        if "inplace" in names:
            return names.index("inplace")
    return None


def _select(x: Any, index: Any) -> Any:
    return x[index]


def _write(x: Any, index: Any, value: Any) -> None:
    x[index] = value


def _size(x: Any, dim: int) -> int:
    return x.shape[dim]


_OWN: dict[str, Callable[..., Any]] = {
    "getitem": _select,
    "setitem": _write,
    "size": _size,
    "numel": lambda x: x.numel(),
    "item": lambda x: x.item(),
    "alias": lambda x: x,
    # Stands where a variable has no value; nothing reads or writes it.
    "placeholder": lambda sizes, dtype: clew.zeros(sizes, dtype=dtype),
}


def _clip(low: Any, x: Any, high: Any) -> Any:
    return max(low, min(x, high))


NUMBERS: dict[str, Callable[..., Any]] = {
    **NUMBER_OPS,
    "neg": lambda a: -a,
    "pos": lambda a: +a,
    "abs": abs,
    "invert": lambda a: ~a,
    "int": int,
    "float": float,
    "bool": bool,
    "min": min,
    "max": max,
    "round": round,
    "not": lambda a: not a,
    "both": lambda a, b: bool(a) and bool(b),
    "either": lambda a, b: bool(a) or bool(b),
    "choose": lambda c, a, b: a if c else b,
    **{
        f"math.{n}": getattr(math, n)
        for n in (
            "sqrt exp log log2 log10 floor ceil trunc sin cos tan tanh pow isqrt fabs isnan isinf "
            "isfinite expm1 log1p sinh cosh asin acos atan atan2 hypot copysign fmod gcd"
        ).split()
    },
}


def number_function(name: str) -> Callable[..., Any] | None:
    """The arithmetic of ``py.<name>``; None where there is none."""
    return NUMBERS.get(name)


def added(op: str) -> Any:
    """The operation `namespace::name` that a program added; None where none is registered."""
    from clew._registered import _registry

    return _registry.get(op)


def written_by(op: str, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that a call of such an operation writes to."""
    schema = getattr(added(op), "_given_schema", None)
    if schema is None:
        return []
    given = {**dict(zip((a.name for a in schema.arguments), args)), **kwargs}
    return [given[name] for name in schema.mutates if given.get(name) is not None]


def function_of(op: str) -> Callable[..., Any] | None:
    """What runs an operation; None where a program may not call it."""
    return added(op) if "::" in op else _own_function(op)


def _own(found: Any) -> Any:
    """What is called, where something stands for it while a model is recorded."""
    found = getattr(found, "_clew_own", found)
    return found.own if isinstance(found, _Again) else found


@functools.lru_cache(maxsize=4096)
def _own_function(op: str) -> Callable[..., Any] | None:
    if op in _OWN:
        return _OWN[op]
    if op in _C.functions:
        return _C.functions[op]
    if op in WHOLE:
        import importlib

        return _own(getattr(importlib.import_module(WHOLE[op][0]), WHOLE[op][1]))
    prefix, _, name = op.rpartition(".")
    if prefix == "ops":
        found = getattr(_C.ops, name, None)
        return found if type(found).__name__ == "OpFunction" else None
    if prefix == "Tensor" and name in METHODS:
        return _own(getattr(Tensor, name))
    if prefix == "" and name in CREATION:
        return _own(getattr(clew, name))
    if prefix == "py":
        return number_function(name)
    if op.startswith("py."):
        return number_function(op[3:])
    if prefix == "Tensor":
        found = getattr(Tensor, name, None)
        return found if type(found).__name__ == "OpMethod" else None
    return None
