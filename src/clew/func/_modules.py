"""Modules as functions: calls with parameters given from outside, ensembles of modules."""

from __future__ import annotations

from typing import Any

from clew import _C
from clew._C import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of its parameters and buffers.

    Args:
        module: an nn.Module.
        parameter_and_buffer_dicts: names to tensors, or a tuple of such dicts.
        args: the arguments of the call: a tuple, or the only one.
        kwargs: its keyword arguments.
        tie_weights: tensors that the module holds under several names stay one.
        strict: raise when names are missing or unknown.

    Returns:
        what the module returns.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> ones = {"weight": clew.ones(1, 2), "bias": clew.zeros(1)}
        >>> clew.func.functional_call(layer, ones, (clew.tensor([2.0, 3.0]),))
        tensor([5.])
    """
    from clew.nn.utils import stateless

    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (tuple, list)):
        given = {}
        for part in parameter_and_buffer_dicts:
            if not isinstance(part, dict):
                raise ValueError(
                    "functional_call: expected all elements of parameter_and_buffer_dicts to be "
                    "dictionaries"
                )
            repeated = given.keys() & part.keys()
            if repeated:
                raise ValueError(
                    f"functional_call: {sorted(repeated)} appeared in multiple dictionaries; "
                    f"behavior of functional call is ambiguous"
                )
            given.update(part)
    else:
        raise ValueError(
            f"functional_call: expected parameter_and_buffer_dicts to be a dict, or a list/tuple "
            f"of dicts, but got {type(parameter_and_buffer_dicts)}"
        )
    return stateless.functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules built alike, each stacked along a new first dim.

    Args:
        models: a sequence of modules of one class, all training or all evaluating.

    Returns:
        (parameters, buffers), for vmap over functional_call.

    Raises:
        RuntimeError: no module, or modules of different classes or modes.

    Example:
        >>> parameters, buffers = clew.func.stack_module_state([nn.Linear(3, 2) for _ in range(5)])
        >>> parameters["weight"].shape
        clew.Size([5, 2, 3])
    """
    stack = _C.functions["stack"]
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables: list[dict[str, Tensor]], parameters: bool) -> dict[str, Tensor]:
        out = {}
        for name in tables[0]:
            column = [t[name].detach() for t in tables]
            asked = [t[name].requires_grad for t in tables]
            if any(a != asked[0] for a in asked):
                raise RuntimeError(
                    f"Expected {name} from each model to have the same .requires_grad"
                )
            whole = stack(column)
            out[name] = whole.requires_grad_(asked[0]) if parameters else whole
        return out

    return (
        stacked([dict(m.named_parameters()) for m in models], True),
        stacked([dict(m.named_buffers()) for m in models], False),
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Takes the running statistics away from all batch norms of a module, in place.

    Without them nothing is written in the forward pass, so that it can be mapped over.

    Args:
        root: the module.

    Returns: the module.

    Example:
        >>> net = clew.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(2)))
        >>> net[0].running_mean is None
        True
    """
    for module in root.modules():
        if "BatchNorm" in type(module).__name__ and "num_batches_tracked" in module._buffers:
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
