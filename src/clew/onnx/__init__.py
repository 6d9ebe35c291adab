"""PyTorch's names for exporting to ONNX. Nothing is exported: asking for it raises."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

producer_name = "clew"


class OnnxExporterError(RuntimeError):
    """An export failed."""


class ONNXProgram:
    """An exported program: there are none."""


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


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: programs are not written as ONNX."""
    raise NotImplementedError("onnx.export: clew does not write ONNX files")


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Takes a rule for an export, which never happens.

    Args:
        symbolic_name: the operation.
        symbolic_fn: the rule.
        opset_version: of ONNX.
    """


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes such a rule back.

    Args:
        symbolic_name: the operation.
        opset_version: of ONNX.
    """


def __getattr__(name: str) -> Any:
    if name == "symbolic_helper" or name.startswith("symbolic_opset"):
        import importlib

        return importlib.import_module("clew.onnx.symbolic_helper")
    raise AttributeError(f"module 'clew.onnx' has no attribute {name!r}: nothing is exported")
