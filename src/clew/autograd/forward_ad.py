"""Forward-mode differentiation: tensors that carry a tangent, pushed through whatever is computed
from them.

A dual tensor is an ordinary recorded tensor whose level remembers its tangent. The tangent of a
result is the derivative of
u -> J^T u along the tangents (transposing the transpose), so every operation with a gradient has
a tangent too. A custom
Function that defines ``jvp`` has that called instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from clew import _C
from clew._C import Tensor
from clew.autograd.function import Function
from clew.autograd.grad_mode import enable_grad

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class _Level:
    """The dual tensors made at one level, with their tangents."""

    def __init__(self) -> None:
        self.roots: list[tuple[Tensor, Tensor]] = []
        self.sweeping = False  # while tangents are looked for: gates are closed


_levels: list[_Level] = []


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent (None when it has none)."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Starts a level of forward differentiation and returns its number.

    Raises:
        RuntimeError: a level is open already; they do not nest.
    """
    if _levels:
        raise RuntimeError(
            "enter_dual_level: nested forward mode AD is not supported at the moment"
        )
    _levels.append(_Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its tangents are forgotten."""
    if not _levels:
        raise RuntimeError("exit_dual_level: no forward AD level is open")
    if level not in (None, 0):
        raise RuntimeError(
            f"exit_dual_level: trying to exit a forward AD level that was not the last one; "
            f"got {level}"
        )
    _levels.pop()


class dual_level:
    """A context in which dual tensors live.

    >>> from clew.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(clew.tensor(3.0), clew.tensor(1.0))
    ...     forward_ad.unpack_dual(x**2).tangent.item()
    6.0
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


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


def _current(name: str) -> _Level:
    if not _levels:
        raise RuntimeError(f"{name}: no forward AD level is open; use it inside dual_level()")
    return _levels[-1]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent: what is computed from the result carries one too.

    Args:
        tensor: floating point or complex.
        tangent: of the same shape and dtype.
        level: the open level, by default.

    Raises:
        RuntimeError: no level is open, recording is off (tangents follow the recorded graph),
            or the shapes differ.
    """
    current = _current("make_dual")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(
            f"make_dual: expected primal to be floating point or complex, but got: {tensor.dtype}"
        )
    if tangent.shape != tensor.shape or tangent.dtype is not tensor.dtype:
        raise RuntimeError(
            f"make_dual: expected tangent to have the shape and dtype of the tensor, "
            f"{tensor.dtype.name}{list(tensor.shape)}; "
            f"got {tangent.dtype.name}{list(tangent.shape)}"
        )
    if not _C.is_grad_enabled():
        raise RuntimeError(
            "make_dual: tangents follow the recorded graph; switch recording on with enable_grad()"
        )
    dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    current.roots.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor's value and its tangent: None where no level is open, or none reaches it."""
    tangent = tangent_of(tensor, _levels[-1]) if _levels else None
    return UnpackedDualTensor(tensor, tangent)


def tangent_of(tensor: Tensor, level: _Level) -> Tensor | None:
    """The tangent of a tensor at a level; None when it depends on no dual tensor."""
    from clew import zeros_like
    from clew.autograd import grad

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


class _Gate(Function):
    """An output of a custom Function whose tangents at a level come from its own rule: gradients
    pass, except while that level's tangents are looked for.
    """

    @staticmethod
    def forward(ctx: Any, level: _Level, output: Tensor) -> Tensor:
        ctx.level = level
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, (None if ctx.level.sweeping else grad)


def _tangents_by_rule(
    function: Any, ctx: Any, args: tuple[Any, ...], outputs: tuple[Any, ...]
) -> tuple[Any, ...] | None:
    """What a custom Function's jvp gives for its outputs; None when no input has a tangent."""
    if not _levels or not _C.is_grad_enabled():
        return None
    from clew import zeros_like

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


def _with_tangents(outputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recorded outputs of a custom Function as dual tensors at the innermost level."""
    level = _levels[-1]
    duals = []
    for o, t in zip(outputs, tangents):
        if isinstance(o, Tensor) and o.requires_grad:
            o = _Gate.apply(level, o)
            if t is not None:
                level.roots.append((o, t))
        duals.append(o)
    return tuple(duals)
