"""Tensors that saved-tensor hooks keep, as nodes keep theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from clew import _C
from clew._C import Tensor
from clew.autograd.function import Function
from clew.autograd.grad_mode import enable_grad

__all__ = ["in_budget", "kept_by_node"]

_NO_LIMIT = (1 << 63) - 1


class _Keeper(Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, tensor: Tensor) -> Tensor:
        ctx.save_for_backward(tensor)
        return _C.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("internal error in clew, please report it: _Keeper.backward")


def in_budget() -> bool:
    """Whether a memory budget with a limit is open."""
    return _C._budget_counts()[0] != _NO_LIMIT


def kept_by_node(tensor: Tensor) -> Callable[[], Tensor]:
    """Keeps a tensor for a pack hook, as what a node saves; gives it when it is called.

    A memory budget gives up what nodes saved, but not what Python objects hold. Writes in place
    since then raise when it is called.

    Args:
        tensor: what was saved, without a history.
    """
    hooks = _C._saved_hooks_in_use(0)  # none must see the keeping, those around the last either
    try:
        with enable_grad():
            keeper = _Keeper.apply(_C.empty(0, requires_grad=True), tensor)
    finally:
        _C._saved_hooks_in_use(hooks)
    return lambda: cast(Tensor, keeper.grad_fn.saved_tensors[0])
