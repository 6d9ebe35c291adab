"""Exceptions, tags and types of the module `torch` that clew itself has no use for."""

from __future__ import annotations

import enum
from typing import Any

from clew._torch._more.jit import Error as JITException
from clew._torch.absent import absent
from clew.jit import CompilationUnit as CompilationUnit
from clew.jit import ScriptFunction as ScriptFunction

__all__ = ["AcceleratorError", "FatalError", "JITException", "Tag", "qscheme"]


class AcceleratorError(RuntimeError):
    """What a device reports; there is none, so nothing raises it."""


class FatalError(Exception):
    """What ends a program."""


class Tag(enum.Enum):
    """What an operation of a library says of itself; `library` keeps no tags."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self) -> int:
        number: int = self.value
        return number


class qscheme:
    """How numbers of a quantized tensor stand for others: a name, for configurations."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


def _all_absent(names: str, why: str) -> dict[str, Any]:
    return {name: absent("", name, why) for name in names.split()}


globals().update(
    _all_absent(
        "quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic",
        "there are no quantized tensors here; fake_quantize_per_tensor_affine rounds floats",
    )
)
globals().update(
    _all_absent(
        "Block ClassType FunctionSchema Graph ListType Node OptionalType ScriptMethod ScriptObject "
        "TupleType Use Value",
        "there are no graphs of scripts; jit.script runs the Python that it is given",
    )
)


def compiled_with_cxx11_abi() -> bool:
    """True, as of every PyTorch of today."""
    return True


def sym_constrain_range(size: int, *, min: int | None = None, max: int | None = None) -> None:
    """Raises where a number is out of a range, both ends of which are in it."""
    low, high = -(2**63) if min is None else min, 2**63 - 1 if max is None else max
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(
    size: int, *, min: int | None = None, max: int | None = None
) -> None:
    """Raises where a size is out of a range; without one it may be 0 and more."""
    if max is not None and max <= 2:
        raise RuntimeError(
            f"Max value to constrain_range_for_size must be greater than 2. got: {max}"
        )
    sym_constrain_range(size, min=0 if min is None else min, max=max)
