"""Whether autocast is on, and for which dtype, by device; settings belong to the calling thread.

Autocast acts on one device, "cpu", whose settings the core keeps. Settings for other devices are
only stored, so that programs read back what they set.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import clew
from clew import _C
from clew._base.arguments import need_bools
from clew._base.provenance import user_level

__all__ = [
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]

# The dtype that each kind of device starts with.
_DEFAULTS = {
    "cpu": "bfloat16",
    "cuda": "float16",
    "hpu": "bfloat16",
    "ipu": "float16",
    "maia": "bfloat16",
    "mps": "float16",
    "mtia": "float16",
    "privateuseone": "float16",
    "xla": "bfloat16",
    "xpu": "float16",
}
_OTHERS = ("fpga", "hip", "ideep", "lazy", "meta", "mkldnn", "opencl", "opengl", "ve", "vulkan")


class _Absent(threading.local):
    """The settings for devices that are not there."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtype: dict[str, clew.dtype] = {}


_absent = _Absent()


def is_autocast_available(device_type: str) -> bool:
    """Whether a kind of device has autocast.

    Args:
        device_type: "cpu", "cuda" ...

    Example:
        >>> from clew.amp import is_autocast_available
        >>> is_autocast_available("cpu")
        True
    """
    if device_type in _DEFAULTS:
        return True
    if device_type in _OTHERS:
        return False
    raise RuntimeError(
        f"Expected one of {', '.join(sorted((*_DEFAULTS, *_OTHERS)))} device type; "
        f"got {device_type!r}"
    )


def _check(device_type: Any) -> None:
    if not is_autocast_available(device_type):
        raise RuntimeError(f"unknown device type for autocast: {device_type!r}")


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a kind of device.

    Args:
        device_type: "cpu", or a device that is not there.

    Example:
        >>> from clew import is_autocast_enabled
        >>> with clew.autocast("cpu"):
        ...     is_autocast_enabled("cpu")
        True
    """
    _check(device_type)
    if device_type == "cpu":
        return _C._autocasting()
    return _absent.enabled.get(device_type, False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Turns autocast on or off for a kind of device; `autocast` is the safer form.

    Args:
        device_type: "cpu", or a device that is not there.
        enabled: on or off.

    >>> clew.set_autocast_enabled('cpu', False)
    """
    if enabled is None:  # PyTorch's older form, of CUDA alone
        device_type, enabled = "cuda", device_type
    need_bools("set_autocast_enabled", enabled=enabled)
    _check(device_type)
    if device_type == "cpu":
        _, dtype, keeps = _C._autocast_state()
        _C._set_autocast(enabled, dtype, keeps)
    else:
        _absent.enabled[device_type] = bool(enabled)


def get_autocast_dtype(device_type: str) -> clew.dtype:
    """The dtype that products run in within autocast.

    Args:
        device_type: "cpu", or a device that is not there.

    Example:
        >>> from clew import get_autocast_dtype
        >>> get_autocast_dtype("cpu")
        clew.bfloat16
    """
    _check(device_type)
    if device_type == "cpu":
        return _C._autocast_state()[1]
    found = _absent.dtype.get(device_type)
    return getattr(clew, _DEFAULTS[device_type]) if found is None else found


def set_autocast_dtype(device_type: str, dtype: clew.dtype) -> None:
    """Sets the dtype that products run in within autocast.

    Args:
        device_type: "cpu", or a device that is not there.
        dtype: bfloat16 or float16.

    >>> clew.set_autocast_dtype('cpu', clew.bfloat16)
    """
    _check(device_type)
    if device_type == "cpu":
        enabled, _, keeps = _C._autocast_state()
        _C._set_autocast(enabled, dtype, keeps)
    else:
        _absent.dtype[device_type] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter is cast once in a region, rather than at each use.

    >>> clew.is_autocast_cache_enabled()
    True
    """
    return _C._autocast_state()[2]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Chooses whether a parameter is cast once in a region.

    Args:
        enabled: yes or no.

    >>> clew.set_autocast_cache_enabled(True)
    """
    need_bools("set_autocast_cache_enabled", enabled=enabled)
    on, dtype, _ = _C._autocast_state()
    _C._set_autocast(on, dtype, enabled)


# Names of older programs.


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"clew.{name} is deprecated; use clew.{instead}",
        DeprecationWarning,
        stacklevel=user_level(),
    )


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: is_autocast_enabled("cpu").

    >>> with clew.autocast('cpu'):
    ...     clew.is_autocast_cpu_enabled()
    True
    """
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: set_autocast_enabled("cpu", enabled).

    >>> clew.set_autocast_cpu_enabled(False)
    """
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> clew.dtype:
    """Deprecated: get_autocast_dtype("cpu").

    >>> clew.get_autocast_cpu_dtype()
    clew.bfloat16
    """
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: clew.dtype) -> None:
    """Deprecated: set_autocast_dtype("cpu", dtype).

    >>> clew.set_autocast_cpu_dtype(clew.bfloat16)
    """
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> clew.dtype:
    """Deprecated: get_autocast_dtype("cuda").

    >>> clew.get_autocast_gpu_dtype()
    clew.float16
    """
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: clew.dtype) -> None:
    """Deprecated: set_autocast_dtype("cuda", dtype).

    >>> clew.set_autocast_gpu_dtype(clew.float16)
    """
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)
