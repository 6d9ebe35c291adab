"""Weight normalisation by a forward pre-hook (the old form; see parametrizations.weight_norm)."""

from __future__ import annotations

import warnings
from typing import Any

from clew._base.arguments import wrapped_dim
from clew._base.provenance import user_level

from ..functional._core import vector_norm
from ..parameter import Parameter

__all__ = ["WeightNorm", "norm_except_dim", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Any, dim: int | None) -> Any:
    """The norms of a tensor's slices along a dim.

    Args:
        v: the tensor, of any shape.
        dim: the dim that stays; None or -1 for the norm of all.

    Returns:
        a tensor that broadcasts with v.

    Example:
        >>> from clew.nn.utils.weight_norm import norm_except_dim
        >>> norm_except_dim(clew.tensor([[3., 4.]]), 0).tolist()
        [[5.0]]
    """
    if dim is None or dim == -1:
        return vector_norm(v)
    kept = wrapped_dim("weight_norm", dim, v.dim())
    dims = [d for d in range(v.dim()) if d != kept]
    if not dims:
        return v.abs()
    return vector_norm(v, 2, dims, True)


class WeightNorm:
    """The hook that computes a weight from its length and direction.

    Args:
        name: the weight's name.
        dim: the dim whose slices have a length each; -1 for one length.

    Example:
        >>> from clew.nn.utils.weight_norm import WeightNorm
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = nn.utils.weight_norm(nn.Linear(3, 2))
        >>> any(isinstance(h, WeightNorm) for h in layer._forward_pre_hooks.values())
        True
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """The weight from the module's present parameters.

        Args:
            module: the module.

        Returns:
            a tensor.
        """
        g = getattr(module, self.name + "_g")
        v = getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Adds the hook to a module.

        Args:
            module: the module.
            name: the weight's name.
            dim: the dim whose slices have a length each.

        Returns:
            the hook.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(
            name + "_g", Parameter(norm_except_dim(weight, made.dim).detach())
        )
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again.

        Args:
            module: the module.
        """
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits a weight into length and direction (deprecated; use parametrizations.weight_norm).

    weight = g * v / |v|: Salimans and Kingma, Weight normalization, 2016, equation 2.

    Args:
        module: the module.
        name: the weight's name.
        dim: the dim whose slices have a length each; None for one length.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.weight_norm(clew.nn.Linear(3, 2))
        >>> list(layer.weight_g.shape), list(layer.weight_v.shape)
        ([2, 1], [2, 3])
    """
    warnings.warn(
        "nn.utils.weight_norm is deprecated; use nn.utils.parametrizations.weight_norm",
        FutureWarning,
        stacklevel=user_level(),
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undoes weight_norm.

    Args:
        module: the module.
        name: the weight's name.

    Returns:
        the same module; the weight is a parameter with its present value.

    Raises:
        ValueError: if the weight has no such hook.

    Example:
        >>> layer = clew.nn.utils.weight_norm(clew.nn.Linear(3, 2))
        >>> _ = clew.nn.utils.remove_weight_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
