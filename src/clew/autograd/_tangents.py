"""The open levels of forward-mode differentiation, and the tangents of tensors at them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clew import _C
from clew._base.tasks import of_tasks
from clew._C import Tensor, zeros_like
from clew.autograd._backward import grad
from clew.autograd.grad_mode import enable_grad


class _Level:
    """What tangents at one level start from.

    Attributes:
        roots: leaves, or tensors that nobody writes into, with their tangents.
        known: the tangents of results by the nodes that made them, which need no search.
        sweeping: while tangents are looked for: gates are closed.
    """

    def __init__(self) -> None:
        self.roots: list[tuple[Tensor, Tensor]] = []
        self.known: dict[Any, Tensor] = {}
        self.sweeping = False

    def end(self) -> None:
        """Lets go of the tangents. What was recorded at the level holds it, and it holds that."""
        self.roots.clear()
        self.known.clear()


class _Open(threading.local):
    """The open levels of a thread, or of a task of it."""

    def __init__(self) -> None:
        self.levels: list[_Level] = []


_open = of_tasks(_Open())


def open_levels() -> list[_Level]:
    """The levels that are open, from the outside to the inside."""
    return _open.levels


@contextmanager
def nested_level(roots: list[tuple[Tensor, Tensor]]) -> Iterator[_Level]:
    """A level for a transform, inside others too, with (dual, tangent) pairs to start with."""
    level = _Level()
    level.roots += roots
    open_levels().append(level)
    try:
        yield level
    finally:
        open_levels().remove(level)
        level.end()


def tangent_of(tensor: Tensor, level: _Level) -> Tensor | None:
    """The tangent of a tensor at a level; None when it depends on no dual tensor."""
    if not tensor.requires_grad or not level.roots:
        return None
    if tensor.grad_fn in level.known:
        return level.known[tensor.grad_fn]
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


def tangents_of_inputs(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The tangents of a custom Function's arguments, asked for before its forward may write into
    them; None when no argument has one.
    """
    levels = open_levels()
    if not levels or not _C.is_grad_enabled():
        return None
    level = levels[-1]
    tangents = tuple(tangent_of(a, level) if isinstance(a, Tensor) else None for a in args)
    return None if all(t is None for t in tangents) else tangents


def tangents_by_rule(
    function: Any,
    ctx: Any,
    args: tuple[Any, ...],
    outputs: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[Any, ...]:
    """What a custom Function's jvp gives for its outputs."""
    level, name = open_levels()[-1], f"{function.__name__}.jvp"
    written = {id(t) for t in ctx._dirty}

    def pushed(a: Any, t: Any) -> Any:
        if t is None:
            inexact = isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex())
            return zeros_like(a.detach()) if ctx._materialize and inexact else None
        # jvp writes into the tangent of what forward wrote into; that of another tensor stays.
        return t.clone() if id(a) in written and a.grad_fn not in level.known else t

    tangents = tuple(map(pushed, args, tangents))
    versions = [t._version if isinstance(t, Tensor) else 0 for t in tangents]
    ctx._in_jvp = True
    try:
        got = function.jvp(ctx, *tangents)
    finally:
        ctx._in_jvp = False
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != len(outputs):
        raise RuntimeError(f"{name}: expected {len(outputs)} tangents; got {len(got)}")
    for o, t in zip(outputs, got):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"{name}: a tangent must be a tensor or None; got {t!r}")
        if isinstance(o, Tensor) and t is not None and t.shape != o.shape:
            raise RuntimeError(
                f"{name}: tangent has shape {list(t.shape)}; the output has {list(o.shape)}"
            )
        if id(o) in written:
            at = next(i for i, a in enumerate(args) if a is o)
            if t is not tangents[at] or t is None or t._version == versions[at]:
                raise RuntimeError(
                    f"{name}: forward writes into argument {at + 1} (mark_dirty), so that jvp must "
                    "write into that argument's tangent and return it"
                )
    return got
