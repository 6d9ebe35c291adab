"""A module's gradients for each sample of a batch, by one backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew import Tensor, nn
from clew.func import functional_call, vmap
from clew.utils import _pytree

__all__ = ["call_for_per_sample_grads"]


def _batch_size(given: Any, dim: int) -> int:
    size: int | None = None
    for t in _pytree.tree_leaves(given):
        if not isinstance(t, Tensor) or t.ndim <= dim:
            continue
        if size is not None and t.shape[dim] != size:
            raise RuntimeError(
                "call_for_per_sample_grads: found at least one input with batch size "
                f"{size} and one with {t.shape[dim]}; say which by batch_size"
            )
        size = t.shape[dim]
    if size is None:
        raise RuntimeError(
            "call_for_per_sample_grads: unable to find a tensor in the arguments; say how many "
            "samples there are by batch_size"
        )
    return size


def _collect(parameter: Any, scale: int) -> Callable[[Tensor], None]:
    def collect(grad: Tensor) -> None:
        grad = grad.detach() * scale
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = grad if before is None else before + grad

    return collect


def call_for_per_sample_grads(
    module: Any,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """The module as a function whose backward fills `grad_sample` of each parameter, not `grad`.

    Args:
        module: is called for each sample, as a batch of one.
        batch_size: how many samples there are; None takes it from the arguments.
        loss_reduction: "sum", or "mean" where the loss is the samples' mean.
        batch_first: samples lie along dim 0 of the arguments and results, else along dim 1.

    Returns:
        The function, of the module's arguments. Tensors of the batch's size are cut into samples.

    Example:
        >>> import clew
        >>> net = nn.Linear(2, 1, bias=False)
        >>> x = clew.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> call_for_per_sample_grads(net)(x).sum().backward()
        >>> net.weight.grad_sample.tolist(), net.weight.grad
        ([[[1.0, 2.0]], [[3.0, 4.0]]], None)
    """
    name = "call_for_per_sample_grads"
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"{name}: loss_reduction must be 'sum' or 'mean'; got {loss_reduction!r}"
        )
    if not isinstance(module, nn.Module):
        raise RuntimeError(f"{name}: module must be a Module; got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"{name}: batch_size must be an int; got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"{name}: batch_size must be positive; got {batch_size}")
    for key, parameter in module.named_parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(f"{name}: set {key}.grad_sample to None first, or it adds up")
    dim = 0 if batch_first else 1

    def call(*args: Any, **kwargs: Any) -> Any:
        size = batch_size if batch_size is not None else _batch_size((args, kwargs), dim)
        copies = {}
        for key, parameter in module.named_parameters():
            if parameter.requires_grad:
                one = parameter.detach().expand(size, *parameter.shape).requires_grad_()
                one.register_hook(_collect(parameter, size if loss_reduction == "mean" else 1))
                copies[key] = one

        def is_batch(t: Any) -> bool:
            return isinstance(t, Tensor) and t.ndim > dim and t.shape[dim] == size

        def sample(parameters: Any, given: Any) -> Any:
            def as_batch(t: Any, cut: bool) -> Any:
                return t.unsqueeze(dim) if cut else t

            own_args, own_kwargs = _pytree.tree_map(as_batch, given, cut)
            result = functional_call(module, parameters, own_args, own_kwargs)
            return _pytree.tree_map(
                lambda t: t.squeeze(dim) if isinstance(t, Tensor) else t, result
            )

        given = (args, kwargs)
        cut = _pytree.tree_map(is_batch, given)
        dims = _pytree.tree_map(lambda one: dim if one else None, cut)
        each = vmap(sample, in_dims=(0, dims), out_dims=dim, randomness="different")
        return each(copies, given)

    return call
