"""Switches of how modules change their parameters, at the path where PyTorch has them."""

from __future__ import annotations

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether modules get new parameters when they are converted (`to`, `float`, `to_empty`
    and their like), instead of other data in those they have.

    Args:
        value: True for new parameters; False at first.

    >>> clew.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer = nn.Linear(2, 2)
    >>> weight = layer.weight
    >>> layer.double().weight is weight
    False
    >>> clew.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether modules get new parameters when they are converted.

    >>> clew.__future__.get_overwrite_module_params_on_conversion()
    False
    """
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether parameters change places with their converted ones (`utils.swap_tensors`) when
    a module is converted or loads a state dict. What `Tensor.module_load` gives is swapped in then.

    It goes before `set_overwrite_module_params_on_conversion`.

    Args:
        value: True to swap; False at first.

    >>> clew.__future__.set_swap_module_params_on_conversion(True)
    >>> layer = nn.Linear(2, 2)
    >>> weight = layer.weight
    >>> layer.double().weight is weight
    True
    >>> clew.__future__.set_swap_module_params_on_conversion(False)
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters change places with their converted ones.

    >>> clew.__future__.get_swap_module_params_on_conversion()
    False
    """
    return _swap_module_params_on_conversion
