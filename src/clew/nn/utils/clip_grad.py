"""Gradient clipping."""

from __future__ import annotations

import math
import warnings
from types import GeneratorType
from typing import Any

import clew
from clew import _C
from clew._base.provenance import user_level
from clew._tensor.structured import parts_of

from ..functional._core import vector_norm
from ..parameter import Parameter

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _gradients(parameters: Any) -> list[clew.Tensor]:
    """The gradients that there are; of sparse and ragged parameters those of their values."""
    if isinstance(parameters, clew.Tensor):
        parameters = [parameters]
    return list(_C._gradients_of(parts_of(parameters)))


_SHOWN = 4  # tensors that a message lists


def _are_distributed(tensors: Any) -> bool:
    return any(
        type(t) is not clew.Tensor and type(t) is not Parameter and hasattr(t, "_placements")
        for t in tensors
    )


def _common_dtype(tensors: list[clew.Tensor]) -> clew.dtype:
    """What all promote to: the norm of wide ones need not fit into that of the first."""
    dtype = tensors[0].dtype
    for t in tensors:
        if t.dtype is not dtype:
            dtype = clew.promote_types(dtype, t.dtype)
    return dtype


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> clew.Tensor:
    """The norm of several tensors taken as one vector.

    Args:
        tensors: one tensor or several, of any shapes.
        norm_type: the norm's order; inf for the greatest size.
        error_if_nonfinite: raise if the norm is NaN or infinite.
        foreach: accepted; there is one way to compute it.

    Returns:
        a 0-d tensor.

    Raises:
        RuntimeError: with error_if_nonfinite, if the norm is NaN or infinite.

    Example:
        >>> clew.nn.utils.get_total_norm([clew.tensor([3.]), clew.tensor([4.])]).item()
        5.0
    """
    tensors = [tensors] if isinstance(tensors, clew.Tensor) else list(tensors)
    if not tensors:
        return clew.tensor(0.0)
    norm_type = float(norm_type)
    spread = _are_distributed(tensors)
    value = None if spread else _C._norm_of_gradients(tensors, norm_type)
    if spread:
        from clew.distributed.tensor._norms import total_norm

        total = total_norm(tensors, norm_type)  # distributed: the same on all processes
    elif value is not None:
        total = clew.tensor(value, dtype=_common_dtype(tensors))
    else:
        with clew.no_grad():
            norms = [vector_norm(t, norm_type) for t in tensors]
            dtype = _common_dtype(norms)
            total = vector_norm(clew.stack([n.to(dtype) for n in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            f"non-finite norm anyway, set `error_if_nonfinite=False`{_non_finite(tensors)}"
        )
    return total


def _non_finite(tensors: list[clew.Tensor]) -> str:
    """A line for each of the tensors that has a NaN or infinity, as far as a message goes."""
    from clew._insight.debug.summary import summary

    bad = [(i, t) for i, t in enumerate(tensors) if not t.isfinite().all().item()]
    lines = [f"\n  gradient {i}: {summary(t)}" for i, t in bad[:_SHOWN]]
    if len(bad) > _SHOWN:
        lines.append(f"\n  and {len(bad) - _SHOWN} more")
    return "".join(lines)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scales gradients by max_norm / total_norm where that is below one, in place.

    Each gradient is multiplied by min(1, max_norm / (total_norm + 1e-6)).

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        max_norm: greatest norm that stays.
        total_norm: the present norm, a 0-d tensor.
        foreach: accepted; there is one way to compute it.

    Returns:
        None; the gradients are changed.

    Example:
        >>> p = clew.nn.Parameter(clew.zeros(2))
        >>> p.grad = clew.tensor([3., 4.])
        >>> clew.nn.utils.clip_grads_with_norm_(p, 2.5, clew.tensor(5.0))
        >>> [round(x, 4) for x in p.grad.tolist()]
        [1.5, 2.0]
    """
    grads = _gradients(parameters)
    if not grads:
        return
    if hasattr(total_norm, "full_tensor"):
        total_norm = total_norm.full_tensor()
    with clew.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        number = factor.item()
        if number == 1.0 or _C._scale_gradients(grads, number):
            return
        for grad in grads:
            grad.mul_(factor.to(grad.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> clew.Tensor:
    """Scales gradients so that their common norm is at most max_norm, in place.

    Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, 2013,
    section 3.2.

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        max_norm: greatest norm that stays.
        norm_type: the norm's order; inf for the greatest size.
        error_if_nonfinite: raise if the norm is NaN or infinite.
        foreach: accepted; there is one way to compute it.

    Returns:
        the norm before, a 0-d tensor.

    Raises:
        RuntimeError: with error_if_nonfinite, if the norm is NaN or infinite.

    Example:
        >>> p = clew.nn.Parameter(clew.zeros(2))
        >>> p.grad = clew.tensor([3., 4.])
        >>> clew.nn.utils.clip_grad_norm_(p, 1.0).item()
        5.0
    """
    if isinstance(parameters, clew.Tensor):
        parameters = [parameters]
    else:
        given, parameters = parameters, list(parameters)
        if not parameters and isinstance(given, GeneratorType):
            warnings.warn(
                "clip_grad_norm_: `parameters` is an empty generator, no gradient clipping will "
                "occur; a generator is used up once, so ask for parameters() again",
                UserWarning,
                stacklevel=user_level(),
            )
    grads = _gradients(parameters)
    if _are_distributed(parameters):
        grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> clew.Tensor:
    """Deprecated name of clip_grad_norm_.

    Args:
        parameters: as in clip_grad_norm_.
        max_norm: as in clip_grad_norm_.
        norm_type: as in clip_grad_norm_.
        error_if_nonfinite: as in clip_grad_norm_.
        foreach: as in clip_grad_norm_.

    Returns:
        the norm before, a 0-d tensor.

    Example:
        >>> p = clew.nn.Parameter(clew.zeros(2))
        >>> p.grad = clew.tensor([3., 4.])
        >>> clew.nn.utils.clip_grad_norm(p, 1.0).item()
        5.0
    """
    warnings.warn(
        "clip_grad_norm is deprecated; use clip_grad_norm_", FutureWarning, stacklevel=user_level()
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Keeps every element of the gradients within [-clip_value, clip_value], in place.

    Args:
        parameters: one parameter or several; those without a gradient are passed over.
        clip_value: the bound.
        foreach: accepted; there is one way to compute it.

    Returns:
        None; the gradients are changed.

    Example:
        >>> p = clew.nn.Parameter(clew.zeros(2))
        >>> p.grad = clew.tensor([-3., 0.5])
        >>> clew.nn.utils.clip_grad_value_(p, 1.0)
        >>> p.grad.tolist()
        [-1.0, 0.5]
    """
    bound = float(clip_value)
    grads = _gradients(parameters)
    if _C._clamp_gradients(grads, bound):
        return
    with clew.no_grad():
        for grad in grads:
            grad.clamp_(min=-bound, max=bound)
