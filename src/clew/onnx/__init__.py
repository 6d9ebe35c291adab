"""Models as ONNX files, and ONNX files as modules. Needs the onnx package: `clew[onnx]`."""

from __future__ import annotations

from typing import Any

from clew.onnx._errors import OnnxExporterError
from clew.onnx._export import ONNXProgram, export
from clew.onnx._load import load

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "load",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

producer_name = "clew"


class OperatorExportTypes:
    """How operations that ONNX lacks would be written."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode:
    """Which form of a model would be exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Whether an export is running."""
    from clew.export._symbols import _recorder

    return bool(_recorder)


def is_onnxrt_backend_supported() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Raises: rules of the older exporter do not fit; compose operations instead.

    Args:
        symbolic_name: the operation.
        symbolic_fn: the rule.
        opset_version: of ONNX.
    """
    raise NotImplementedError(
        f"onnx.register_custom_op_symbolic({symbolic_name!r}): write the operation with clew's own"
    )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Does nothing: there are no such rules.

    Args:
        symbolic_name: the operation.
        opset_version: of ONNX.
    """


def __getattr__(name: str) -> Any:
    if name == "symbolic_helper" or name.startswith("symbolic_opset"):
        import importlib

        return importlib.import_module("clew.onnx.symbolic_helper")
    raise AttributeError(f"module 'clew.onnx' has no attribute {name!r}")
