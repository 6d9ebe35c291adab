"""The open levels of forward-mode differentiation, and the tangents of tensors at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clew import _C
from clew._C import Tensor, zeros_like
from clew.autograd._backward import grad
from clew.autograd.grad_mode import enable_grad


class _Level:
    """The dual tensors made at one level, with their tangents."""

    def __init__(self) -> None:
        self.roots: list[tuple[Tensor, Tensor]] = []
        self.sweeping = False  # while tangents are looked for: gates are closed


_levels: list[_Level] = []


@contextmanager
def nested_level(roots: list[tuple[Tensor, Tensor]]) -> Iterator[_Level]:
    """A level for a transform, inside others too, with (dual, tangent) pairs to start with."""
    level = _Level()
    level.roots += roots
    _levels.append(level)
    try:
        yield level
    finally:
        _levels.remove(level)


def tangent_of(tensor: Tensor, level: _Level) -> Tensor | None:
    """The tangent of a tensor at a level; None when it depends on no dual tensor."""
    if not tensor.requires_grad or not level.roots:
        return None
    for dual, tangent in level.roots:
        if dual is tensor:
            return tangent
    duals = [dual for dual, _ in level.roots]
    with enable_grad():
        u = zeros_like(tensor, requires_grad=True)
        before, level.sweeping = level.sweeping, True
        try:
            rows = grad(tensor, duals, u, create_graph=True, allow_unused=True)
        finally:
            level.sweeping = before
        pairs = [(row, tangent) for row, (_, tangent) in zip(rows, level.roots) if row is not None]
        if not pairs:
            return None
        live = [(row, tangent) for row, tangent in pairs if row.requires_grad]
        if not live:
            return zeros_like(tensor)
        (found,) = grad(
            [row for row, _ in live], u, [t for _, t in live], create_graph=True, allow_unused=True
        )
    return zeros_like(tensor) if found is None else found


def _tangents_by_rule(
    function: Any, ctx: Any, args: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """What a custom Function's jvp gives for its outputs; None when no input has a tangent."""
    if not _levels or not _C.is_grad_enabled():
        return None
    level = _levels[-1]
    tangents = tuple(tangent_of(a, level) if isinstance(a, Tensor) else None for a in args)
    if all(t is None for t in tangents):
        return None
    if ctx._materialize:
        tangents = tuple(
            zeros_like(a.detach())
            if t is None and isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex())
            else t
            for a, t in zip(args, tangents)
        )
    ctx._in_jvp = True
    try:
        got = function.jvp(ctx, *tangents)
    finally:
        ctx._in_jvp = False
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != len(outputs):
        raise RuntimeError(
            f"{function.__name__}.jvp: expected {len(outputs)} tangents; got {len(got)}"
        )
    for o, t in zip(outputs, got):
        if isinstance(o, Tensor) and isinstance(t, Tensor) and t.shape != o.shape:
            raise RuntimeError(
                f"{function.__name__}.jvp: tangent has shape {list(t.shape)}; the output "
                f"has {list(o.shape)}"
            )
    return got
