"""Arguments and results of recorded calls: changed, copied, compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clew
from clew import Tensor

# Calls whose arguments are sizes.
MAKERS = frozenset(
    """
    zeros ones full empty rand randn randint Tensor.new_zeros Tensor.new_ones Tensor.new_full
    Tensor.new_empty randperm eye
    """.split()
)

# Calls with indices, which do not decide the sizes of what they give.
BY_INDEX = frozenset(
    """
    getitem setitem select index_select gather scatter scatter_ scatter_add scatter_add_
    scatter_reduce scatter_reduce_ index_copy index_copy_ index_add index_add_ index_fill
    index_fill_ index_put Tensor.index_put Tensor.index_put_ take take_along_dim embedding
    nn.functional.embedding
    """.split()
)


def first_of_each(op: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with 0 for each index."""

    def index(x: Any) -> Any:
        if type(x) is int:
            return 0
        if isinstance(x, (tuple, list)):
            return type(x)(map(index, x))
        return zero(x)

    def zero(x: Any) -> Any:
        whole = isinstance(x, Tensor) and not x.is_floating_point() and x.dtype is not clew.bool
        return clew.zeros_like(x) if whole and not x.is_complex() else x

    made = [args[0], *map(zero, args[1:])]
    at = {"getitem": 1, "setitem": 1, "select": 2}.get(op, len(args))
    if at < len(made):
        made[at] = index(args[at])
    return tuple(made)


def whole_sizes(tree: Any) -> Any:
    """Arguments with 0 for each size that is negative."""
    if type(tree) is int:
        return max(tree, 0)
    if isinstance(tree, dict):
        return {k: whole_sizes(v) for k, v in tree.items()}
    return type(tree)(map(whole_sizes, tree)) if type(tree) in (tuple, list) else tree


def copied(result: Any) -> Any:
    """A result with tensors of its own."""
    if isinstance(result, Tensor):
        return result.detach().clone()
    if isinstance(result, (tuple, list)):
        return type(result)(copied(r) for r in result)
    return result


def same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share memory."""
    return bool(a.numel()) and a._storage_key() == b._storage_key()


def lowered(dtype: Any) -> Callable[[Any], Any]:
    """What autocast makes of a dtype where it lowers: float32 becomes the region's."""
    return lambda d: dtype if d is clew.float32 else d


def raised(dtype: Any) -> Any:
    """What it makes of one where it raises: 16 bits become float32."""
    return clew.float32 if dtype in (clew.float16, clew.bfloat16) else dtype


def each_tensor(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Arguments with other tensors."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, dict):
        return {k: each_tensor(v, change) for k, v in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(each_tensor(x, change) for x in tree)
    return tree


def cast_to(tree: Any, cast: Callable[[Any], Any] | None) -> Any:
    """Arguments with their tensors in the dtypes that `cast` gives; None leaves them."""
    if cast is None:
        return tree
    return each_tensor(tree, lambda t: t.to(cast(t.dtype)))


def equal(a: Any, b: Any) -> bool:
    """Whether two calls gave the same."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return type(a) is type(b) and (a == b or a != a)
    if a.dtype is not b.dtype or a.shape != b.shape:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())
