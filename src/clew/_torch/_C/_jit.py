"""Switches of PyTorch's compiler of scripts: each keeps what it is set to, and nothing reads it."""

from __future__ import annotations

_switches = {"cpu": False, "gpu": False, "executor": True, "mode": True, "texpr": True}


def _set(switch: str, value: bool) -> bool:
    before = _switches[switch]
    _switches[switch] = bool(value)
    return before


def _jit_can_fuse_on_cpu() -> bool:
    """What `_jit_override_can_fuse_on_cpu` was told last."""
    return _switches["cpu"]


def _jit_can_fuse_on_gpu() -> bool:
    """What `_jit_override_can_fuse_on_gpu` was told last."""
    return _switches["gpu"]


def _jit_override_can_fuse_on_cpu(value: bool) -> None:
    """Keeps a choice."""
    _set("cpu", value)


def _jit_override_can_fuse_on_gpu(value: bool) -> None:
    """Keeps a choice."""
    _set("gpu", value)


def _jit_set_profiling_executor(value: bool) -> bool:
    """Keeps a choice, and returns the one before."""
    return _set("executor", value)


def _jit_set_profiling_mode(value: bool) -> bool:
    """Keeps a choice, and returns the one before."""
    return _set("mode", value)


def _jit_texpr_fuser_enabled() -> bool:
    """What `_jit_set_texpr_fuser_enabled` was told last."""
    return _switches["texpr"]


def _jit_set_texpr_fuser_enabled(value: bool) -> None:
    """Keeps a choice."""
    _set("texpr", value)


def _jit_set_nvfuser_enabled(value: bool) -> None:
    """Does nothing, as in PyTorch."""


_jit_set_nvfuser_guard_mode = _jit_set_nvfuser_enabled
