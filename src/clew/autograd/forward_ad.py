"""Forward-mode differentiation: tensors that carry a tangent, pushed through whatever is computed
from them.

A dual tensor is an ordinary recorded tensor whose level remembers its tangent. The tangent of a
result is the derivative of
u -> J^T u along the tangents (transposing the transpose), so every operation with a gradient has
a tangent too. A custom
Function that defines ``jvp`` has that called instead.
"""

from __future__ import annotations

from typing import NamedTuple

from clew import _C
from clew._base.arguments import is_structured
from clew._C import Tensor
from clew.autograd._of_tasks import leaves_of_others, note_leaf
from clew.autograd._tangents import _Level, open_levels, tangent_of
from clew.autograd.function import _GateOfOther, dual_of

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent (None when it has none)."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Starts a level of forward differentiation and returns its number.

    Raises:
        RuntimeError: a level is open already; they do not nest.

    >>> fw = clew.autograd.forward_ad
    >>> level = fw.enter_dual_level()
    >>> fw.exit_dual_level()
    """
    if open_levels():
        raise RuntimeError(
            "enter_dual_level: nested forward mode AD is not supported at the moment"
        )
    open_levels().append(_Level())
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its tangents are forgotten.

    Args:
        level: 0 or None: there is one level.

    Raises:
        RuntimeError: if none is open, or another is named.

    >>> fw = clew.autograd.forward_ad
    >>> level = fw.enter_dual_level()
    >>> fw.exit_dual_level()
    """
    if not open_levels():
        raise RuntimeError("exit_dual_level: no forward AD level is open")
    if level not in (None, 0):
        raise RuntimeError(
            f"exit_dual_level: trying to exit a forward AD level that was not the last one; "
            f"got {level}"
        )
    open_levels().pop().end()


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


def _current(name: str) -> _Level:
    if not open_levels():
        raise RuntimeError(f"{name}: no forward AD level is open; use it inside dual_level()")
    return open_levels()[-1]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent: what is computed from the result carries one too.

    Args:
        tensor: floating point or complex.
        tangent: of the same shape and dtype.
        level: the open level, by default.

    Raises:
        RuntimeError: no level is open, recording is off (tangents follow the recorded graph),
            or the shapes differ.

    >>> fw = clew.autograd.forward_ad
    >>> with fw.dual_level():
    ...     dual = fw.make_dual(clew.tensor(3.0), clew.tensor(1.0))
    ...     fw.unpack_dual(dual * dual).tangent.item()
    6.0
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
    if is_structured(tensor) or _C._vmap_depth():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
        if dual.is_leaf:
            note_leaf(dual)
        current.roots.append((dual, tangent))
        return dual
    return dual_of(current, _GateOfOther, tensor, tangent)


def _wanted_elsewhere(tensor: Tensor, level: _Level) -> bool:
    """Whether the tensor depends on something that requires grad, duals made of constants aside.

    So does it where a tangent does that the level starts from; a custom Function's jvp makes such
    tangents of the duals themselves.
    """
    duals = {id(dual) for dual, _ in level.roots} | {id(leaf) for leaf in leaves_of_others()}
    tangents = [tangent for _, tangent in level.roots if tangent.requires_grad]
    if any(t.is_leaf and id(t) not in duals for t in tangents):
        return True
    todo = [t.grad_fn for t in [tensor, *tangents] if t.grad_fn is not None]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node.name() == "AccumulateGrad" and id(node.variable) not in duals:
            return True
        below = {fn for fn, _ in node.next_functions if fn is not None} - seen
        seen |= below
        todo += below
    return False


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor's value and its tangent: None where no level is open, or none reaches it.

    Args:
        tensor: the tensor.
        level: not used: there is one level.

    Returns:
        `primal` and `tangent`; they require grad where something else than duals did.

    >>> fw = clew.autograd.forward_ad
    >>> with fw.dual_level():
    ...     fw.unpack_dual(fw.make_dual(clew.tensor(3.0), clew.tensor(1.0))).tangent
    tensor(1.)
    """
    tangent = tangent_of(tensor, open_levels()[-1]) if open_levels() else None
    if tangent is not None and not _wanted_elsewhere(tensor, open_levels()[-1]):
        return UnpackedDualTensor(tensor.detach(), tangent.detach())
    return UnpackedDualTensor(tensor, tangent)
