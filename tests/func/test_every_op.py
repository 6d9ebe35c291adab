"""vmap of every op of the table is what a loop over the samples gives."""

from __future__ import annotations

from typing import Any

import machinery as m
import numpy as np
import pytest

import clew
from samples import Op, S, load

# Random numbers differ from sample to sample by design; "data": the result's shape depends on the
# values, which one mapped tensor cannot hold; "writes": the inputs change.
TABLE = sorted(
    (
        op
        for op in load().values()
        if not any(w in op.why for w in ("random", "data", "writes"))
        and not op.name.startswith("_")
    ),
    key=lambda op: op.name,
)
# These look at values (pivots, lengths), or write what differs into what is shared: vmap says so.
MAY_REFUSE = {
    "linalg.ldl_solve",
    "linalg.lstsq",
    "linalg.lu_solve",
    "lu_solve",
    "lu_unpack",
    "native_dropout",
    "nonzero_static",
    "segment_reduce",
}


def double(sample: S) -> S:
    return m.map_sample(
        sample, lambda a: m.to_tensor(a, "complex128" if a.dtype.kind == "c" else "float64")
    )


def call(op: Op, sample: S, tensors: list[clew.Tensor]) -> list[clew.Tensor]:
    s = m.replace_tensors(sample, tensors)
    return m.flat_outputs(m.function(op.name)(*s.args, **s.kwargs))


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.name)
def test_vmap(op: Op):
    rng = np.random.default_rng(4)
    for sample in m.samples_of(op)[:3]:
        plain = double(sample)
        first = m.tensors_in(plain)
        if not first:
            continue
        # A second sample, in the same domain: the elements of the first in another order.
        second = [
            t.flatten()[clew.tensor(rng.permutation(t.numel()))].reshape(t.shape)
            if m.is_inexact(t)
            else t
            for t in first
        ]
        try:
            call(op, plain, second)
        except RuntimeError:  # such as a matrix that is no longer positive definite
            second = first
        in_dim = 0 if op.name.startswith("view") else int(rng.integers(0, 2))
        pairs: list[Any] = [clew.stack(p, dim=min(in_dim, p[0].ndim)) for p in zip(first, second)]
        dims = tuple(min(in_dim, t.ndim) for t in first)
        mapped = clew.vmap(
            lambda *ts, plain=plain: tuple(call(op, plain, list(ts))),
            in_dims=dims,
            randomness="different",
        )
        try:
            got = mapped(*pairs)
        except RuntimeError as e:
            assert op.name in MAY_REFUSE and "vmap" in str(e), f"{op.name}{sample}: {e}"
            continue
        for k, tensors in enumerate((first, second)):
            for g, w in zip(got, call(op, plain, tensors)):
                assert (g.dtype, g.shape[1:]) == (w.dtype, w.shape), f"{op.name}{sample}"
                np.testing.assert_allclose(
                    m.to_numpy(g[k]),
                    m.to_numpy(w),
                    rtol=1e-9,
                    atol=1e-9,
                    equal_nan=True,
                    err_msg=f"{op.name}{sample}",
                )


@pytest.mark.parametrize("op", [op for op in TABLE if op.grad], ids=lambda op: op.name)
def test_gradient_of_each_sample(op: Op):
    """vmap of grad: what backward of each sample alone gives."""
    for sample in m.samples_of(op)[:1]:
        plain = double(sample)
        tensors = m.tensors_in(plain)
        index = [k for k, t in enumerate(tensors) if m.is_inexact(t)]
        if not index or not sum(t.numel() for t in tensors):
            continue

        def total(*live: Any, plain: S = plain, tensors: Any = tensors, index: Any = index) -> Any:
            full = list(tensors)
            for k, t in zip(index, live):
                full[k] = t
            outputs = [o for o in call(op, plain, full) if m.is_inexact(o)]
            # Weights that differ from element to element.
            return sum(
                ((o.real + 2 * o.imag if o.is_complex() else o) * weights(o)).sum() for o in outputs
            )

        live = [tensors[k] for k in index]
        leaves = [t.detach().clone().requires_grad_() for t in live]
        value = total(*leaves)
        if not isinstance(value, clew.Tensor) or not value.requires_grad:
            continue
        want = clew.autograd.grad(value, leaves, allow_unused=True)
        try:
            got = clew.vmap(
                clew.func.grad(total, argnums=tuple(range(len(live)))), randomness="different"
            )(*[clew.stack([t, t, t]) for t in live])
        except RuntimeError as e:
            assert op.name in MAY_REFUSE and "vmap" in str(e), f"{op.name}{sample}: {e}"
            continue
        for g, w in zip(got, want):
            w = clew.zeros_like(g[0]) if w is None else w
            for k in range(3):
                np.testing.assert_allclose(
                    m.to_numpy(g[k]),
                    m.to_numpy(w),
                    rtol=1e-9,
                    atol=1e-9,
                    equal_nan=True,
                    err_msg=f"{op.name}{sample}",
                )


def weights(o: clew.Tensor) -> clew.Tensor:
    return clew.linspace(0.5, 1.5, o.numel(), dtype=clew.float64).reshape(o.shape)
