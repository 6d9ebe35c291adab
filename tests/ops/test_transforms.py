"""Every op under the function transforms: vmap against a loop, gradients through and inside vmap,
jvp of vjp against vjp of vjp.
"""

from __future__ import annotations

from typing import Any

import machinery as m
import numpy as np
import pytest

import clew
from clew.func import jvp, vjp, vmap
from samples import Op, load

OPS = sorted(load().values(), key=lambda op: op.name)


def draws(op: Op) -> bool:
    signatures = getattr(m.function(op.name), "signatures", ())
    return (
        "random" in op.why
        or op.name == "binomial"
        or ("dropout" in op.name and "backward" not in op.name)
        or any("Generator" in s for s in signatures)
    )


PLAIN = [op for op in OPS if not draws(op) and "data" not in op.why and "writes" not in op.why]
WITH_GRAD = [op for op in PLAIN if op.grad]
SECOND = [op for op in WITH_GRAD if op.second]
B = 2


def by_name(op: Op) -> str:
    return op.name


def batch_of(t: clew.Tensor) -> clew.Tensor:
    """Samples that an op which takes t takes too."""
    other = t * 0.9 if m.is_inexact(t) else t
    return clew.stack([t, other])


def call(op: Op, sample: Any, tensors: Any) -> list[clew.Tensor]:
    s = m.replace_tensors(sample, list(tensors))
    return m.flat_outputs(m.function(op.name)(*s.args, **s.kwargs))


def compare(got: Any, want: Any, context: str) -> None:
    assert len(got) == len(want), context
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, f"{context}: {g.shape}, {w.shape}"
        np.testing.assert_allclose(
            m.to_numpy(g), m.to_numpy(w), rtol=1e-9, atol=1e-9, equal_nan=True, err_msg=context
        )


def mappings(n: int) -> list[tuple[int | None, ...]]:
    """Which inputs are mapped: all, only the first, only the last."""
    found = [(0,) * n]
    if n > 1:
        found += [(0, *(None,) * (n - 1)), (*(None,) * (n - 1), 0)]
    return found


@pytest.mark.parametrize("op", PLAIN, ids=by_name)
def test_vmap(op: Op):
    """vmap gives what a loop over the samples gives, whichever inputs are mapped."""
    for sample in m.samples_of(op)[:4]:
        plain = m.double(sample)
        tensors = m.tensors_in(plain)
        if not tensors:
            continue
        batched = [batch_of(t) for t in tensors]
        for in_dims in mappings(len(tensors)):
            given = [b if d == 0 else t for b, t, d in zip(batched, tensors, in_dims)]
            rows = [
                call(op, plain, [g[i] if d == 0 else g for g, d in zip(given, in_dims)])
                for i in range(B)
            ]
            if any(a.shape != b.shape for a, b in zip(*rows)):
                continue
            want = [clew.stack(list(column)) for column in zip(*rows)]
            got = vmap(lambda *ts, s=plain: tuple(call(op, s, ts)), in_dims=in_dims)(*given)
            compare(got, want, f"{op.name}{sample} mapped {in_dims}")


