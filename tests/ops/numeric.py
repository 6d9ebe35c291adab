"""Derivatives checked by differences, for the tests of op families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import clew


def normal(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    """Standard normal numbers; of both parts for complex dtypes."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def _leaves(arrays: list[np.ndarray], which: list[int]) -> list[Any]:
    return [clew.tensor(a, requires_grad=i in which) for i, a in enumerate(arrays)]


def check_gradients(
    fn: Callable[..., Any],
    *arrays: np.ndarray,
    order: int = 2,
    which: list[int] | None = None,
    step: float = 1e-5,
    rtol: float = 1e-5,
) -> None:
    """The derivative of <w, fn(x)> along a random direction equals the gradient's product with it.

    With order 2 the same is checked of the gradient itself. Inputs are float64 or complex128.
    """
    given = [np.asarray(a) for a in arrays]
    which = list(range(len(given))) if which is None else which
    rng = np.random.default_rng(7)

    def like(a: Any) -> np.ndarray:
        a = np.asarray(a)
        d = rng.standard_normal(a.shape)
        return d + 1j * rng.standard_normal(a.shape) if np.iscomplexobj(a) else d

    probe = fn(*_leaves(given, []))
    weights = clew.tensor(like(probe.detach().numpy()))

    def value(xs: list[Any]) -> Any:
        out = fn(*xs) * weights.conj()
        return (out.real if out.is_complex() else out).sum()

    directions = {i: like(given[i]) for i in which}

    def moved(t: float) -> list[np.ndarray]:
        return [a + t * directions[i] if i in directions else a for i, a in enumerate(given)]

    def product(gs: Any) -> float:
        return float(
            sum(np.real(np.vdot(g.detach().numpy(), directions[i])) for g, i in zip(gs, which))
        )

    def compare(exact: float, plus: float, minus: float) -> None:
        numeric = (plus - minus) / (2 * step)
        assert np.isfinite(exact)
        assert abs(exact - numeric) <= rtol * max(1.0, abs(exact), abs(numeric)) * 10, (
            f"gradient gives {exact}, differences give {numeric}"
        )

    leaves = _leaves(given, which)
    grads = clew.autograd.grad(value(leaves), [leaves[i] for i in which], create_graph=order > 1)
    for g, i in zip(grads, which):
        assert g.shape == leaves[i].shape and g.dtype == leaves[i].dtype
    ends = [float(value(_leaves(moved(t), []))) for t in (step, -step)]
    compare(product(grads), *ends)
    if order < 2:
        return
    second = [clew.tensor(like(g.detach().numpy())) for g in grads]

    def slope(xs: list[Any], graph: bool) -> Any:
        gs = clew.autograd.grad(value(xs), [xs[i] for i in which], create_graph=graph)
        total: Any = 0.0
        for g, w in zip(gs, second):
            p = g * w.conj()
            total = total + (p.real if p.is_complex() else p).sum()
        return total

    leaves = _leaves(given, which)
    total = slope(leaves, True)
    if not total.requires_grad:
        exact = 0.0
    else:
        found = clew.autograd.grad(total, [leaves[i] for i in which], allow_unused=True)
        exact = float(
            sum(
                np.real(np.vdot(g.detach().numpy(), directions[i]))
                for g, i in zip(found, which)
                if g is not None
            )
        )
    ends = [float(slope(_leaves(moved(t), which), False)) for t in (step, -step)]
    compare(exact, *ends)
