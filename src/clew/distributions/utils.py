"""Helpers that distributions share: broadcasting, probabilities and logits, lazy attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

import clew
from clew import _C, Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def all_true(mask: Tensor) -> Tensor:
    """Whether all elements are True; inside vmap those of all samples."""
    levels = _C._levels(mask)
    return (_C._show_levels(mask, levels) if levels else mask).all()


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Gives tensors and numbers one shape.

    Numbers take the dtype and device of the first tensor, or the default dtype if there is none.

    Args:
        values: tensors and numbers.

    Returns:
        A tuple of tensors.

    Raises:
        ValueError: if a value is something else.

    Example:
        >>> [v.tolist() for v in clew.distributions.utils.broadcast_all(1.0, clew.zeros(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """
    for value in values:
        if not isinstance(value, (Tensor, Number)):
            raise ValueError(
                f"broadcast_all: arguments must be numbers or tensors; got {type(value).__name__}"
            )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = clew.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [
        v if isinstance(v, Tensor) else clew.tensor(v, dtype=dtype, device=device) for v in values
    ]
    return tuple(clew.broadcast_tensors(*tensors))


def sum_rightmost(value: Tensor | float, dims: int) -> Any:
    """Sums out the last ``dims`` dimensions."""
    if dims == 0 or not isinstance(value, Tensor):
        return value
    if value.ndim < dims:
        raise RuntimeError(
            f"distributions: cannot sum the last {dims} dims of a tensor of shape "
            f"{tuple(value.shape)}"
        )
    return value.sum(tuple(range(-dims, 0)))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities of logits: the sigmoid when binary, else the softmax of the last dim.

    Args:
        logits: a tensor.
        is_binary: whether each number stands alone.

    Example:
        >>> clew.distributions.utils.logits_to_probs(clew.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return clew.sigmoid(logits) if is_binary else clew.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keeps probabilities off 0 and 1 by the dtype's epsilon.

    Example:
        >>> bool(clew.distributions.utils.clamp_probs(clew.tensor(0.0)) > 0)
        True
    """
    eps = clew.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits of probabilities: log(p / (1 - p)) when binary, else log(p).

    Args:
        probs: a tensor.
        is_binary: whether each number stands alone.

    Example:
        >>> clew.distributions.utils.probs_to_logits(clew.tensor(0.5), is_binary=True)
        tensor(0.)
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """An attribute that is computed when first asked for and then kept in the instance.

    Example:
        >>> class A:
        ...     @clew.distributions.utils.lazy_property
        ...     def x(self):
        ...         return [1]
        >>> a = A()
        >>> a.x is a.x
        True
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with clew.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _tril_length(n: int, diag: int) -> int:
    return sum(min(n, max(0, i + 1 + diag)) for i in range(n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal of square matrices, row by row.

    Args:
        mat: (..., n, n).
        diag: the highest diagonal to take.

    Example:
        >>> clew.distributions.utils.tril_matrix_to_vec(clew.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag must lie in [{-n}, {n - 1}]; got {diag}")
    rows, columns = clew.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices whose elements on and below a diagonal are ``vec``'s, row by row.

    Example:
        >>> clew.distributions.utils.vec_to_tril_matrix(clew.tensor([1, 3, 4]))
        tensor([[1, 0],
                [3, 4]])
    """
    length, n = vec.shape[-1], max(1, 1 - diag)
    while _tril_length(n, diag) < length:
        n += 1
    if _tril_length(n, diag) != length:
        raise ValueError(
            f"vec_to_tril_matrix: no square matrix has {length} elements on and below diagonal "
            f"{diag}"
        )
    rows, columns = clew.tril_indices(n, n, diag)
    flat = vec.new_zeros(vec.shape[:-1] + (n * n,))
    place = (rows * n + columns).expand(vec.shape)
    return flat.scatter(-1, place, vec).reshape(vec.shape[:-1] + (n, n))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers, by the inner name that PyTorch's libraries import."""
    import clew

    return clew.randn(shape, dtype=dtype, device=device)


_sum_rightmost = sum_rightmost
