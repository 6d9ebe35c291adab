"""Spectral normalisation by a forward pre-hook, the form before parametrizations."""

from __future__ import annotations

from typing import Any

import clew

from .. import functional as F
from ..parameter import Parameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The hook that divides a weight by its greatest singular value.

    Args:
        name: the weight's name.
        n_power_iterations: steps of the power method at each call.
        dim: the dim of the outputs.
        eps: least norm that is divided by.

    Example:
        >>> from clew.nn.utils.spectral_norm import SpectralNorm
        >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
        >>> any(isinstance(h, SpectralNorm) for h in layer._forward_pre_hooks.values())
        True
    """

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight as a matrix whose rows are outputs.

        Args:
            weight: the weight.

        Returns:
            a 2-d tensor.
        """
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.flatten(1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The divided weight.

        Args:
            module: the module.
            do_power_iteration: whether the singular vectors are refined first.

        Returns:
            a tensor.
        """
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with clew.no_grad():
                plain = matrix.detach()
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(plain.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(plain.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return weight / clew.dot(u, matrix.mv(v))

    def _upgrade(self, state: Any, prefix: str, metadata: Any) -> None:
        """Completes a state dict that was saved when v was not kept, but the divided weight was."""
        if metadata.get("spectral_norm", {}).get(self.name + ".version", 0) >= 1:
            return
        key = prefix + self.name
        if key + "_v" in state or any(key + end not in state for end in ("_orig", "", "_u")):
            return
        with clew.no_grad():
            orig, u = state[key + "_orig"], state[key + "_u"]
            sigma = (orig / state.pop(key)).mean()
            matrix = self.reshape_weight_to_matrix(orig)
            # The v with u^T W v = sigma that the pseudo-inverse gives.
            v = clew.linalg.pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
            state[key + "_v"] = v * (sigma / clew.dot(u, matrix.mv(v)))

    def _note_version(self, metadata: Any) -> None:
        """Says in a state dict's metadata that v is in it."""
        versions = metadata.setdefault("spectral_norm", {})
        if self.name + ".version" in versions:
            raise RuntimeError(
                f"spectral_norm: unexpected key in metadata['spectral_norm']: {self.name}.version"
            )
        versions[self.name + ".version"] = 1

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again.

        Args:
            module: the module.
        """
        with clew.no_grad():
            weight = self.compute_weight(module, False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Adds the hook to a module.

        Args:
            module: the module.
            name: the weight's name.
            n_power_iterations: steps of the power method at each call.
            dim: the dim of the outputs.
            eps: least norm that is divided by.

        Returns:
            the hook.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with clew.no_grad():
            rows, cols = made.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(cols).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Completes state dicts that were saved before ``weight_v`` was kept.

    Args:
        fn: the hook that divides the weight.

    Example:
        >>> from clew.nn.utils.spectral_norm import SpectralNormLoadStateDictPreHook
        >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
        >>> hooks = layer._load_state_dict_pre_hooks.values()
        >>> [isinstance(h, SpectralNormLoadStateDictPreHook) for h in hooks]
        [True]
        >>> state = layer.state_dict()
        >>> del state._metadata, state["weight_v"]
        >>> layer.load_state_dict({**state, "weight": layer.weight})
        <All keys matched successfully>
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        self.fn._upgrade(state_dict, prefix, local_metadata)


class SpectralNormStateDictHook:
    """Says in the metadata of state dicts that ``weight_v`` is in them.

    Args:
        fn: the hook that divides the weight.

    Example:
        >>> from clew.nn.utils.spectral_norm import SpectralNormStateDictHook
        >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
        >>> hooks = layer._state_dict_hooks.values()
        >>> [isinstance(h, SpectralNormStateDictHook) for h in hooks]
        [True]
        >>> layer.state_dict()._metadata[""]["spectral_norm"]
        {'weight.version': 1}
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        self.fn._note_version(local_metadata)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divides a weight by its greatest singular value (see parametrizations.spectral_norm too).

    Miyato and others, Spectral normalization for generative adversarial networks, 2018, section
    2.1.

    Args:
        module: the module.
        name: the weight's name.
        n_power_iterations: steps of the power method at each call.
        eps: least norm that is divided by.
        dim: the dim of the outputs: 1 for transposed convolutions, else 0.

    Returns:
        the same module.

    Example:
        >>> layer = clew.nn.utils.spectral_norm(clew.nn.Linear(3, 2))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight_orig']
    """
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undoes spectral_norm.

    Args:
        module: the module.
        name: the weight's name.

    Returns:
        the same module; the weight is a parameter with its present value.

    Raises:
        ValueError: if the weight has no such hook.

    Example:
        >>> layer = clew.nn.utils.spectral_norm(clew.nn.Linear(3, 2))
        >>> _ = clew.nn.utils.remove_spectral_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for table, kind in (
                (module._state_dict_hooks, SpectralNormStateDictHook),
                (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
            ):
                for other, registered in list(table.items()):
                    made = getattr(registered, "hook", registered)  # one that PyTorch pickled
                    if isinstance(made, kind) and made.fn is hook:
                        del table[other]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
