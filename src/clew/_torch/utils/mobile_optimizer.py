"""Programs for phones: what they need is that they run, which those of `clew.jit` do anywhere."""

from __future__ import annotations

import copy
import enum
from typing import Any

from clew import jit

__all__ = [
    "LintCode",
    "MobileOptimizerType",
    "generate_mobile_module_lints",
    "optimize_for_mobile",
]


class MobileOptimizerType(enum.IntEnum):
    """Passes of PyTorch's; clew's programs have none that could be left out."""

    CONV_BN_FUSION = 0
    INSERT_FOLD_PREPACK_OPS = 1
    REMOVE_DROPOUT = 2
    FUSE_ADD_RELU = 3
    HOIST_CONV_PACKED_PARAMS = 4
    CONV_1D_TO_2D = 5
    VULKAN_AUTOMATIC_GPU_TRANSFER = 6


class LintCode(enum.Enum):
    """What is said of a module."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


def _need_script(module: Any) -> None:
    if not isinstance(module, jit.ScriptModule):
        raise TypeError(f"Got {type(module)}, but ScriptModule is expected.")


def optimize_for_mobile(
    script_module: Any,
    optimization_blocklist: Any = None,
    preserved_methods: Any = None,
    backend: str = "CPU",
) -> Any:
    """A copy of a script in evaluation mode, without gradients.

    Args:
        script_module: what `jit.script`, `jit.trace` or `jit.load` returned.
        optimization_blocklist: a set of MobileOptimizerType. None of them is done.
        preserved_methods: names of methods, which must be there; all stay.
        backend: "CPU".

    Raises:
        AttributeError: a method is not there.
        NotImplementedError: another backend.
    """
    _need_script(script_module)
    for kind in optimization_blocklist or ():
        if not isinstance(kind, MobileOptimizerType):
            raise TypeError(f"optimize_for_mobile: {kind!r} is no MobileOptimizerType")
    missing = [str(m) for m in preserved_methods or () if not hasattr(script_module, str(m))]
    if missing:
        raise AttributeError(
            f"The following methods to preserve do not exist in script_module: {', '.join(missing)}"
        )
    if backend.lower() in ("vulkan", "metal"):
        raise NotImplementedError(f"optimize_for_mobile: clew runs on the CPU, not on {backend}")
    if backend.lower() != "cpu":
        raise TypeError("Unknown backend, must be one of 'CPU', 'Vulkan' or 'Metal'")
    return copy.deepcopy(script_module).eval().requires_grad_(False)


def generate_mobile_module_lints(script_module: Any) -> list[dict[str, str]]:
    """What may be in the way of a module's use where only results count.

    Args:
        script_module: what `jit.script`, `jit.trace` or `jit.load` returned.

    Returns:
        Dicts of a name, one of LintCode's, and a message.
    """
    _need_script(script_module)
    found = []
    if not hasattr(script_module, "_generate_bundled_inputs_for_forward"):
        found.append((LintCode.BUNDLED_INPUT, "No bundled input for forward."))
    for name, p in script_module.named_parameters():
        if p.requires_grad:
            found.append((LintCode.REQUIRES_GRAD, f"Param {name} requires grad."))
    for op in jit.export_opnames(script_module):
        for code, part in ((LintCode.DROPOUT, "dropout"), (LintCode.BATCHNORM, "batch_norm")):
            if part in op:
                text = f"Operator {op} exists, remember to call eval() before saving the module."
                found.append((code, text))
    return [{"name": code.name, "message": text} for code, text in found]
