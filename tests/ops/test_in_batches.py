"""Every op of the table on several samples at once, under autobatch: results, gradients and second
derivatives are those of the samples one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machinery import function, samples_of

import clew
from clew._program import autobatch
from clew.utils._pytree import tree_leaves
from samples import Op, S, load

TABLE = load()
# Those that are run: the first ones of each op show most of its forms.
MOST_SAMPLES = 6


def call_of(op: Op) -> Any:
    try:
        return function(op.name)
    except AttributeError:
        return getattr(clew.Tensor, op.name, None)


def varied(sample: S, lengths: bool) -> list[S]:
    """The sample with other numbers, and with other sizes of the first dim."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    size = arrays[0].shape[0] if arrays and arrays[0].ndim else -1

    def other(value: Any, k: int) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.kind in "fc":
            value = value * (1.0, 1.1, 0.9)[k]
        cut = slice(None, (None, -1, 1)[k])
        return value[cut] if lengths and value.ndim and value.shape[0] == size else value

    return [
        S(*(other(a, k) for a in sample.args), **{n: other(a, k) for n, a in sample.kwargs.items()})
        for k in range(3)
    ]


def tensors(variants: list[S], shared: bool, grad: bool) -> list[tuple[list[Any], dict[str, Any]]]:
    """The samples' arguments; the first one is the same for all if it is shared."""

    def made(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            return type(value)(map(made, value))
        if not isinstance(value, np.ndarray):
            return value
        return clew.tensor(value).requires_grad_(grad and value.dtype.kind in "fc")

    calls = [([*map(made, s.args)], {n: made(a) for n, a in s.kwargs.items()}) for s in variants]
    if shared:
        for args, _ in calls:
            args[0] = calls[0][0][0]
    return calls


def outcome(run: Any, calls: Any, batched: bool) -> list[clew.Tensor]:
    """Results, gradients, gradients of the gradients."""
    clew.manual_seed(0)
    leaves: list[clew.Tensor] = []
    for t in tree_leaves(calls):
        if isinstance(t, clew.Tensor) and t.requires_grad and all(t is not o for o in leaves):
            leaves.append(t)
    if batched:
        autobatch._history.clear()
        with clew.autobatch():
            results = [run(*args, **options) for args, options in calls]
    else:
        results = [run(*args, **options) for args, options in calls]
    found = [t for t in tree_leaves(results) if isinstance(t, clew.Tensor)]
    roots = [t for t in found if t.requires_grad]
    if not roots:
        return found
    total = sum((weighted(t) for t in roots), clew.zeros(()))
    grads = filled(clew.autograd.grad(total, leaves, create_graph=True, allow_unused=True), leaves)
    again = [g for g in grads if g.requires_grad]
    if again:
        total = sum((g.abs().square().sum() for g in again), clew.zeros(()))
        second = clew.autograd.grad(total, leaves, allow_unused=True)
    else:
        second = (None,) * len(leaves)
    return [*found, *grads, *filled(second, leaves)]


def weighted(t: clew.Tensor) -> clew.Tensor:
    weights = clew.arange(t.numel(), dtype=clew.float64).mul(0.37).cos().reshape(t.shape)
    return ((t.abs() if t.is_complex() else t) * weights).sum()


def filled(grads: Any, leaves: list[clew.Tensor]) -> list[clew.Tensor]:
    return [clew.zeros_like(t) if g is None else g for g, t in zip(grads, leaves)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_samples_together_are_as_one_by_one(name: str) -> None:
    op = TABLE[name]
    run = call_of(op)
    if run is None:
        pytest.skip("no function and no method")
    for sample in samples_of(op)[:MOST_SAMPLES]:
        for lengths, shared in ((False, False), (False, True), (True, False), (True, True)):
            variants, want = varied(sample, lengths), None
            for grad in (True, False):  # some have no derivative, or no second one
                try:
                    made = outcome(run, tensors(variants, shared, grad), False)
                    for t in made:
                        t.detach().tolist()  # raises what a call that waits did not raise
                    want = made
                except Exception:
                    continue
                break
            if want is None:
                continue  # its sizes fit each other in the first dim only
            got = outcome(run, tensors(variants, shared, grad), True)
            assert len(got) == len(want)
            for g, w in zip(got, want):
                assert g.dtype is w.dtype and g.shape == w.shape, (sample, lengths, shared)
                a, b = (t.detach().resolve_conj().numpy() for t in (g, w))
                sizes = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.zeros(0)
                np.testing.assert_allclose(
                    a, b, rtol=1e-7, atol=1e-9 * sizes.max(initial=1), err_msg=repr(sample)
                )
