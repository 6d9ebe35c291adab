"""Products of groups, and helpers that copies of PyTorch's functions call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import clew
from clew import Tensor
from clew._base.provenance import user_level
from clew._torch.absent import absent
from clew.nn.functional._attention import _check_shapes as _mha_shape_check  # noqa: F401
from clew.nn.functional._core import verify_spatial_size as _verify_spatial_size  # noqa: F401
from clew.nn.functional._pool import unpooled_sizes as _unpool_output_size  # noqa: F401

_WHY = "tensors of 8-bit floats are storage here, and are not multiplied"
ScalingType = absent("nn.functional", "ScalingType", _WHY)
SwizzleType = absent("nn.functional", "SwizzleType", _WHY)
scaled_mm = absent("nn.functional", "scaled_mm", _WHY)
scaled_grouped_mm = absent("nn.functional", "scaled_grouped_mm", _WHY)


def _none_or_dtype(input: Any) -> Any:
    """None of None, the dtype of a tensor."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("_none_or_dtype: input must be None or a tensor")


def _canonical_mask(
    mask: Any,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Any:
    """A mask as numbers that are added: -inf where one of bools is True.

    Args:
        mask: bools, floating-point numbers, or None.
        mask_name: what messages call it.
        other_type: the dtype of a mask that should have the same one.
        other_name: what messages call that.
        target_type: the dtype of the result.
        check_other: warn where the dtypes of the masks differ.
    """
    if mask is None:
        return None
    if mask.dtype is not clew.bool and not mask.is_floating_point():
        raise AssertionError(f"{mask_name}: only bool and floating types are supported")
    if check_other and other_type is not None and other_type is not mask.dtype:
        import warnings

        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for "
            "both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return clew.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """One product for each group.

    Two matrices are cut along the dim that they share, a matrix and a batch of matrices along the
    matrix's other dim; two batches are multiplied one by one.

    Args:
        mat_a: a matrix or a batch of matrices.
        mat_b: a matrix or a batch of matrices.
        offs: where each group ends, int32; None for two batches. What lies behind the last one is
            left out, and is zero in the result.
        bias: None.
        out_dtype: None, or the dtype of mat_a.
    """
    floats = (clew.float32, clew.bfloat16, clew.float16)
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} must have 2 or 3 dims; got {mat.dim()}")
        if mat.dtype not in floats or mat.dtype is not mat_a.dtype:
            raise RuntimeError(
                "grouped_mm: mat_a and mat_b must both be float32, bfloat16 or float16; got "
                f"{mat_a.dtype} and {mat_b.dtype}"
            )
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            "grouped_mm: the columns of mat_a must be as many as the rows of mat_b; got "
            f"{mat_a.shape[-1]} and {mat_b.shape[-2]}"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: bias must be None")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(f"grouped_mm: out_dtype must be {mat_a.dtype}; got {out_dtype}")
    if mat_a.dim() == mat_b.dim() == 3:
        if offs is not None:
            raise RuntimeError("grouped_mm: offs must be None for two batches of matrices")
        return clew.bmm(mat_a, mat_b)
    if offs is None or offs.dim() != 1 or offs.dtype is not clew.int32:
        raise RuntimeError("grouped_mm: offs must be one-dimensional and int32")
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dim() == 3 and mat.shape[0] != len(offs):
            raise RuntimeError(
                f"grouped_mm: offs must have an end for each matrix of {name}, {mat.shape[0]}; got "
                f"{len(offs)}"
            )
    ends = offs.tolist()
    cut = mat_a.shape[-1] if mat_a.dim() == mat_b.dim() else 0
    cut = cut or (mat_a.shape[0] if mat_a.dim() == 2 else mat_b.shape[1])
    groups = list(zip([0, *ends[:-1]], ends))
    if any(not 0 <= begin <= end <= cut for begin, end in groups):
        raise RuntimeError(f"grouped_mm: offs must rise from 0 to {cut} at most; got {ends}")
    if mat_b.dim() == 3:
        parts = [mat_a[s:e] @ mat_b[i] for i, (s, e) in enumerate(groups)]
        rest = mat_a.new_zeros(cut - (ends[-1] if ends else 0), mat_b.shape[2])
        return clew.cat([*parts, rest])
    if mat_a.dim() == 3:
        parts = [mat_a[i] @ mat_b[:, s:e] for i, (s, e) in enumerate(groups)]
        rest = mat_b.new_zeros(mat_a.shape[1], cut - (ends[-1] if ends else 0))
        return clew.cat([*parts, rest], 1)
    if not groups:
        return mat_a.new_zeros(0, mat_a.shape[0], mat_b.shape[1])
    return clew.stack([mat_a[:, s:e] @ mat_b[s:e] for s, e in groups])


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Any = None
) -> list[Tensor]:
    """Queries, keys and values of attention, each from a third of the weight's rows.

    Args:
        q: what queries are made of.
        k: what keys are made of.
        v: what values are made of.
        w: the three weights, one below the other.
        b: the three biases, or None.
    """
    biases = (None, None, None) if b is None else b.chunk(3)
    linear = clew.nn.functional.linear
    return [linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), biases)]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Any = None,
    b_k: Any = None,
    b_v: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of attention, each from a weight of its own."""
    linear = clew.nn.functional.linear
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raises where batch normalisation would have one value a channel."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(size)}"
        )


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dim of a softmax that was given none, with a warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=user_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1