@pytest.mark.parametrize("op", WITH_GRAD, ids=by_name)
def test_gradients_and_vmap(op: Op):
    """The gradient through vmap, and the one taken inside it, are those of the loop."""
    rng = np.random.default_rng(3)
    for sample in m.samples_of(op)[:2]:
        plain = m.double(sample)
        problem = m.Problem(m.function(op.name), plain)
        if not problem.inputs or not sum(t.numel() for t in problem.inputs):
            continue
        batched = [batch_of(t) for t in problem.inputs]
        rows = [problem(*[b[i] for b in batched]) for i in range(B)]
        if any(a.shape != b.shape for a, b in zip(*rows)):
            continue
        seeds = [m.random_like(clew.stack(list(c)), rng) for c in zip(*rows)]
        want = []
        for i in range(B):
            leaves = [b[i].clone().requires_grad_() for b in batched]
            outs = problem(*leaves)
            live = [(o, s[i]) for o, s in zip(outs, seeds) if o.requires_grad]
            grads = clew.autograd.grad(
                [o for o, _ in live], leaves, [s for _, s in live], allow_unused=True
            )
            want.append([clew.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)])
        expect = [clew.stack(list(column)) for column in zip(*want)]

        def pulled(*ts: Any, p: Any = problem, n: int = len(batched)) -> Any:
            _, pull = vjp(lambda *xs: tuple(p(*xs)), *ts[:n])
            return pull(tuple(ts[n:]))

        compare(vmap(pulled)(*batched, *seeds), expect, f"{op.name}{sample}: vjp inside vmap")
        leaves = [b.clone().requires_grad_() for b in batched]
        outs = vmap(lambda *xs, p=problem: tuple(p(*xs)))(*leaves)
        live = [(o, s) for o, s in zip(outs, seeds) if o.requires_grad]
        through = clew.autograd.grad(
            [o for o, _ in live], leaves, [s for _, s in live], allow_unused=True
        )
        filled = [clew.zeros_like(x) if g is None else g for g, x in zip(through, leaves)]
        compare(filled, expect, f"{op.name}{sample}: gradient through vmap")


@pytest.mark.parametrize("op", SECOND, ids=by_name)
def test_jvp_of_vjp(op: Op):
    """<w, d/dx (vjp of seed) direction> by forward over reverse and by reverse over reverse."""
    rng = np.random.default_rng(4)
    for sample in m.samples_of(op)[:3]:
        problem = m.Problem(m.function(op.name), m.double(sample))
        inputs = problem.inputs
        if not inputs or not sum(t.numel() for t in inputs):
            continue
        seeds = tuple(m.random_like(o, rng) for o in problem(*inputs))
        directions = [m.random_like(t, rng) for t in inputs]
        weights = [m.random_like(t, rng) for t in inputs]

        def gradient(*xs: Any, p: Any = problem, seeds: Any = seeds) -> Any:
            return vjp(lambda *ys: tuple(p(*ys)), *xs)[1](seeds)

        _, tangents = jvp(gradient, tuple(inputs), tuple(directions))
        forward = sum(m.inner(w, t) for w, t in zip(weights, tangents))
        _, pull = vjp(gradient, *inputs)
        reverse = sum(m.inner(g, d) for g, d in zip(pull(tuple(weights)), directions))
        assert abs(forward - reverse) < 1e-8 * max(1.0, abs(reverse)) or np.isnan(reverse), (
            f"{op.name}{sample}: forward over reverse {forward}, reverse over reverse {reverse}"
        )


@pytest.mark.parametrize("op", [op for op in OPS if draws(op)], ids=by_name)
def test_random_ops_and_vmap(op: Op):
    """An error by default; equal draws with "same"."""
    if op.name.startswith("_") or "writes" in op.why:
        return
    for sample in m.samples_of(op)[:2]:
        plain = m.double(sample)
        tensors = m.tensors_in(plain)
        if not tensors or not all(t.numel() for t in tensors):
            continue
        same = [clew.stack([t] * 3) for t in tensors]

        def run(*ts: Any, s: Any = plain) -> Any:
            return tuple(call(op, s, ts))

        first = call(op, plain, tensors)
        second = call(op, plain, tensors)
        if all(a.equal(b) or bool((a.isnan() & b.isnan()).any()) for a, b in zip(first, second)):
            continue  # this sample draws nothing that shows
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(run)(*same)
        for out in vmap(run, randomness="same")(*same):
            for i in (1, 2):
                assert out[i].equal(out[0]), f"{op.name}{sample}"
        apart = vmap(run, randomness="different")(*same)
        assert [o.shape for o in apart] == [(3, *o.shape) for o in first]
