"""What stands for a tensor in a message to another process."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from clew import Tensor
from clew._tensor import pickling as _pickle
from clew._tensor import shared as _shared

__all__ = ["ForkingPickler", "init_reductions", "reduce_tensor"]


def init_reductions() -> None:
    """Makes ForkingPickler share tensors' memory; importing clew.multiprocessing has done so.

    Example:
        >>> from clew.multiprocessing.reductions import init_reductions
        >>> init_reductions()
    """
    _shared.register(ForkingPickler)


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A function and its arguments that make the tensor again; a ForkingPickler shares its memory.

    Args:
        tensor: a leaf, or one that does not require grad.

    Returns:
        What `__reduce_ex__` returns.

    Example:
        >>> from clew import Tensor
        >>> from clew.multiprocessing.reductions import reduce_tensor
        >>> function, args = reduce_tensor(Tensor([1.0, 2.0]))
        >>> function(*args)
        tensor([1., 2.])
    """
    if tensor.requires_grad and not tensor.is_leaf:
        _shared.refuse_non_leaf()
    reduced: tuple[Any, ...] = _pickle.reduce_tensor(tensor, 2)
    return reduced
