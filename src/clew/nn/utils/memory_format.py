"""Conversion of convolutions' weights to another memory format."""

from __future__ import annotations

from typing import Any

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: Any, kinds: tuple[Any, ...], dims: int) -> Any:
    if isinstance(module, kinds) and module.weight.dim() == dims:
        module.weight.data = module.weight.detach().contiguous(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds, dims)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of all Conv2d and ConvTranspose2d below a module.

    Args:
        module: the module.
        memory_format: for example clew.channels_last.

    Returns:
        the same module.

    Example:
        >>> conv = clew.nn.Conv2d(2, 3, 2)
        >>> _ = clew.nn.utils.convert_conv2d_weight_memory_format(conv, clew.channels_last)
        >>> conv.weight.stride()
        (8, 1, 4, 2)
    """
    from ..modules.conv import Conv2d, ConvTranspose2d

    return _convert(module, memory_format, (Conv2d, ConvTranspose2d), 4)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of all Conv3d and ConvTranspose3d below a module.

    Args:
        module: the module.
        memory_format: for example clew.channels_last_3d.

    Returns:
        the same module.

    Example:
        >>> conv = clew.nn.Conv3d(2, 3, 2)
        >>> _ = clew.nn.utils.convert_conv3d_weight_memory_format(conv, clew.channels_last_3d)
        >>> conv.weight.stride()
        (16, 1, 8, 4, 2)
    """
    from ..modules.conv import Conv3d, ConvTranspose3d

    return _convert(module, memory_format, (Conv3d, ConvTranspose3d), 5)
