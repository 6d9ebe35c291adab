"""Every operation that takes out=: what it writes to, and what it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import machinery as m
import numpy as np
import pytest

import clew
from samples import Op, load

TABLE = load()
OPS = [
    op
    for op in sorted(TABLE.values(), key=lambda op: op.name)
    if op.out and not op.name.startswith("_") and "random" not in op.why and "view" not in op.why
]

COMPUTED_IN_OUT_DTYPE = ("cumprod", "cumsum", "prod", "sum")


def case(op: Op) -> tuple[Any, clew.Tensor] | None:
    """A call that takes out=, and its result."""
    for sample in m.samples_of(op):
        tensors = m.map_sample(
            sample, lambda a: m.to_tensor(a, "complex128" if a.dtype.kind == "c" else "float64")
        )
        want = m.function(op.name)(*tensors.args, **tensors.kwargs)
        if isinstance(want, clew.Tensor) and want.numel() > 1:

            def call(out: clew.Tensor, t: Any = tensors) -> Any:
                return m.function(op.name)(*t.args, out=out, **t.kwargs)

            return call, want
    return None


def same(got: clew.Tensor, want: clew.Tensor) -> None:
    np.testing.assert_allclose(m.to_numpy(got), m.to_numpy(want), equal_nan=True, rtol=1e-6)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_out_forms(op: Op):
    found = case(op)
    if found is None:
        return
    call, want = found
    shape = tuple(want.shape)

    # A part of a larger tensor: the rest stays.
    whole = clew.ones(*shape, 3, dtype=want.dtype)
    part = whole[..., 1]
    assert call(part) is part and part.shape == shape
    same(part, want)
    assert (whole[..., 0] == 1).all() and (whole[..., 2] == 1).all()

    # Another shape: a warning, and the right one.
    other = clew.zeros(want.numel() + 5, dtype=want.dtype)
    with pytest.warns(UserWarning, match="resized"):
        call(other)
    assert other.shape == shape
    same(other, want)

    # More than one element at a place.
    with pytest.raises(RuntimeError, match="single memory location"):
        call(clew.zeros(1, dtype=want.dtype).expand(shape))

    # What asks for a gradient.
    if m.is_inexact(want):
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            call(clew.zeros(shape, dtype=want.dtype, requires_grad=True))

    # Another dtype: converted, or refused before anything is written.
    for dtype in (clew.float32, clew.complex128, clew.int32):
        if dtype == want.dtype or op.name in COMPUTED_IN_OUT_DTYPE:
            continue
        out = clew.full(shape, 7, dtype=dtype)
        try:
            call(out)
        except (RuntimeError, TypeError, NotImplementedError):
            assert (out == 7).all()
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same(out, want.to(dtype))
