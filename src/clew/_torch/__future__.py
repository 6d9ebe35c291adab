"""Switches of how modules change their parameters."""

from __future__ import annotations

_overwrite = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Raises for True: conversions change the data of the parameters that are there."""
    if value:
        raise NotImplementedError("modules keep their parameters when they are converted")


def get_overwrite_module_params_on_conversion() -> bool:
    """False."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Raises for True: conversions change the data of the parameters that are there."""
    set_overwrite_module_params_on_conversion(value)


def get_swap_module_params_on_conversion() -> bool:
    """False."""
    return False
